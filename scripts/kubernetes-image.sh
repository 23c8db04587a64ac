#!/usr/bin/env bash
# kubernetes-image.sh TARGET OUT.tar: the image of the chart as an OCI archive, from what `make dist` has built, without a
# daemon and without a base image. The same input makes the same bytes.
source "$(dirname "$0")/lib.sh"

tree=$1/release/dist/tree
out=$(realpath -m "$2")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

[[ -x $tree/bin/hasten ]] || die "nothing has been built: run \`make dist\` first"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

pack() { tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu "$@"; }

# blob FILE: puts it where its hash says, and prints "HASH SIZE".
blob() {
    local hash
    hash=$(sha256sum "$1" | cut -d ' ' -f 1)
    mkdir -p "$scratch/oci/blobs/sha256"
    cp "$1" "$scratch/oci/blobs/sha256/$hash"
    printf '%s %s' "$hash" "$(stat -c %s "$1")"
}

# What the command is linked with, loader included, from this system's C library.
contents() {
    local root=$scratch/root file
    install -D -m 755 "$1/release/hasten-k8s" "$root/usr/bin/hasten-k8s"
    install -D -m 755 "$tree/bin/hasten" "$root/usr/bin/hasten"
    mkdir -p "$root/usr/lib" && cp -r "$tree/lib/hasten" "$root/usr/lib/"
    while read -r file; do install -D -m 755 "$file" "$root$file"; done < <(ldd "$tree/bin/hasten" | grep -o '/[^ ]*')
    chmod -R u=rwX,go=rX "$root"
}

scripts/kubernetes.sh build "$1"
contents "$1"
pack --directory "$scratch/root" --file "$scratch/layer.tar" .
plain=$(sha256sum "$scratch/layer.tar" | cut -d ' ' -f 1)
gzip --no-name "$scratch/layer.tar"
read -r layer layer_size <<<"$(blob "$scratch/layer.tar.gz")"
created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)
printf '{"created":"%s","architecture":"amd64","os":"linux","config":{"User":"65532","Entrypoint":["/usr/bin/hasten-k8s"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$created" "$plain" >"$scratch/config.json"
read -r config config_size <<<"$(blob "$scratch/config.json")"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:%s","size":%s}]}' \
    "$config" "$config_size" "$layer" "$layer_size" >"$scratch/manifest.json"
read -r manifest manifest_size <<<"$(blob "$scratch/manifest.json")"
printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":"amd64","os":"linux"}}]}' \
    "$manifest" "$manifest_size" >"$scratch/oci/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$scratch/oci/oci-layout"
mkdir -p "$(dirname "$out")"
pack --directory "$scratch/oci" --file "$out" .
say "$out: sha256:$manifest"
