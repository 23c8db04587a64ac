#!/bin/sh
# git.sh FILE: the life of a repository in the current directory. What it prints depends on contents alone, except
# for the last line: the packed bytes of the first objects.
set -eu

export HOME="$PWD" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@localhost GIT_COMMITTER_NAME=c \
    GIT_COMMITTER_EMAIL=c@localhost GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git init -q -b main origin
cd origin
cp "$1" page.html
head -c 70000 "$1" >other.html
: >empty
git add . && git commit -q -m first
loose=$(find .git/objects -type f | sort | xargs cat | sha256sum)
for change in 1 2 3 4 5 6; do
    { echo "change $change"; tail -c "${change}1111" "$1"; } >>page.html
    git commit -q -a -m "change $change"
done
git fsck --full --strict
git rev-parse HEAD
git ls-tree -r HEAD
git -c pack.compression=9 gc -q --aggressive
git fsck --full --strict
cd ..
git -c protocol.file.allow=always clone -q "file://$PWD/origin" copy
git -C copy fsck --full --strict
git -C copy log -p | sha256sum
git -C copy archive --format=tar.gz -9 HEAD >archive.tar.gz
gzip -dc archive.tar.gz | sha256sum
git -C copy diff --binary HEAD~3 | git -C copy apply --check --reverse
echo "$loose"
