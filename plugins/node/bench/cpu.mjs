// node bench/cpu.mjs PLUGIN OUT [RELEASE…]: what a CPU profile beside a recording costs, as JSON into OUT. PLUGIN is the folder with gc.js, such as
// target/release/node. In one process, turns of the same work take place with a recording of collections alone and with one that has a CPU profile, in
// turns: CPU time of the whole process, its sampling thread and signals included. Also what a start of V8's profiler costs, by the size of the heap.
import { fork } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(import.meta.url);
const PAIRS = Number(process.env.PAIRS ?? 20);
const TURNS = 1500;
const INTERVALS_US = [1000, 100];
const HEAPS_MB = [0, 100, 400];

async function main(plugin, out, releases) {
  const gc = path.resolve(plugin, 'gc.js');
  if (!fs.existsSync(gc)) throw new Error(`${gc} is missing: build it with scripts/node-plugin.sh`);
  const found = [];
  for (const release of releases.length > 0 ? releases : [20, 24]) {
    const node = path.resolve(path.dirname(here), `../../../.deps/nodes/node_modules/node${release}/bin/node`);
    const overhead = [];
    for (const interval of INTERVALS_US) overhead.push({ interval_us: interval, ...(await compare(node, gc, interval)) });
    const starts = [];
    for (const megabytes of HEAPS_MB) starts.push(await startOf(node, gc, megabytes));
    found.push({ release, overhead, starts });
    console.log(JSON.stringify(found.at(-1)));
  }
  const [cpu] = os.cpus();
  const host = { cpu: cpu.model.trim(), cores: os.cpus().length, kernel: os.release(), load: os.loadavg()[0] };
  fs.writeFileSync(out, `${JSON.stringify({ workload: 'gc-cpu', host, time: new Date().toISOString(), pairs: PAIRS, turns: TURNS, found }, null, 1)}\n`);
}

// With and without, without and with, and so forth.
async function compare(node, gc, interval) {
  const subject = await Subject.start(node, gc, 0);
  for (let warm = 0; warm < 2; warm += 1) await subject.work();
  const pairs = [];
  for (let pair = 0; pair < PAIRS; pair += 1) {
    const order = pair % 2 === 0 ? [false, true] : [true, false];
    const cpu = {};
    for (const isProfiled of order) cpu[isProfiled] = await subject.recorded(isProfiled ? interval : undefined);
    pairs.push(cpu.true / cpu.false);
  }
  await subject.end();
  pairs.sort((a, b) => a - b);
  return { median: median(pairs), interval: ranks(pairs), pairs };
}

// CPU time from the request to its answer, which waits for the profiler: on a machine at rest, the program stands still as long.
async function startOf(node, gc, megabytes) {
  const subject = await Subject.start(node, gc, megabytes);
  const times = { profiled: [], alone: [] };
  for (let run = 0; run < 7; run += 1) {
    for (const [name, interval] of [['alone', undefined], ['profiled', 1000]]) {
      const begin = await subject.ask('cpu');
      const { file } = await subject.begin(interval);
      times[name].push(((await subject.ask('cpu')) - begin) / 1000);
      await subject.stop();
      fs.rmSync(file);
    }
  }
  const heap_bytes = await subject.ask('heap');
  await subject.end();
  return { heap_bytes, profiled_cpu_ms: median(times.profiled), alone_cpu_ms: median(times.alone), runs_cpu_ms: times };
}

class Subject {
  #child;
  #folder;
  #socket;
  #text = '';
  #waiting = null;

  static async start(node, gc, megabytes) {
    const subject = new Subject();
    subject.#folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hasten-bench-'));
    const env = { PATH: process.env.PATH, ROLE: 'program', GC: gc, MEGABYTES: String(megabytes), HASTEN_RUNTIME_DIR: subject.#folder };
    subject.#child = fork(here, [], { execPath: node, env });
    await new Promise((resolve) => subject.#child.once('message', resolve));
    subject.#socket = net.connect(path.join(subject.#folder, 'node', `${subject.#child.pid}.sock`)).setEncoding('utf8');
    subject.#socket.on('data', (text) => subject.#read(text));
    return subject;
  }

  ask(what) {
    return new Promise((resolve) => this.#child.once('message', resolve).send(what));
  }

  work() {
    return this.ask('work');
  }

  async recorded(interval) {
    const { file } = await this.begin(interval);
    const cpu = await this.work();
    await this.stop();
    fs.rmSync(file);
    return cpu;
  }

  async begin(interval) {
    const answer = await this.#order({ op: 'record', seconds: 3600, ...(interval && { cpu_interval_us: interval }) });
    if (!answer.ok) throw new Error(answer.error);
    return answer;
  }

  stop() {
    return this.#order({ op: 'stop' });
  }

  async end() {
    this.#socket.destroy();
    await new Promise((resolve) => this.#child.once('exit', resolve).send('end'));
    fs.rmSync(this.#folder, { recursive: true });
  }

  #order(request) {
    this.#socket.write(`${JSON.stringify(request)}\n`);
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  #read(text) {
    const lines = (this.#text + text).split('\n');
    this.#text = lines.pop();
    for (const answer of lines.map((line) => JSON.parse(line))) if (answer.done || answer.ok !== undefined) this.#waiting?.(answer);
  }
}

// Rows that become text and back again, in turns of the event loop.
async function program() {
  const { createRequire } = await import('node:module');
  createRequire(here)(process.env.GC).start();
  const ballast = [];
  for (let i = 0; i < Number(process.env.MEGABYTES) * 8000; i += 1) ballast.push({ i, nested: { at: i }, text: `row ${i}` });
  let turns = 0;
  const turn = () => {
    const rows = Array.from({ length: 300 }, (_, id) => ({ id, name: `row ${id}`, tags: [turns, id], nested: { at: turns } }));
    ballast.last = JSON.parse(JSON.stringify(rows)).length;
    turns += 1;
  };
  const cpu = (begin) => {
    const { user, system } = process.cpuUsage(begin);
    return user + system;
  };
  const work = (left, begin) => {
    turn();
    if (left > 0) return setImmediate(work, left - 1, begin);
    process.send(cpu(begin));
  };
  process.on('message', (message) => {
    if (message === 'work') work(TURNS, process.cpuUsage());
    else if (message === 'cpu') process.send(cpu());
    else if (message === 'heap') process.send(process.memoryUsage().heapUsed);
    else process.disconnect();
  });
  setTimeout(() => process.send('ready'), 300);
}

// The interval of the median, with 95 % confidence, whatever the distribution.
function ranks(sorted) {
  const half = 0.98 * Math.sqrt(sorted.length);
  const at = (rank) => sorted[Math.max(0, Math.min(sorted.length - 1, Math.round(rank)))];
  return [at(sorted.length / 2 - half - 0.5), at(sorted.length / 2 + half - 0.5)];
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

if (process.env.ROLE) await program();
else await main(process.argv[2], process.argv[3], process.argv.slice(4).map(Number));
