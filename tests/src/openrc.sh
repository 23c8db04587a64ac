# openrc.sh FOLDER OPENRC: in namespaces of its own, this system with the OpenRC that is in the folder OPENRC. Everything that it
# writes is in memory.
set -e
mount --make-rprivate /
openrc=$(readlink -f "$2")
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
# Its files are over those of this system, whose /lib and /sbin are links.
mkdir -p "$1/openrc/usr"
cp -a "$openrc"/lib "$openrc"/sbin "$openrc"/bin "$1/openrc/usr/"
cp -a "$openrc"/etc "$1/openrc/"
mount -t overlay -o "lowerdir=$1/openrc:/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
root=$1/root
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s /proc/self/fd "$root/dev/fd"
# What this machine would start is none of the test's business.
rm -rf "$root"/etc/runlevels/*/* "$root"/etc/init.d/* "$root/etc/rc.conf.d" "$root/etc/systemd/system"
mkdir -p "$root/mnt" "$root/run/lock"
cd "$root"
pivot_root . mnt
umount -l /mnt
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
openrc sysinit
openrc boot
openrc default
echo booted
# The first process: it is the parent of every server.
while :; do sleep 1000 & wait $! || true; done
