#!/usr/bin/env bash
# core-heap.sh OUT [SESSIONS]: a core file of a heap with 18 million objects, to measure `hasten core` with:
# cargo run --release -p hasten-corefile --example cost -- OUT .deps/nodes/node_modules/node22/bin/node OUT.json
out=$(realpath -m "${1:?usage: core-heap.sh OUT [SESSIONS]}")
sessions=${2:-2300000}
source "$(dirname "$0")/lib.sh"

node=.deps/nodes/node_modules/node22/bin/node
[[ -x $node ]] || die "$node is missing: scripts/nodes.sh brings it"
hasten=target/release/hasten
[[ -x $hasten ]] || die "$hasten is missing: cargo build --release --package hasten"

coproc app { exec "$node" --max-old-space-size=8192 -e '
class Session {
    constructor(i) { this.id = i; this.user = { name: "user-" + i, at: [i, i + 0.5] }; this.seen = i + 0.25; }
}
globalThis.sessions = new Map();
for (let i = 0; i < Number(process.argv[1]); i++) sessions.set("session-" + i, new Session(i));
console.log("ready");
setInterval(() => {}, 1000);
' "$sessions"; }
pid=$app_PID
trap 'kill "$pid" 2>/dev/null || true' EXIT
read -r _ <&"${app[0]}"
rm -f "$out.zst"
"$hasten" snapshot "$pid" --out "$out.zst"
zstd --decompress --force --quiet --rm "$out.zst" -o "$out"
