#!/bin/sh
# rsync.sh WHERE FILE: transfers with every deflate that rsync knows, to a second process that is preloaded (WHERE is
# `same`) or stock (`stock`). Prints what has arrived.
set -eu

cat >rsh <<'REMOTE'
#!/bin/sh
[ "$WHERE" = same ] || unset LD_PRELOAD
shift
exec "$@"
REMOTE
chmod +x rsh
export WHERE="$1"
mkdir -p source/deep
cp "$2" source/page.html
head -c 300000 /usr/bin/rsync >source/deep/program
: >source/empty
for way in -zz --compress-choice=zlib --compress-choice=zlibx; do
    for level in 1 6 9; do
        rm -rf target
        rsync --archive --compress $way --compress-level=$level --rsh=./rsh source/ localhost:"$PWD/target/"
        (cd target && find . -type f | sort | xargs sha256sum)
        # Only the differences are sent, and zlib's side keeps the rest in its window.
        { echo changed; cat source/page.html; } >target/page.html
        rsync --archive --checksum --compress $way --compress-level=$level --no-whole-file --rsh=./rsh \
            localhost:"$PWD/source/" target/
        cmp source/page.html target/page.html
    done
done
