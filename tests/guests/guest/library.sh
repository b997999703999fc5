# What the shell of every theme knows. A theme's script calls `begin`, `load`, `piece`, `step` and `finish`; the rest is for themes.
# It is for any POSIX shell, since a small guest has only that of busybox.

export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
# What a user has who redirects to a file.
export NO_COLOR=1 COLUMNS=120

# --- for themes

# Writes to a device that is in use, as a user would who insists.
overwrite() {
	set -- plimsoll io run --path "$1" --pattern randwrite --depth 2 --duration 1 --warmup 0 --size 24M --destroy "$1" --destroy-signature
	echo "+ $*"
	"$@"
}

# The same without insisting.
overwrite_what_is_free() {
	set -- plimsoll io run --path "$1" --pattern randwrite --depth 2 --duration 1 --warmup 0 --size 24M --destroy "$1"
	echo "+ $*"
	"$@"
}

# Fills the first part of a device, so that reads find our blocks: fill DEVICE [SIZE]
fill() {
	plimsoll io run --path "$1" --size "${2:-32M}" --pattern randwrite --depth 2 --duration 1 --warmup 0 --prefill \
		--destroy-signature --destroy "$1" >/dev/null
}

# Tables of device-mapper change while the device is held: table NAME, with the table on standard input.
table() {
	dmsetup suspend --noflush --nolockfs "$1"
	dmsetup load "$1"
	dmsetup resume "$1"
}

# A table that hands everything on: linear DEVICE
linear() {
	echo "0 $(blockdev --getsz "$1") linear $1 0"
}

# The device `fl` over a disk, whose tables a theme changes.
make_fl() {
	linear "$1" | dmsetup create fl
	udevadm settle
}

# A null_blk device by name, with its attributes: null_block NAME KEY=VALUE...
null_block() {
	grep -q ' /sys/kernel/config ' /proc/mounts || mount -t configfs configfs /sys/kernel/config
	block=/sys/kernel/config/nullb/$1
	mkdir "$block"
	name=$1
	shift
	for attribute; do
		echo "${attribute#*=}" >"$block/${attribute%%=*}"
	done
	echo 1 >"$block/power"
	wait_for "/dev/$name"
}

wait_for() {
	tries=0
	until [ -e "$1" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 200 ]; then
			echo "$1 did not appear" >&2
			return 1
		fi
		sleep 0.1
	done
}

# Waits until the command of this step has put on load for some seconds: seconds_of_load NUMBER [DIRECTORY-OF-RUNS]
seconds_of_load() {
	# Its tries are no news.
	case $- in *x*) traced=x ;; *) traced= ;; esac
	{ set +x; } 2>/dev/null
	tries=0
	until [ "$(find "${2:-plimsoll-runs}" -name intervals.jsonl -newer /w/began -exec cat {} + 2>/dev/null | wc -l)" -ge "$1" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 500 ] || [ -e /w/ended ]; then
			echo 'the command did not put on load for so long' >&2
			exit 1
		fi
		sleep 0.2
	done
	[ -z "$traced" ] || set -x
}

# A kernel NFS server on this machine, which exports /m/exp; /m/nfs is there to mount it: serve_nfs DISK
serve_nfs() {
	mkfs.xfs -q -f "$1"
	mkdir -p /m
	mount "$1" /m
	mkdir /m/exp /m/nfs
	echo '/m/exp *(rw,sync,no_root_squash,insecure,no_subtree_check,fsid=1)' >/etc/exports
	systemctl start rpcbind
	systemctl start nfs-server
}

# Reads a full report of one step and says whether two of its tables have the same rates of reads and writes.
agree() {
	awk '
		{ print }
		/^Requests/ { table = $0 }
		/^$/ { table = "" }
		table ~ /^Requests \(/ && $1 ~ /^[dr][0-9]/ { reads = $4; writes = $5 }
		table ~ /^Requests by type/ && $2 == "read" { read = $3 }
		table ~ /^Requests by type/ && $2 == "write" { write = $3 }
		END { print (reads != "" && reads == read && writes == write ? "the tables agree" : "the tables differ: " reads " and " read ", " writes " and " write) }
	'
}

# Reaches the host, which is 10.0.2.2 there.
join_network() {
	modprobe virtio_net
	udevadm settle
	for card in /sys/class/net/e*; do
		ip address add 10.0.2.15/24 dev "${card##*/}"
		ip link set "${card##*/}" up
	done
}

# The boot after a power cut is one of the same machine.
commits_machine() {
	join_network
	echo 0123456789abcdef0123456789abcdef >/share/machine-id
	commits_machine_again
}

commits_machine_again() {
	mount --bind /share/machine-id /etc/machine-id
}

# A file system on vdb for commits, at /m.
commits_disk() {
	commits_machine
	mkfs.xfs -q -f /dev/vdb
	commits_mount
	sync
	# A disk that lies writes down within a second.
	sleep 2
}

commits_disk_again() {
	commits_machine_again
	commits_mount
}

commits_mount() {
	mkdir -p /m
	mount /dev/vdb /m
}

# Loads commits that the witness on the host notes. Seconds of it count as those of a run: commits OPTION...
commits() {
	mkdir -p plimsoll-runs/commits
	plimsoll durable run --witness "$WITNESS" "$@" 2>&1 | while read -r line; do
		echo "$line"
		case $line in *'Cut the power'*) while sleep 1; do echo >>plimsoll-runs/commits/intervals.jsonl; done & ;; esac
	done
}

