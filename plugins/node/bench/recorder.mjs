// node bench/recorder.mjs PLUGIN [RELEASE…]: what the recorder costs. PLUGIN is the folder with gc.js, such as target/release/node; the releases are
// those of scripts/nodes.sh, 20 22 24 unless named. Prints the unit costs that src/gc/budget.ts works with, and the CPU time of a program that allocates
// much, recorded against not recorded: pairs of processes that take turns at the same work in short blocks, so that a busy machine hits both.
import { fork } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(import.meta.url);
const PAIRS = Number(process.env.PAIRS ?? 8);
const BLOCKS = 24;
const WARM_UP = 6;
const UNITS = ['nothing', 'noticed', 'measured', 'one profile', 'four profiles'];

if (process.env.ROLE === 'units') await units(process.argv[2]);
else if (process.env.ROLE === 'program') program();
else await main(process.argv[2], process.argv.slice(3).map(Number));

async function main(plugin, releases) {
  const gc = path.resolve(plugin ?? 'target/release/node', 'gc.js');
  if (!fs.existsSync(gc)) throw new Error(`${gc} is missing: build it with scripts/node-plugin.sh`);
  for (const release of releases.length > 0 ? releases : [20, 22, 24]) {
    const node = path.resolve(path.dirname(here), `../../../.deps/nodes/node_modules/node${release}/bin/node`);
    console.log(`node ${release}, microseconds for each collection, median of 1200:`);
    const costs = await unitCosts(node);
    console.log(`  ${UNITS.slice(1).map((unit) => `${unit} +${costs[unit].toFixed(0)}`).join(', ')}`);
    const results = [];
    for (let pair = 0; pair < PAIRS; pair += 1) results.push(await compare(node, gc, costs));
    if (PAIRS > 0) report(results);
  }
}

async function unitCosts(node) {
  const costs = {};
  for (const unit of UNITS) costs[unit] = await new Promise((resolve) => start(node, 'units', [unit]).once('message', resolve));
  for (const unit of UNITS.slice(1)) costs[unit] -= costs.nothing;
  return costs;
}

// One after the other, the order changing, so that both have the same neighbours.
async function compare(node, gc, costs) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hasten-bench-'));
  const environment = { HASTEN_RUNTIME_DIR: folder, GC: gc };
  const sides = {
    plain: start(node, 'program', [], { ...environment, HASTEN_NODE_GC: '0' }),
    recorded: start(node, 'program', [], { ...environment, HASTEN_NODE_GC: 'record' }),
  };
  const times = { plain: [], recorded: [] };
  for (let block = 0; block < WARM_UP + BLOCKS; block += 1) {
    const order = block % 2 === 0 ? ['plain', 'recorded'] : ['recorded', 'plain'];
    for (const name of order) {
      const cpu = await new Promise((resolve) => {
        sides[name].once('message', resolve);
        sides[name].send('work');
      });
      if (block >= WARM_UP) times[name].push(cpu);
    }
  }
  await Promise.all(Object.values(sides).map((child) => new Promise((resolve) => child.once('exit', resolve).send('end'))));
  const [name] = fs.readdirSync(path.join(folder, 'gc'));
  const lines = fs.readFileSync(path.join(folder, 'gc', name), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
  fs.rmSync(folder, { recursive: true });
  const { events, detailed } = lines.at(-1);
  const cpu = (median(times.recorded) * (BLOCKS + WARM_UP)) / 1e6;
  const accounted = (detailed * costs.measured + (events - detailed) * costs.noticed) / 1e6 / cpu;
  return { accounted, ratio: median(times.recorded) / median(times.plain), least: Math.min(...times.recorded) / Math.min(...times.plain), rate: events / cpu, share: detailed / events };
}

function report(results) {
  const of = (name) => results.map((result) => result[name]).sort((a, b) => a - b);
  const percent = (ratio) => `${((ratio - 1) * 100).toFixed(2)} %`;
  const ratios = of('ratio');
  console.log(`  ${median(of('rate')).toFixed(0)} events for each second of CPU time, ${(median(of('share')) * 100).toFixed(0)} % of them measured`);
  console.log(`  by these figures the recorder takes ${(median(of('accounted')) * 100).toFixed(2)} % of the CPU time`);
  console.log(`  CPU time, recorded against plain, ${results.length} pairs of processes: median ${percent(median(ratios))}`);
  console.log(`  (from ${percent(ratios[0])} to ${percent(ratios.at(-1))}; by the fastest block ${percent(median(of('least')))})`);
}

function start(execPath, role, args, environment = {}) {
  return fork(here, args, { execPath, env: { PATH: process.env.PATH, ROLE: role, ...environment } });
}

// The same number of turns of an event loop, each with rows that become text and back again; some of them stay for a while.
async function program() {
  const { createRequire } = await import('node:module');
  createRequire(here)(process.env.GC).start();
  const kept = [];
  let turns = 0;
  const turn = () => {
    const rows = Array.from({ length: 300 }, (_, id) => ({ id, name: `row ${id}`, tags: [turns, id], nested: { at: turns } }));
    const copy = JSON.parse(JSON.stringify(rows));
    kept[turns % 400] = copy.slice(0, 100);
    turns += 1;
  };
  const work = (left, begin) => {
    turn();
    if (left > 0) setImmediate(work, left - 1, begin);
    else process.send(total(process.cpuUsage(begin)));
  };
  process.on('message', (message) => (message === 'work' ? work(150, process.cpuUsage()) : process.disconnect()));
}

// A small collection, and what is added to it by whoever watches.
async function units(unit) {
  const [v8, vm, { PerformanceObserver }] = await Promise.all([import('node:v8'), import('node:vm'), import('node:perf_hooks')]);
  v8.setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  globalThis.kept = Array.from({ length: 20000 }, (_, i) => ({ i, text: `row ${i}` }));
  for (let i = 0; i < 3; i += 1) gc();
  if (unit === 'noticed' || unit === 'measured') observe(PerformanceObserver, v8, unit === 'measured');
  const profilers = { 'one profile': 1, 'four profiles': 4 }[unit] ?? 0;
  globalThis.profilers = Array.from({ length: profilers }, () => new v8.GCProfiler());
  for (const profiler of globalThis.profilers) profiler.start();
  const times = [];
  for (let i = 0; i < 1500; i += 1) {
    const begin = process.hrtime.bigint();
    gc({ type: 'minor' });
    // The observer is heard of in the next turns.
    for (let next = 0; next < 3; next += 1) await new Promise((resolve) => setImmediate(resolve));
    if (i >= 300) times.push(Number(process.hrtime.bigint() - begin) / 1000);
  }
  process.send(median(times), () => process.disconnect());
}

// As the recorder does it: a line for each event, and a new profile behind each.
function observe(PerformanceObserver, v8, isMeasured) {
  let profiler = null;
  const observer = new PerformanceObserver((list) => {
    const [profile] = profiler?.stop().statistics ?? [];
    if (isMeasured) {
      profiler = new v8.GCProfiler();
      profiler.start();
    }
    for (const { startTime, duration, detail } of list.getEntries()) {
      globalThis.line = JSON.stringify({ gc: detail.kind, at_ms: startTime, pause_ms: duration, flags: '', before: profile?.beforeGC, after: profile?.afterGC });
    }
  });
  observer.observe({ entryTypes: ['gc'] });
}

function total({ user, system }) {
  return user + system;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
