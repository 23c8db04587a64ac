#!/usr/bin/env bash
# slow-disk.sh COMMAND …: runs a command with a file system of its own in $SLOW_DISK, on a loop device whose file is in memory,
# and removes it afterwards. `hasten bench readcache --limit` and `hasten bench wal --limit` make it as slow as a network
# disk: the kernel limits the operations of a device, and this one has no other user. Needs root.
source "$(dirname "$0")/lib.sh"

(($#)) || die "name a command: scripts/slow-disk.sh sh -c 'hasten bench wal --data \"\$SLOW_DISK\" --fast /mnt/nvme --limit 1000'"
((EUID == 0)) || die "a loop device needs root: sudo scripts/slow-disk.sh …"
image=$(mktemp /dev/shm/slow-disk.XXXXXX)
SLOW_DISK=$(mktemp -d)
export SLOW_DISK
cleanup() {
    umount "$SLOW_DISK" 2>/dev/null || true
    rmdir "$SLOW_DISK" || true
    rm -f "$image"
}
trap cleanup EXIT
truncate -s "${SLOW_DISK_SIZE:-4G}" "$image"
mkfs.ext4 -q -F "$image"
mount -o loop "$image" "$SLOW_DISK"
"$@"
