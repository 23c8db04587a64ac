// A CPU profile beside a recording: it says where the time went, and nothing of it remains, however it ends.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { App, type RunOptions } from '../support/app';
import { eager, plugin } from '../support/places';
import { onEach, type Release } from '../support/releases';
import { until } from '../support/waiting';
import { type Client, type Line, lines, recorded, recordings, Subject, withRecorder } from './recorded';

// Does something every few milliseconds: seven parts of ten in one function, three in another, both too long to become part of their callers. It counts the sessions that are open, and answers orders on standard input.
const PROGRAM = `
process.on('uncaughtException', (error) => console.log('CAUGHT', error));
process.on('warning', (warning) => console.log('CAUGHT', warning));
const { Session } = require('node:inspector');
let open = 0;
for (const [name, by] of [['connect', 1], ['disconnect', -1]]) {
  const original = Session.prototype[name];
  Session.prototype[name] = function () { open += by; return original.call(this); };
}
const hotSeven = (until) => { let sum = 0; while (process.hrtime.bigint() < until) for (let i = 0; i < 500; i += 1) { ${'sum += Math.sqrt(i);'.repeat(40)} } return sum; };
const hotThree = (until) => { let sum = 0; while (process.hrtime.bigint() < until) for (let i = 0; i < 500; i += 1) { ${'sum += Math.cbrt(i);'.repeat(40)} } return sum; };
const orders = {
  sessions: () => console.log('OPEN', open),
  profile: () => {
    globalThis.own = new Session();
    own.connect();
    own.post('Profiler.enable');
    own.post('Profiler.start');
    console.log('STARTED');
  },
  result: () => own.post('Profiler.stop', (error, result) => console.log('OWN', error, result.profile.nodes.some(({ callFrame }) => callFrame.functionName === 'hotSeven'))),
};
// CPU time rather than wall time: whoever shares the machine takes from both alike.
const spend = (work, ms) => { const { user } = process.cpuUsage(); while (process.cpuUsage().user - user < ms * 1000) work(process.hrtime.bigint() + 200000n); };
const turn = setInterval(() => { spend(hotSeven, 7); spend(hotThree, 3); }, 15);
process.stdin.on('data', (text) => { for (const order of String(text).trim().split('\\n')) orders[order](); }).on('end', () => clearInterval(turn));
`;

const SOME = { only: [18, 22, 26] };

async function start(release: Release, t: { after(fn: () => unknown): void }, script = PROGRAM, options: RunOptions = {}, from = plugin): Promise<Subject> {
  const app = withRecorder(App.create(t as never, {}), from);
  const subject = await Subject.start(app, release, script, options);
  t.after(() => subject.kill());
  return subject;
}

/** Whether V8 samples any thread: it interrupts it by a signal, for which it has a handler then, and has a thread for it. */
function isSampled(subject: Subject): boolean {
  const SIGPROF = 27n;
  const status = fs.readFileSync(`/proc/${subject.child.pid}/status`, 'utf8');
  const caught = BigInt(`0x${/^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1]}`);
  return (caught & (1n << (SIGPROF - 1n))) !== 0n;
}

async function order(subject: Subject, what: string, answer: RegExp): Promise<string> {
  subject.child.stdin?.write(`${what}\n`);
  await until(() => answer.test(subject.output));
  return answer.exec(subject.output)?.[0] as string;
}

interface Told {
  readonly start: Line;
  readonly end: Line | undefined;
  /** Milliseconds in each function, by its name and script. */
  readonly self: Map<string, number>;
  readonly scripts: Set<string>;
}

/** What the lines of a profile say, each of which refers only to what came before it; that of a worker by its number. */
function told(lines: readonly Line[], worker?: number): Told {
  const found = lines.filter((line) => line['worker'] === worker);
  const functions: [string, string, number, number][] = [];
  const nodes: number[] = [];
  const self = new Map<string, number>();
  let at = 0;
  for (const line of found) {
    if (line['cpu'] === 'functions') {
      assert.equal(line['first'], functions.length);
      functions.push(...line['functions']);
    } else if (line['cpu'] === 'nodes') {
      assert.equal(line['first'], nodes.length + 1);
      for (let i = 0; i < line['nodes'].length; i += 2) {
        assert.ok(line['nodes'][i] <= nodes.length && line['nodes'][i + 1] < functions.length);
        nodes.push(line['nodes'][i + 1]);
      }
    } else if (line['cpu'] === 'samples') {
      assert.ok(line['from_ms'] >= at - 0.1, `${line['from_ms']} is before ${at}`);
      at = line['from_ms'];
      for (let i = 0; i < line['runs'].length; i += 3) {
        const [node, count, us] = line['runs'].slice(i, i + 3);
        const name = functions[nodes[node - 1] as number]?.[0] as string;
        assert.ok(name !== undefined && count > 0 && us >= 0);
        self.set(name, (self.get(name) ?? 0) + us / 1000);
        at += us / 1000;
      }
    }
  }
  const of = (kind: string) => found.find((line) => line['cpu'] === kind);
  return { start: of('start') as Line, end: of('end'), self, scripts: new Set(functions.map(([, script]) => script)) };
}

