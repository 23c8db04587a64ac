#!/usr/bin/env bash
# rpm.sh TARGET FOLDER [RELEASE]: the RPM of TARGET/release/dist/tree, in FOLDER. The same tree makes the same file. It is made by
# rpmbuild, which alone can write triggers on files.
source "$(dirname "$0")/release-lib.sh"

tree=$1/release/dist/tree
folder=$2
revision=${3:-1}

main() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    root=$scratch/root
    mkdir -p "$root" "$folder" "$scratch/sources"
    cp -a "$tree" "$root/usr"
    as_red_hat_has_it
    { cat packaging/farewell.sh && echo '[ "$1" -ne 0 ] || farewell'; } >"$scratch/sources/preun"
    # Others shall read it, whatever this shell's umask.
    chmod -R u=rwX,go=rX "$root"
    find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    rm -f "$folder"/hasten-*.x86_64.rpm
    build >"$scratch/log" 2>&1 || die "rpmbuild failed: $(tail -n 5 "$scratch/log")"
    find "$scratch/made" -name '*.rpm' -exec mv {} "$folder/" \;
    say "$folder/hasten-$version-$revision.x86_64.rpm"
}

as_red_hat_has_it() {
    local share=$root/usr/share
    gzip --best --no-name "$share"/man/man1/*.1
    # rpm has a list and sums of its own.
    rm "$share/hasten/SHA256SUMS"
    mkdir -p "$share/licenses/hasten"
    mv "$share/doc/hasten/LICENSE" "$share/licenses/hasten/"
}

# Nothing is stripped, compressed or looked for in what is packed, and nothing of this machine gets in. Every rpm since 2011
# unpacks xz.
build() {
    local settings=(
        "hasten_version $version" "hasten_release $revision" "hasten_sources $scratch/sources"
        "_topdir $scratch/top" "_rpmdir $scratch/made" "_dbpath $scratch/db" "_tmppath $scratch"
        "_build_id_links none" "debug_package %{nil}" "__os_install_post %{nil}" "__check_files %{nil}"
        "_buildhost hasten.invalid" "use_source_date_epoch_as_buildtime 1" "clamp_mtime_to_source_date_epoch 1"
        "packager ${RELEASE_MAINTAINER:-hasten maintainers <maintainers@hasten.invalid>}" "optflags -O2"
        "_binary_payload ${RPM_PAYLOAD:-w6.xzdio}" "_docdir /usr/share/doc"
    )
    env LC_ALL=C HOME="$scratch" rpmbuild "${settings[@]/#/--define=}" --target x86_64-unknown-linux \
        --buildroot "$root" --noclean -bb packaging/rpm/hasten.spec
}

main
