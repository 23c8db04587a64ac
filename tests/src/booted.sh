# booted.sh FOLDER: in namespaces of its own, this system with systemd. Everything that it writes is in memory.
set -e
. "${0%/*}/own-root.sh"
own_root "$1" /
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
# What this machine has enabled is none of the test's business.
rm -rf "$root/etc/systemd/system"
mkdir -p "$root/etc/systemd/system"
enter_root
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --unit=sysinit.target --log-target=null --show-status=0