# Runs a command in a service of its own with properties of systemd: in_service "IOReadIOPSMax=/dev/vdb 300" -- COMMAND...
in_service() {
	properties=
	while [ "$1" != -- ]; do
		# Properties hold spaces, so they are kept apart by lines.
		properties="$properties-p
$1
"
		shift
	done
	shift
	old=$IFS
	IFS='
'
	# shellcheck disable=SC2086
	set -- systemd-run --quiet --wait --pipe --collect -p "WorkingDirectory=$PWD" -p "Environment=PATH=$PATH" $properties "$@"
	IFS=$old
	"$@"
}

# --- for the script of a theme

# Loads a module, unless the first process did or the kernel has it built in: load NAME PARAMETER=VALUE...
load() {
	[ ! -d "/sys/module/$1" ] || [ $# -gt 1 ] && modprobe "$@" >>"$THEME/begin.log" 2>&1
	[ -d "/sys/module/$1" ] && return
	echo "this kernel has no module $1" >>"$THEME/begin.log"
	echo 1 >"$THEME/begin.code"
	finish
	exit
}

# Names the theme and wipes its disks: begin NAME DISK...
begin() {
	place=/w/$1
	mkdir -p "$place"
	cd "$place" || exit
	shift
	disks=$*
	if command -v udevadm >/dev/null; then udevadm settle; fi
	for disk; do
		wait_for "/dev/$disk" 2>>"$THEME/begin.log" || { echo 1 >"$THEME/begin.code" && exit; }
		wipe "/dev/$disk"
	done
}

# Runs a piece of set-up in this folder; what comes after it means nothing where it fails.
piece() {
	sh "$THEME/$1.sh" >"$THEME/$1.log" 2>&1 </dev/null
	code=$?
	echo $code >"$THEME/$1.code"
	[ $code = 0 ] || { finish; exit; }
}

# Sums of the first 32 MiB, past the page cache.
sums() {
	for path; do
		sum=$(dd if="$path" bs=1M count=32 iflag=direct 2>/dev/null | cksum) && [ "$sum" != '4294967295 0' ] || sum=unreadable
		echo "$path $sum"
	done
}

# step NUMBER SECONDS [UNCHANGED]...
step() {
	at=$1 seconds=$2
	shift 2
	sums "$@" >"$THEME/$at.sum"
	rm -f /w/ended
	: >/w/began
	other=
	if [ -e "$THEME/$at.meanwhile.sh" ]; then
		sh "$THEME/$at.meanwhile.sh" >"$THEME/$at.meanwhile.log" 2>&1 </dev/null &
		other=$!
	fi
	timeout -k 10 "$seconds" sh "$THEME/$at.run.sh" >"$THEME/$at.out" 2>&1 </dev/null
	echo $? >"$THEME/$at.code"
	: >/w/ended
	[ -z "$other" ] || wait "$other"
	sums "$@" >"$THEME/$at.sum.after"
}

# Puts on load and returns while it goes on: until_cut SECONDS
until_cut() {
	rm -f /w/ended
	: >/w/began
	sh "$THEME/load.sh" >"$THEME/load.out" 2>&1 </dev/null &
	(seconds_of_load "$1") >"$THEME/setup.log" 2>&1 || {
		cat "$THEME/load.out" >>"$THEME/setup.log"
		echo 1 >"$THEME/setup.code"
	}
}

wipe() {
	wipefs -qa "$1" 2>/dev/null
	dd if=/dev/zero of="$1" bs=1M count=4 conv=fsync 2>/dev/null
	# Metadata of MD, GPT and LVM may be at the end.
	megabytes=$(($(blockdev --getsz "$1") / 2048))
	dd if=/dev/zero of="$1" bs=1M seek=$((megabytes - 4)) count=4 conv=fsync 2>/dev/null
}

mounts() {
	awk '$2 == "/m" || $2 ~ "^/m/" || $2 ~ "^/w/" { print $2 }' /proc/mounts | sort -r
}

leave_mounts() {
	mounts | while read -r at; do umount -f "$at"; done
}

# Takes down what the theme left, so that the next one finds the disks free: says in `clean` whether that succeeded.
finish() {
	cd /
	rm -rf "$place"
	{
		for process in $(pidof plimsoll); do kill -9 "$process"; done
		if ! command -v dmsetup >/dev/null; then
			for block in /sys/kernel/config/nullb/nullb*; do rmdir "$block" 2>/dev/null; done
			echo yes >"$THEME/clean"
			return
		fi
		swapoff -a
		for mapped in $(dmsetup ls | grep -v '^No devices' | cut -f 1); do dmsetup resume "$mapped"; done
		# A client is unmounted before its server is stopped, and what is exported after it.
		leave_mounts
		exportfs -ua
		systemctl stop nfs-server rpcbind.socket rpcbind multipathd.socket multipathd
		leave_mounts
		losetup -D
		for _ in 1 2 3; do
			multipath -F
			vgchange -qq -an
			dmsetup remove_all --force
			mdadm --stop --scan
		done
		for block in /sys/kernel/config/nullb/nullb*; do rmdir "$block"; done
		rmmod scsi_debug
		rmmod null_blk
		for disk in $disks; do
			wipe "/dev/$disk"
			partx -d "/dev/$disk"
		done
		udevadm settle
		left=
		for disk in $disks; do
			[ -b "/dev/$disk" ] && [ -z "$(ls -A "/sys/class/block/$disk/holders")" ] || left="$left $disk"
		done
		left="$left$(mounts)"
		echo "left:$left"
		[ -n "$left" ] || echo yes >"$THEME/clean"
	} >"$THEME/finish.log" 2>&1
}
