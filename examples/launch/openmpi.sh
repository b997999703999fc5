#!/bin/sh
# Open MPI: one part a process, on the hosts of HOSTS (`db1:1,db2:1`) or on this one. Only its launcher is used, no MPI library.
#
#   PARTS=4 HOSTS=load1:1,load2:1,load3:1,load4:1 openmpi.sh slob run -s 16 -t 8 RUN_TIME=600 --target postgres://bench@db1/bench
#
# Ctrl-C reaches a part as TERM after 1 s and KILL 2 s later: the last option gives it 10 s, to keep what it measured.
# A part that ends with another code than 0 ends all the others, so parts end with 0 once their data are kept; `merge` judges.
set -eu
runs=${RUNS:-$PWD/plimsoll-$(date +%Y%m%d-%H%M%S)}
PLIMSOLL_MEET_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export PLIMSOLL_MEET_TOKEN
"${MPIRUN:-mpirun}" -n "${PARTS:-4}" ${HOSTS:+--host "$HOSTS"} ${MPI_OPTIONS:-} -x PLIMSOLL_MEET_TOKEN --tag-output \
	--mca odls_base_sigkill_timeout 10 \
	plimsoll "$@" --part auto --meet "${FIRST:-$(hostname)}:${PORT:-7451}" --runs "$runs"
plimsoll merge "$runs" -o "$runs-merged"
