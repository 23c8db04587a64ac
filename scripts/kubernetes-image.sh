#!/usr/bin/env bash
# kubernetes-image.sh TARGET OUT.tar: the image of the chart as an OCI archive, from what `make dist` has built, without a
# daemon and without a base image; beside it what it is made of (SPDX), the chart as Helm wants it, and plain manifests. The same
# input makes the same bytes, which is checked by making them twice.
source "$(dirname "$0")/release-lib.sh"

target=$(realpath -m "$1")
tree=$target/release/dist/tree
out=$(realpath -m "$2")

[[ -x $tree/bin/hasten ]] || die "nothing has been built: run \`make dist\` first"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

pack() { tar --create --sort=name --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu "$@"; }

# What the command is linked with, loader included, from this system's C library.
libraries() { ldd "$tree/bin/hasten" | grep -o '/[^ ]*'; }

# contents ROOT: the file system of the image.
contents() {
    local file
    install -D -m 755 "$target/release/hasten-k8s" "$1/usr/bin/hasten-k8s"
    install -D -m 755 "$tree/bin/hasten" "$1/usr/bin/hasten"
    mkdir -p "$1/usr/lib" && cp -r "$tree/lib/hasten" "$1/usr/lib/"
    while read -r file; do install -D -m 755 "$file" "$1$file"; done < <(libraries)
}

# blob FOLDER FILE: puts it where its hash says, and prints "HASH SIZE".
blob() {
    local hash
    hash=$(sha256sum "$2" | cut -d ' ' -f 1)
    mkdir -p "$1/blobs/sha256"
    cp "$2" "$1/blobs/sha256/$hash"
    printf '%s %s' "$hash" "$(stat -c %s "$2")"
}

# image FOLDER: an OCI archive there, called image.tar, and its digest, called digest.
image() {
    local work=$1 created plain layer layer_size config config_size manifest manifest_size
    mkdir -p "$work/root" "$work/oci"
    contents "$work/root"
    pack --directory "$work/root" --file "$work/layer.tar" .
    plain=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
    gzip --no-name "$work/layer.tar"
    read -r layer layer_size <<<"$(blob "$work/oci" "$work/layer.tar.gz")"
    created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)
    printf '{"created":"%s","architecture":"amd64","os":"linux","config":{"User":"65532","Entrypoint":["/usr/bin/hasten-k8s"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "$created" "$plain" >"$work/config.json"
    read -r config config_size <<<"$(blob "$work/oci" "$work/config.json")"
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:%s","size":%s}]}' \
        "$config" "$config_size" "$layer" "$layer_size" >"$work/manifest.json"
    read -r manifest manifest_size <<<"$(blob "$work/oci" "$work/manifest.json")"
    printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":"amd64","os":"linux"}}]}' \
        "$manifest" "$manifest_size" >"$work/oci/index.json"
    printf '{"imageLayoutVersion":"1.0.0"}' >"$work/oci/oci-layout"
    pack --directory "$work/oci" --file "$work/image.tar" .
    printf '%s' "$manifest" >"$work/digest"
}

# bill DIGEST: a bill of materials of the image.
bill() {
    local libc
    libc=$(dpkg-query --search "$(libraries | head -n 1)" 2>/dev/null | cut -d : -f 1 || true)
    {
        linked hasten hasten-tls hasten-gzip hasten-envoy
        scripts/go.sh version -m "$target/release/hasten-k8s" | awk '$1 == "dep" { print "golang", $2, $3 }'
        [[ -z $libc ]] || dpkg-query --show --showformat='deb ${source:Package} ${Version}\n' "$libc"
    } | python3 scripts/sbom.py "$1"
}

scripts/kubernetes.sh build "$target"
image "$scratch/one"
(umask 077 && image "$scratch/two")
cmp "$scratch/one/image.tar" "$scratch/two/image.tar" || die "the same input has made two different images: do not publish either"
digest=$(<"$scratch/one/digest")
folder=$(dirname "$out")
mkdir -p "$folder"
mv "$scratch/one/image.tar" "$out"
bill "$digest" >"${out%.tar}.spdx.json"
# Links to what packaging has for everybody else become files.
version=$(sed -n 's/^version: //p' packaging/kubernetes/chart/Chart.yaml)
pack --dereference --transform 's,^chart,hasten,' --directory packaging/kubernetes chart | gzip --no-name >"$folder/hasten-$version.tgz"
(cd plugins/kubernetes && "$root/scripts/go.sh" run ./cmd/chart "$root/packaging/kubernetes/chart" hasten-system) >"$folder/hasten.yaml" 2>/dev/null
say "$out: sha256:$digest"