async function profiled(client: Client, seconds: number, interval = 1000): Promise<Line> {
  const begun = await client.ask({ op: 'record', seconds, cpu_interval_us: interval });
  assert.deepEqual([begun['ok'], begun['cpu_interval_us']], [true, interval], JSON.stringify(begun));
  return begun;
}

onEach('a profile says where the time went, and leaves nothing behind', async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  assert.equal(isSampled(subject), false);
  await profiled(client, 4);
  assert.equal(isSampled(subject), true);
  const done = await client.done();
  assert.equal(isSampled(subject), false);
  assert.match(await order(subject, 'sessions', /OPEN -?\d+/), /OPEN 0$/);
  const { start: begun, end, self, scripts } = told(recorded(subject.app));
  assert.deepEqual([begun['version'], begun['interval_us'], begun['thread']], [1, 1000, 'main']);
  assert.deepEqual([end?.['why'], end?.['samples']], ['time', done['samples']]);
  const [seven, three] = [self.get('hotSeven') ?? 0, self.get('hotThree') ?? 0];
  const share = seven / (seven + three);
  assert.ok(seven + three > 200 && share > 0.5 && share < 0.9, `${seven} and ${three} ms of ${JSON.stringify([...self])}`);
  assert.ok(scripts.has(`file://${subject.app.path('main.js')}`) || scripts.has(subject.app.path('main.js')), [...scripts].join(' '));
  assert.equal(await subject.end(), 0);
  assert.doesNotMatch(subject.output, /CAUGHT/);
});

onEach('a long profile is taken in stretches, and its stacks keep their numbers', async (release, t) => {
  const subject = await start(release, t, PROGRAM, {}, eager);
  const client = await subject.connect();
  await profiled(client, 6);
  const done = await client.done();
  const found = recorded(subject.app);
  const { end, self } = told(found);
  const stretches = found.filter((line) => line['cpu'] === 'samples').map((line) => line['from_ms']);
  assert.ok(stretches.length >= 2, `stretches from ${stretches}`);
  assert.deepEqual([end?.['why'], end?.['samples'], isSampled(subject)], ['time', done['samples'], false]);
  const total = [...self.values()].reduce((sum, ms) => sum + ms, 0);
  assert.ok(total > 2000 && total < 7000 + done['lasted_ms'] && (self.get('hotSeven') ?? 0) > 0, `${total} of ${done['lasted_ms']} ms`);
  assert.equal(found.filter((line) => line['cpu'] === 'functions' && line['first'] === 0).length, 1);
});

onEach('a profile ends with its client, and another can be taken', async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  const { file } = await profiled(client, 3600);
  await until(() => isSampled(subject));
  client.vanish();
  await until(() => !isSampled(subject));
  assert.match(await order(subject, 'sessions', /OPEN -?\d+/), /OPEN 0$/);
  // The recording of collections goes on.
  assert.equal((await (await subject.connect()).ask({ op: 'info' }))['recording'], true);
  await until(() => fs.readFileSync(file, 'utf8').includes('"cpu":"end"'));
  assert.equal(told(lines(fs.readFileSync(file, 'utf8'))).end?.['why'], 'client');
  const second = await subject.connect();
  const { file: another } = await profiled(second, 2);
  await second.done();
  assert.ok((told(lines(fs.readFileSync(another, 'utf8'))).self.get('hotSeven') ?? 0) > 0);
  assert.equal(isSampled(subject), false);
}, SOME);

