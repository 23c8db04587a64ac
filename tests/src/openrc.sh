# openrc.sh FOLDER OPENRC: in namespaces of its own, this system with the OpenRC that is in the folder OPENRC. Everything that it
# writes is in memory.
set -e
. "${0%/*}/own-root.sh"
# Its files are over those of this system, whose /lib and /sbin are links.
openrc=$(readlink -f "$2")
over=$1/openrc
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir -p "$over/usr"
cp -a "$openrc"/lib "$openrc"/sbin "$openrc"/bin "$over/usr/"
cp -a "$openrc"/etc "$over/"
mkdir "$1/system"
own_root "$1/system" "$over:/"
# What this machine would start is none of the test's business.
rm -rf "$root"/etc/runlevels/*/* "$root"/etc/init.d/* "$root/etc/rc.conf.d" "$root/etc/systemd/system"
mkdir -p "$root/run/lock"
enter_root
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
openrc sysinit
openrc boot
openrc default
echo booted
# The first process: it is the parent of every server.
while :; do sleep 1000 & wait $! || true; done
