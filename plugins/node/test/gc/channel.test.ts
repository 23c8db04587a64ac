// The control channel serves one user and disturbs nobody.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { App } from '../support/app';
import { onEach } from '../support/releases';
import { until } from '../support/waiting';
import { ALONE, type Line, lines, preload, recorded, recordings, Subject, withRecorder } from './recorded';

// Allocates until standard input ends; errors that reach the program are reported.
const SERVER = `
process.on('uncaughtException', (error) => console.log('CAUGHT', error));
process.on('unhandledRejection', (error) => console.log('CAUGHT', error));
process.on('warning', (warning) => console.log('CAUGHT', warning));
const kept = [];
let n = 0;
const work = setInterval(() => {
  const rows = [];
  for (let i = 0; i < 5000; i += 1) rows.push({ i, text: 'row ' + i });
  kept[n++ % 20] = rows;
}, 2);
process.stdin.on('end', () => clearInterval(work)).resume();
`;

const SOME = { only: [18, 22, 26] };

async function start(release: Parameters<typeof Subject.start>[1], t: { after(fn: () => unknown): void }, script = SERVER): Promise<Subject> {
  const app = withRecorder(App.create(t as never, {}));
  const subject = await Subject.start(app, release, script);
  t.after(() => subject.kill());
  return subject;
}

onEach('a client starts a recording, follows it and gets its end', async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  const info = await client.ask({ op: 'info' });
  assert.equal(info['pid'], subject.child.pid);
  assert.equal(info['recording'], false);
  const begun = await client.ask({ op: 'record', seconds: 2 });
  assert.deepEqual([begun['ok'], fs.statSync(begun['file']).mode & 0o777], [true, 0o600]);
  const progress = await client.next();
  assert.ok(progress['bytes'] > 0 && progress['at_ms'] > 0 && 'events' in progress);
  const done = await client.done();
  assert.deepEqual([done['why'], done['file']], ['time', begun['file']]);
  const recording = recorded(subject.app);
  const end = recording.at(-1) as Line;
  // A collection in the turn of the event loop in which time is up is counted, but its event no longer arrives.
  assert.equal(done['dropped'], end['dropped']);
  assert.equal(done['unseen_ms'], end['unseen_ms']);
  assert.ok(done['lasted_ms'] >= 1000 && done['lasted_ms'] >= done['unseen_ms'], JSON.stringify(done));
  // A program that collects often is not observed all the time, which separate lines report.
  assert.equal(end['events'], recording.filter((line) => 'gc' in line).length);
  assert.equal(done['events'], end['events']);
  assert.ok(end['events'] > 0);
  assert.equal((await client.ask({ op: 'info' }))['recording'], false);
  assert.equal(await subject.end(), 0);
  assert.equal(subject.output, '');
  assert.equal(fs.existsSync(subject.socket), false);
});

onEach('a client ends its recording early', async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  await client.ask({ op: 'record', seconds: 3600 });
  client.send({ op: 'stop' });
  assert.equal((await client.done())['why'], 'asked');
  assert.equal(recorded(subject.app).at(-1)?.['why'], 'asked');
  // And begins another.
  assert.equal((await client.ask({ op: 'record', seconds: 3600 }))['ok'], true);
}, SOME);

onEach('a client that asks and does not read is left', async (release, t) => {
  const subject = await start(release, t);
  await subject.connect();
  const deaf = net.connect(subject.socket).pause();
  const left = new Promise<string>((resolve) => deaf.on('error', () => resolve('left')).on('close', () => resolve('left')));
  const requests = '{"op":"info"}\n'.repeat(1_000_000);
  const heard = new Promise<string>((resolve) => deaf.write(requests, (error) => error ?? resolve('heard to the end')));
  assert.equal(await Promise.race([left, heard]), 'left');
  assert.equal((await (await subject.connect()).ask({ op: 'info' }))['ok'], true);
}, SOME);

onEach('two clients record at once, each its own file', async (release, t) => {
  const subject = await start(release, t);
  const [first, second] = [await subject.connect(), await subject.connect()];
  const long = await first.ask({ op: 'record', seconds: 3600 });
  const short = await second.ask({ op: 'record', seconds: 1 });
  assert.notEqual(long['file'], short['file']);
  assert.equal((await second.done())['why'], 'time');
  first.send({ op: 'stop' });
  await first.done();
  for (const file of [long, short]) assert.equal(lines(fs.readFileSync(file['file'], 'utf8')).at(-1)?.['end'], true);
}, SOME);

onEach('no more than four recordings at once', async (release, t) => {
  const subject = await start(release, t);
  for (let i = 0; i < 4; i += 1) assert.equal((await (await subject.connect()).ask({ op: 'record', seconds: 3600 }))['ok'], true);
  const refused = await (await subject.connect()).ask({ op: 'record', seconds: 3600 });
  assert.deepEqual(refused, { ok: false, error: '4 recordings are under way' });
}, { only: [20] });

onEach('a recording goes on when its client has vanished', async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  const { file } = await client.ask({ op: 'record', seconds: 1 });
  client.vanish();
  await until(() => fs.readFileSync(file, 'utf8').includes('"end":true'));
  assert.equal(recorded(subject.app).at(-1)?.['why'], 'time');
  assert.equal(subject.output, '');
}, SOME);

