# unprivileged.sh DIRECTORY PROGRAM ARGUMENT…: as root, the program gets the directory, and another user.
directory=$1
shift
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || exec "$@"
chown -R nobody "$directory"
exec setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
