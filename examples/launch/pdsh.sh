#!/bin/sh
# pdsh or clush: one part a host, each of which finds its number by its own name.
#
#   HOSTS=load1,load2,load3,load4 pdsh.sh slob run -s 16 -t 8 RUN_TIME=600 --target postgres://bench@db1/bench
#
# pdsh starts 32 hosts at a time and clush 64: with more hosts, the first would wait for the last until they give up. So the
# fan-out is as wide as the list. The token goes to the hosts as a file that only its owner reads (`pdcp` or any other way),
# since what stands in a command line can be read by everybody there. RUNS is a directory that all hosts share.
set -eu
hosts=$HOSTS
parts=$(echo "$hosts" | tr ',' '\n' | wc -l)
runs=${RUNS:-$PWD/plimsoll-$(date +%Y%m%d-%H%M%S)}
command=$(printf " '%s'" "$@")
${PDSH:-pdsh -f "$parts" -w "$hosts"} "plimsoll$command --part auto --hosts $hosts --meet ${FIRST:-${hosts%%,*}}:${PORT:-7451} \
	--meet-token-file ${TOKEN_FILE:-\$HOME/.plimsoll-meet-token} --runs '$runs'"
plimsoll merge "$runs" -o "$runs-merged"
