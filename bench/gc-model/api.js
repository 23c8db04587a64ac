// A JSON API under load: 64 requests in flight, each with rows that stay alive across a timer of 2 to 8 ms.
// The loop is closed, so that an object's life, counted in bytes allocated meanwhile, does not depend on the machine.
'use strict';

const REQUESTS = Number(process.argv[2] || 3600);
const IN_FLIGHT = 64;
const ROWS = 300;

let started = 0;
let finished = 0;
let bytes = 0;

function rows(id) {
  const list = [];
  for (let i = 0; i < ROWS; i++) {
    const key = (id * 31 + i * 17) % 9973;
    list.push({ id: key, name: 'item-' + key, price: key * 1.19, tags: ['a' + (key % 7), 'b' + (key % 11)], stock: { here: key & 63, there: key & 31 } });
  }
  return list;
}

function respond(list, query) {
  const filtered = list.filter((row) => row.stock.here >= query.least);
  const shaped = filtered.map((row) => ({ ...row, total: row.price * query.count, label: row.name.toUpperCase() }));
  const body = JSON.stringify({ count: shaped.length, rows: shaped });
  bytes += body.length + JSON.parse(body).count;
}

function next() {
  if (started === REQUESTS) return;
  const id = started++;
  const query = JSON.parse(`{"least": ${id % 32}, "count": ${(id % 5) + 1}}`);
  const list = rows(id);
  setTimeout(() => {
    respond(list, query);
    finished++;
    if (finished === REQUESTS) console.log(`api ${finished} ${bytes}`);
    else next();
  }, 2 + (id % 7));
}

for (let i = 0; i < IN_FLIGHT; i++) next();
