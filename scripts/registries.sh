#!/usr/bin/env bash
# registries.sh TARGET FOLDER: TARGET/release/dist/tree as a wheel for pip and pipx, and as a package for npm, in FOLDER. Both put
# bin and lib beside each other, where the command looks for its libraries; neither runs anything when it is installed. The same
# tree makes the same files.
source "$(dirname "$0")/release-lib.sh"

tree=$1/release/dist/tree
folder=$(realpath --canonicalize-missing "$2")
summary='The servers you already run, doing the same work with less CPU'

main() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$folder"
    rm -f "$folder"/hasten-*.whl "$folder"/hasten-*.tgz
    wheel
    npm_package
}

# What both carry: the command, its libraries, the manual pages and the licences.
contents() {
    mkdir -p "$1/share/doc/hasten" "$1/share/man"
    cp -a "$tree/lib/hasten" "$2/"
    cp -a "$tree/share/man/man1" "$1/share/man/"
    cp "$tree"/share/doc/hasten/{LICENSE,NOTICES} "$1/share/doc/hasten/"
}

# A wheel's data folder goes below the prefix of the environment, its scripts into bin.
wheel() {
    local root=$scratch/wheel floor name=hasten-$version
    local info=$root/$name.dist-info data=$root/$name.data
    floor=$(sed -n 's/^floor=//p' scripts/floor.sh)
    local tag=py3-none-manylinux_${floor/./_}_x86_64
    mkdir -p "$info" "$data/scripts" "$data/data/lib"
    cp "$tree/bin/hasten" "$data/scripts/"
    contents "$data/data" "$data/data/lib"
    printf 'Metadata-Version: 2.1\nName: hasten\nVersion: %s\nSummary: %s\nLicense: Apache-2.0\nRequires-Python: >=3.8\n' \
        "$version" "$summary" >"$info/METADATA"
    printf 'Wheel-Version: 1.0\nGenerator: hasten\nRoot-Is-Purelib: false\nTag: %s\n' "$tag" >"$info/WHEEL"
    python3 - "$root" "$folder/$name-$tag.whl" "$SOURCE_DATE_EPOCH" <<-'PYTHON'
		import base64, hashlib, os, sys, time, zipfile
		from pathlib import Path

		root, wheel, epoch = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
		# The format knows no time before 1980.
		date = time.gmtime(max(epoch, 315532800))[:6]
		record = next(root.glob("*.dist-info")) / "RECORD"
		lines = []
		with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
		    def add(path, data):
		        entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), date)
		        mode = 0o755 if path.parent.name == "scripts" else 0o644
		        entry.external_attr = (0o100000 | mode) << 16
		        archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
		    for path in sorted(p for p in root.rglob("*") if p.is_file()):
		        data = path.read_bytes()
		        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
		        lines.append(f"{path.relative_to(root).as_posix()},sha256={digest},{len(data)}\n")
		        add(path, data)
		    lines.append(f"{record.relative_to(root).as_posix()},,\n")
		    add(record, "".join(lines).encode())
	PYTHON
    say "$folder/$name-$tag.whl"
}

# npm links bin/hasten from its own bin, and the kernel follows the link: what is beside it is found.
npm_package() {
    local root=$scratch/npm/package
    mkdir -p "$root/bin" "$root/lib"
    cp "$tree/bin/hasten" "$root/bin/"
    contents "$root" "$root/lib"
    cp README.md LICENSE "$root/"
    cat >"$root/package.json" <<-JSON
		{
		  "name": "hasten",
		  "version": "$version",
		  "description": "$summary",
		  "license": "Apache-2.0",
		  "bin": { "hasten": "bin/hasten" },
		  "os": ["linux"],
		  "cpu": ["x64"],
		  "libc": ["glibc"]
		}
	JSON
    tar --create --directory "$scratch/npm" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" \
        --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX package |
        gzip --best --no-name >"$folder/hasten-$version.tgz"
    say "$folder/hasten-$version.tgz"
}

main
