// node bench/recorder.mjs PLUGIN [RELEASE…]: what the recorder costs. PLUGIN is the folder with gc.js, such as target/release/node; the releases are
// those of scripts/nodes.sh, 20 22 24 unless named. Prints the unit costs that src/gc/budget.ts works with, and the CPU time of a program that allocates
// much, recorded against not recorded: one process, in which recordings are switched on and off in turns, since two processes differ by more than is looked for.
import { fork } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(import.meta.url);
const PAIRS = Number(process.env.PAIRS ?? 20);
const PROCESSES = Number(process.env.PROCESSES ?? 3);
// Two to three seconds of CPU time.
const TURNS = 4000;
const WARM_UP = 2;
const UNITS = ['nothing', 'noticed', 'measured', 'one profile', 'four profiles'];

// The socket on which a process takes orders, see docs/gc-recorder.md.
class Channel {
  #socket;
  #text = '';
  #waiting = null;

  static open(place) {
    const channel = new Channel();
    return new Promise((resolve, reject) => {
      channel.#socket = net.connect(place, () => resolve(channel)).once('error', reject).setEncoding('utf8');
      channel.#socket.on('data', (text) => channel.#read(text));
    });
  }

  // Of a recording, the answer to its beginning and that to its end.
  ask(request) {
    this.#socket.write(`${JSON.stringify(request)}\n`);
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  close() {
    this.#socket.destroy();
  }

  #read(text) {
    const lines = (this.#text + text).split('\n');
    this.#text = lines.pop();
    for (const answer of lines.map((line) => JSON.parse(line))) if (answer.done || answer.ok !== undefined) this.#waiting?.(answer);
  }
}

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
    for (let process = 0; process < PROCESSES; process += 1) results.push(await compare(node, gc, costs));
    if (PROCESSES > 0) report(results);
  }
}

async function unitCosts(node) {
  const costs = {};
  for (const unit of UNITS) costs[unit] = await new Promise((resolve) => start(node, 'units', [unit]).once('message', resolve));
  for (const unit of UNITS.slice(1)) costs[unit] -= costs.nothing;
  return costs;
}

// On off, off on, and so forth: neighbours have the same heap, the same code and the same neighbours on the machine.
async function compare(node, gc, costs) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hasten-bench-'));
  const child = start(node, 'program', [], { HASTEN_RUNTIME_DIR: folder, GC: gc });
  const work = () => new Promise((resolve) => child.once('message', resolve).send('work'));
  await new Promise((resolve) => child.once('message', resolve));
  const channel = await Channel.open(path.join(folder, 'node', `${child.pid}.sock`));
  for (let block = 0; block < WARM_UP; block += 1) await work();
  const pairs = [];
  const seen = { events: 0, detailed: 0, cpu: 0 };
  for (let pair = 0; pair < PAIRS; pair += 1) {
    const plain = pair % 2 === 0 ? await work() : undefined;
    await channel.ask({ op: 'record', seconds: 600 });
    const recorded = await work();
    const { file } = await channel.ask({ op: 'stop' });
    const { events, detailed } = JSON.parse(fs.readFileSync(file, 'utf8').trimEnd().split('\n').at(-1));
    fs.rmSync(file);
    seen.events += events;
    seen.detailed += detailed;
    seen.cpu += recorded / 1e6;
    pairs.push(recorded / (plain ?? (await work())));
  }
  channel.close();
  await new Promise((resolve) => child.once('exit', resolve).send('end'));
  fs.rmSync(folder, { recursive: true });
  const accounted = (seen.detailed * costs.measured + (seen.events - seen.detailed) * costs.noticed) / 1e6 / seen.cpu;
  return { accounted, pairs, rate: seen.events / seen.cpu, share: seen.detailed / seen.events };
}

function report(results) {
  const of = (name) => median(results.map((result) => result[name]));
  const pairs = results.flatMap((result) => result.pairs).sort((a, b) => a - b);
  const percent = (ratio) => `${((ratio - 1) * 100).toFixed(2)} %`;
  console.log(`  ${of('rate').toFixed(0)} events for each second of CPU time, ${(of('share') * 100).toFixed(0)} % of them measured`);
  console.log(`  by these figures the recorder takes ${(of('accounted') * 100).toFixed(2)} % of the CPU time`);
  console.log(`  CPU time, recorded against not recorded, ${pairs.length} pairs in ${results.length} processes: median ${percent(median(pairs))} [${interval(pairs).map(percent).join(', ')}]`);
  console.log(`  (quartiles ${percent(pairs[Math.floor(pairs.length / 4)])} and ${percent(pairs[Math.floor((pairs.length * 3) / 4)])}; each process ${results.map((result) => percent(median(result.pairs))).join(', ')})`);
}

// That of the median, with 95 % confidence: between these ranks it lies, whatever the distribution.
function interval(sorted) {
  const half = 0.98 * Math.sqrt(sorted.length);
  const at = (rank) => sorted[Math.max(0, Math.min(sorted.length - 1, Math.round(rank)))];
  return [at(sorted.length / 2 - half - 0.5), at(sorted.length / 2 + half - 0.5)];
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
  process.on('message', (message) => (message === 'work' ? work(TURNS, process.cpuUsage()) : process.disconnect()));
  process.send('ready');
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
