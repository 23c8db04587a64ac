// A JSON API under allocation pressure: every request builds 300 rows that stay alive while it waits 5 ms, as for a
// database, so with 64 requests on their way some twenty thousand objects outlive each collection of the young
// generation.
//
// `app.js FILE` listens on a free port of loopback, or on the one that PORT names, and writes its number to FILE, if any.
'use strict';

const { renameSync, writeFileSync } = require('node:fs');
const { setTimeout: wait } = require('node:timers/promises');

const fastify = require('fastify');

const ROWS = 300;
const CITIES = ['Bergen', 'Ghent', 'Graz', 'Lyon', 'Porto', 'Utrecht', 'Vilnius'];

function row(index, page) {
  const id = page * ROWS + index;
  return {
    id,
    name: `customer ${id}`,
    email: `customer.${id}@example.org`,
    city: CITIES[id % CITIES.length],
    balance: (id * 7919) % 10007,
    tags: [`t${id % 13}`, `t${id % 17}`],
    address: { street: `street ${id % 100}`, number: id % 250, zip: String(10000 + (id % 80000)) },
  };
}

async function customers(request) {
  const page = Number(request.params.page);
  const rows = Array.from({ length: ROWS }, (_, index) => row(index, page));
  await wait(5);
  const byCity = new Map();
  for (const { city, balance } of rows) {
    byCity.set(city, (byCity.get(city) ?? 0) + balance);
  }
  const richest = rows.filter(({ balance }) => balance > 2000).sort((a, b) => b.balance - a.balance || a.id - b.id);
  return { rows: rows.length, totals: Object.fromEntries(byCity), richest: richest.slice(0, 40) };
}

async function main(file) {
  const server = fastify();
  server.get('/customers/:page', customers);
  await server.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) });
  if (file === undefined) return;
  writeFileSync(`${file}.tmp`, String(server.server.address().port));
  renameSync(`${file}.tmp`, file);
}

main(process.argv[2]);
