#!/bin/sh
# MPICH and Intel MPI (Hydra): one part a process, on the hosts of HOSTS (`load1,load2`) or on this one.
#
#   PARTS=4 HOSTS=load1,load2,load3,load4 mpich.sh slob run -s 16 -t 8 RUN_TIME=600 --target postgres://bench@db1/bench
#
# Ctrl-C reaches all parts at once, as INT. A second one ends them without keeping anything.
set -eu
runs=${RUNS:-$PWD/plimsoll-$(date +%Y%m%d-%H%M%S)}
PLIMSOLL_MEET_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export PLIMSOLL_MEET_TOKEN
"${MPIEXEC:-mpiexec}" -n "${PARTS:-4}" ${HOSTS:+-hosts "$HOSTS"} -genvlist PLIMSOLL_MEET_TOKEN,PATH -prepend-rank \
	plimsoll "$@" --part auto --meet "${FIRST:-$(hostname)}:${PORT:-7451}" --runs "$runs"
plimsoll merge "$runs" -o "$runs-merged"
