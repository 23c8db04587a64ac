#!/usr/bin/env bash
# dev.sh TREE: a /dev of its own for this mount namespace, with what containers and the kubelet need, and with files in the places of
# the devices of TREE, which are as good as /dev/null.
set -euo pipefail
mount -t tmpfs -o mode=755 tmpfs /dev
for node in null:3 zero:5 full:7 random:8 urandom:9 kmsg:11; do mknod -m 666 "/dev/${node%:*}" c 1 "${node#*:}"; done
mknod -m 666 /dev/tty c 5 0
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts
ln -s pts/ptmx /dev/ptmx
ln -s /proc/self/fd /dev/fd
(cd "$1/dev" && find . -type f) | while read -r file; do
    mkdir -p "$(dirname "/dev/$file")"
    mknod -m 666 "/dev/$file" c 1 3
done
