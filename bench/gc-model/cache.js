// A cache under churn, fed by a stream of JSON lines: an entry lives until 4000 younger ones have pushed it out, what a
// line is parsed into only while the line is looked at. Half of the lines ask for the few users that are always there;
// every fifth hit replaces the entry that it finds.
'use strict';

const LINES = Number(process.argv[2] || 360000);
const ENTRIES = 4000;

const cache = new Map();
let hits = 0;
let bytes = 0;

function line(id) {
  const key = id % 2 === 0 ? (id * 7919) % 20011 : (id * 31) % 1009;
  return `{"id":${id},"user":"user-${key}","score":${key / 7},"path":["home","list","item-${key % 101}"],` +
    `"agent":{"name":"browser ${key % 13}","version":[${key % 90},${id % 10}]},"text":"${'lorem ipsum '.repeat(1 + (key % 9))}"}`;
}

function visit(id) {
  const record = JSON.parse(line(id));
  const key = record.user;
  const found = cache.get(key);
  if (found) {
    hits++;
    if (hits % 5 !== 0) {
      found.seen += 1;
      return found.words.length;
    }
    cache.delete(key);
  }
  const words = record.text.split(' ').map((word, at) => ({ word, at }));
  cache.set(key, { words, record, seen: 1, body: JSON.stringify(record) });
  if (cache.size > ENTRIES) cache.delete(cache.keys().next().value);
  return words.length;
}

let id = 0;
function batch() {
  for (let i = 0; i < 64 && id < LINES; i++) bytes += visit(id++);
  if (id < LINES) setImmediate(batch);
  else console.log(`cache ${hits} ${bytes}`);
}
batch();
