#!/usr/bin/env bash
# apt-repository.sh DEB FOLDER: the files of an apt repository with this package, to be served from anywhere. Signed with
# RELEASE_KEY (what `gpg --local-user` takes, in the caller's key ring), if that is set; RELEASE_URL is where FOLDER will be.
source "$(dirname "$0")/release-lib.sh"

deb=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
list=main/binary-amd64
pool=pool/main/h/hasten

main() {
    rm -rf "${folder:?}"/{pool,dists,hasten.sources,hasten-archive-keyring.gpg}
    mkdir -p "$folder/$pool" "$folder/dists/stable/$list"
    cp "$deb" "$folder/$pool/"
    cd "$folder"
    dpkg-scanpackages --multiversion pool 2>/dev/null >"dists/stable/$list/Packages"
    gzip --best --no-name --keep "dists/stable/$list/Packages"
    cd dists/stable
    release >Release
    if [[ -n ${RELEASE_KEY:-} ]]; then sign; else
        say "The apt repository is not signed, so apt refuses it without \`Trusted: yes\`: set RELEASE_KEY to a key of your gpg"
    fi
    source_of_apt >"$folder/hasten.sources"
}

release() {
    local file
    cat <<-END
		Origin: hasten
		Label: hasten
		Suite: stable
		Codename: stable
		Date: $(LC_ALL=C date --utc --date="@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S UTC')
		Architectures: amd64
		Components: main
		Description: hasten, the same work of stock servers with less CPU
		SHA256:
	END
    for file in "$list"/Packages{,.gz}; do
        printf ' %s %d %s\n' "$(sha256sum "$file" | cut -d ' ' -f 1)" "$(stat --format=%s "$file")" "$file"
    done
}

sign() {
    local gpg=(gpg --batch --yes --local-user "$RELEASE_KEY" --digest-algo SHA512)
    "${gpg[@]}" --clearsign --output InRelease Release &&
        "${gpg[@]}" --detach-sign --armor --output Release.gpg Release &&
        gpg --batch --yes --export --output "$folder/hasten-archive-keyring.gpg" "$RELEASE_KEY" ||
        die "gpg cannot sign with RELEASE_KEY=$RELEASE_KEY: see \`gpg --list-secret-keys\`"
}

# What a user puts into /etc/apt/sources.list.d.
source_of_apt() {
    printf 'Types: deb\nURIs: %s\nSuites: stable\nComponents: main\nArchitectures: amd64\n' "${RELEASE_URL:-https://SET-RELEASE_URL.invalid}"
    [[ -z ${RELEASE_KEY:-} ]] || echo 'Signed-By: /usr/share/keyrings/hasten-archive-keyring.gpg'
}

main