onEach('what is not a request is refused, and the program hears nothing of it', async (release, t) => {
  const subject = await start(release, t);
  const requests = ['garbage\n', '\n', 'null\n', '[]\n', '{"op":"run"}\n', '\u0000\u0001\n', '{"op":\n', 'x'.repeat(5000), `${'y'.repeat(1e6)}\n`];
  for (const request of requests) {
    const client = await subject.connect();
    assert.equal((await client.ask(request))['ok'], false, request.slice(0, 20));
    await until(() => client.isClosed);
  }
  const client = await subject.connect();
  for (const seconds of [0, -1, 1e9, '5', null, {}]) {
    assert.equal((await client.ask({ op: 'record', seconds }))['ok'], false, String(seconds));
  }
  assert.equal((await client.ask({ op: 'stop' }))['ok'], false);
  // Some break off half-way.
  for (let i = 0; i < 20; i += 1) {
    const other = await subject.connect();
    other.send('{"op":"info"}\n{"op":"rec');
    other.vanish();
  }
  assert.equal((await anybody(subject))['ok'], true);
  assert.deepEqual(recordings(subject.app), []);
  assert.equal(await subject.end(), 0);
  assert.equal(subject.output, '');
}, SOME);

// A connection is closed if there are too many of them, or if it has been silent for long.
async function anybody(subject: Subject): Promise<Line> {
  for (;;) {
    const client = await subject.connect();
    client.send({ op: 'info' });
    await until(() => client.isClosed || client.hasAnswer);
    if (client.hasAnswer) return client.next();
  }
}

onEach('neither channel nor recording nor client keeps a program alive', async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  await client.ask({ op: 'record', seconds: 3600 });
  assert.equal(await subject.end(), 0);
  await until(() => client.isClosed);
  assert.deepEqual([recorded(subject.app).at(-1)?.['why'], fs.existsSync(subject.socket), subject.output], ['exit', false, '']);
});

onEach('what a killed program has recorded can be read', async (release, t) => {
  const subject = await start(release, t);
  const client = await subject.connect();
  const { file } = await client.ask({ op: 'record', seconds: 3600 });
  await until(() => fs.readFileSync(file, 'utf8').includes('"gc"'));
  await subject.kill();
  const found = recorded(subject.app);
  assert.ok(found[0]?.['hasten_gc'] === 1 && found.length > 1 && found.some((line) => 'gc' in line));
  // Its socket is removed by the next process, which leaves alone those with a listener.
  assert.equal(fs.existsSync(subject.socket), true);
  const alive = path.join(path.dirname(subject.socket), '4194304999.sock');
  const listener = net.createServer().listen(alive);
  t.after(() => listener.close());
  const next = await Subject.start(subject.app, release, SERVER);
  t.after(() => next.kill());
  await until(() => !fs.existsSync(subject.socket));
  assert.equal(fs.existsSync(alive), true);
}, SOME);

onEach('an exception that ends the program ends the recording properly', async (release, t) => {
  const app = withRecorder(App.create(t, { 'main.js': 'setTimeout(() => { throw new Error("mine"); }, 50);' }));
  const outcome = await app.run(release, [...preload(app), 'main.js'], { ...ALONE, env: { HASTEN_NODE_GC: 'record' } });
  assert.equal(outcome.code, 1);
  assert.match(outcome.stderr, /Error: mine/);
  assert.equal(recorded(app).at(-1)?.['why'], 'exit');
}, SOME);

onEach('each process of a cluster has its own socket, worker threads have none', async (release, t) => {
  const script = `
    const cluster = require('node:cluster');
    const { Worker, isMainThread } = require('node:worker_threads');
    if (!isMainThread) {
      require(process.env.GC);
      setInterval(() => {}, 1000);
    } else if (cluster.isPrimary) {
      cluster.setupPrimary({ execArgv: process.execArgv });
      cluster.fork();
      cluster.fork();
      cluster.on('online', (worker) => console.log(worker.process.pid));
      new Worker(__filename);
    } else setInterval(() => {}, 1000);`;
  const app = withRecorder(App.create(t, {}));
  const subject = await Subject.start(app, release, script, { env: { GC: app.path('recorder.js') } });
  t.after(() => subject.kill());
  const folder = path.dirname(subject.socket);
  await until(() => subject.output.trim().split('\n').length === 2 && fs.readdirSync(folder).length >= 3);
  const workers = subject.output.trim().split('\n');
  t.after(() => workers.forEach((pid) => process.kill(Number(pid), 'SIGKILL')));
  const expected = [String(subject.child.pid), ...workers].map((pid) => `${pid}.sock`).sort();
  assert.deepEqual(fs.readdirSync(folder).sort(), expected);
  // The worker itself listens: a cluster's primary would do so for all of them.
  for (const pid of [String(subject.child.pid), ...workers]) assert.ok(listens(pid, path.join(folder, `${pid}.sock`)), pid);
}, SOME);

// Whether one of the process's descriptors is this socket.
function listens(pid: string, socket: string): boolean {
  const inode = fs.readFileSync('/proc/net/unix', 'utf8').split('\n').find((line) => line.endsWith(socket))?.split(/\s+/)[6];
  return fs.readdirSync(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`);
}

function linkOf(file: string): string | null {
  try {
    return fs.readlinkSync(file);
  } catch {
    return null;
  }
}

onEach('the plugin opens the channel by itself', async (release, t) => {
  const app = App.create(t, { 'main.js': SERVER });
  const child = app.spawn(release, release.node, ['main.js']);
  t.after(() => child.kill('SIGKILL'));
  await until(() => fs.existsSync(path.join(app.runtime, 'node', `${child.pid}.sock`)));
}, SOME);

onEach('HASTEN_NODE_GC=0 means no channel', async (release, t) => {
  const app = withRecorder(App.create(t, { 'main.js': 'setTimeout(() => {}, 300);' }));
  await app.run(release, [...preload(app), 'main.js'], { ...ALONE, env: { HASTEN_NODE_GC: '0' } });
  assert.deepEqual(fs.readdirSync(app.runtime), []);
}, { only: [20] });