onEach("the program's own profile is not disturbed", async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  await order(subject, 'profile', /STARTED/);
  await profiled(client, 1);
  await client.done();
  // It is still being taken.
  assert.equal(isSampled(subject), true);
  assert.match(await order(subject, 'sessions', /OPEN -?\d+/), /OPEN 1$/);
  assert.match(await order(subject, 'result', /OWN .*/), /OWN null true/);
  await until(() => !isSampled(subject));
  assert.ok((told(recorded(subject.app)).self.get('hotSeven') ?? 0) > 0);
}, SOME);

onEach('one profile at a time, within limits, and not of a program that collects coverage', async (release, t) => {
  const subject = await start(release, t);
  const [first, second] = [await subject.connect(), await subject.connect()];
  for (const cpu_interval_us of [99, 100_001, 0, -1, 1000.5, '1000', null, [], {}]) {
    const refused = await first.ask({ op: 'record', seconds: 5, cpu_interval_us });
    assert.equal(refused['ok'], false, JSON.stringify(cpu_interval_us));
  }
  assert.deepEqual([recordings(subject.app), isSampled(subject)], [[], false]);
  await profiled(first, 3600, 100);
  const refused = await second.ask({ op: 'record', seconds: 5, cpu_interval_us: 1000 });
  assert.deepEqual(refused, { ok: false, error: 'a CPU profile of it is under way', cpu: false });
  assert.equal(recordings(subject.app).length, 1);
  // Collections alone can be recorded meanwhile.
  assert.equal((await second.ask({ op: 'record', seconds: 1 }))['ok'], true);
  first.send({ op: 'stop' });
  assert.ok((await first.done())['samples'] > 0);
  assert.equal(isSampled(subject), false);

  const covered = await start(release, t, PROGRAM, { env: { NODE_V8_COVERAGE: subject.app.path('coverage') } });
  const answer = await (await covered.connect()).ask({ op: 'record', seconds: 5, cpu_interval_us: 1000 });
  assert.match(answer['error'], /NODE_V8_COVERAGE/);
  assert.deepEqual(recordings(covered.app), []);
}, SOME);

onEach('a program that ends takes its profile with it', async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  await profiled(client, 3600);
  await until(() => isSampled(subject));
  assert.equal(await subject.end(), 0);
  const found = recorded(subject.app);
  assert.deepEqual([found.at(-1)?.['why'], told(found).end?.['why']], ['exit', 'exit']);
}, SOME);

onEach('the main thread and each worker have profiles of their own', async (release, t) => {
  const script = `
    const { Worker, isMainThread } = require('node:worker_threads');
    // New each time: V8 may tell an older one as its caller.
    let turns = 0;
    const work = () => eval('(function inWorker() { let sum = 0; for (let i = 0; i < 1e6; i += 1) sum += Math.sqrt(i); return sum; } /*' + turns++ + '*/)')();
    if (isMainThread) {
      new Worker(__filename, { name: 'its name' });
      ${PROGRAM}
      process.stdin.on('end', () => process.exit());
    } else setInterval(work, 5);
  `;
  const subject = await start(release, t, script);
  const client = await subject.connect();
  await profiled(client, 2);
  await client.done();
  const found = recorded(subject.app);
  const { self } = told(found);
  assert.ok((self.get('hotSeven') ?? 0) > 0 && !self.has('inWorker'), JSON.stringify([...self]));
  const { start: begun, end, self: other } = told(found, 1);
  assert.deepEqual([begun['thread'], begun['name'], end?.['why']], ['worker', 'its name', 'time']);
  assert.ok((other.get('inWorker') ?? 0) > 0 && !other.has('hotSeven'), JSON.stringify([...other]));
  assert.equal(isSampled(subject), false);
  assert.equal(await subject.end(), 0);
  assert.doesNotMatch(subject.output, /CAUGHT/);
}, SOME);

onEach('names and scripts are all that a profile tells', async (release, t) => {
  const script = `
    const source = 'export const work = (until) => { while (Date.now() < until); }; // SECRET-SOURCE';
    import('data:text/javascript,' + encodeURIComponent(source)).then(({ work }) => setInterval(() => work(Date.now() + 10), 15));
    process.stdin.on('end', () => process.exit()).resume();
  `;
  const subject = await start(release, t, script, { env: { TOKEN: 'SECRET-VALUE' } });
  const client = await subject.connect();
  const { file } = await profiled(client, 2);
  await client.done();
  const text = fs.readFileSync(file, 'utf8');
  assert.ok((told(lines(text)).self.get('work') ?? 0) > 0, text.slice(0, 2000));
  assert.doesNotMatch(text, /SECRET/);
}, SOME);
