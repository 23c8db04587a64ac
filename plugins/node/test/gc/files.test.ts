// Folders and files of the recorder that are not as they should be.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Collection } from '../../src/gc/collector';
import { Recording } from '../../src/gc/recording';
import { openFolder } from '../../src/gc/runtime';
import { App } from '../support/app';
import { onEach } from '../support/releases';
import { ALONE, lines, preload, recordings, withRecorder } from './recorded';

function scratch(t: TestContext): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hasten-test-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function opened(folder: string | undefined): string | null {
  const before = process.env['HASTEN_RUNTIME_DIR'];
  if (folder === undefined) delete process.env['HASTEN_RUNTIME_DIR'];
  else process.env['HASTEN_RUNTIME_DIR'] = folder;
  try {
    return openFolder('gc');
  } finally {
    if (before === undefined) delete process.env['HASTEN_RUNTIME_DIR'];
    else process.env['HASTEN_RUNTIME_DIR'] = before;
  }
}

test('the runtime folder is made for its user alone', (t) => {
  const folder = path.join(scratch(t), 'runtime');
  assert.equal(opened(folder), path.join(folder, 'gc'));
  for (const made of [folder, path.join(folder, 'gc')]) assert.equal(fs.statSync(made).mode & 0o777, 0o700);
  assert.equal(opened(folder), path.join(folder, 'gc'), 'the second time, too');
});

test('a runtime folder that others could use is not used', (t) => {
  const base = scratch(t);
  const make = (name: string): string => {
    fs.mkdirSync(path.join(base, name), { mode: 0o700 });
    return path.join(base, name);
  };
  const open = make('open');
  fs.chmodSync(open, 0o755);
  const inside = make('inside');
  fs.mkdirSync(path.join(inside, 'gc'));
  fs.chmodSync(path.join(inside, 'gc'), 0o777);
  fs.symlinkSync(make('target'), path.join(base, 'link'));
  const linked = make('linked');
  fs.symlinkSync(path.join(base, 'target'), path.join(linked, 'gc'));
  fs.writeFileSync(path.join(base, 'file'), '');
  const parent = make('parent');
  fs.chmodSync(parent, 0o777);
  for (const bad of [open, inside, path.join(base, 'link'), linked, path.join(base, 'file'), path.join(parent, 'runtime')]) {
    assert.equal(opened(bad), null, bad);
  }
  fs.chmodSync(parent, 0o1777);
  assert.notEqual(opened(path.join(parent, 'runtime')), null, 'sticky, as /tmp is');
});

test('a runtime folder of another user is not used', { skip: process.geteuid?.() !== 0 && 'needs root' }, (t) => {
  const base = scratch(t);
  const [other, parent] = [path.join(base, 'other'), path.join(base, 'parent')];
  for (const folder of [other, parent]) {
    fs.mkdirSync(folder, { mode: 0o700 });
    fs.chownSync(folder, 65534, 65534);
  }
  assert.equal(opened(other), null);
  assert.equal(opened(path.join(parent, 'runtime')), null, 'its owner could replace it');
});

function collection(at: number): Collection {
  return { kind: 1, flags: 0, from: at, to: at, pause: 1, profile: null, late: null };
}

const later = (): Collection => collection(performance.now() + 1);

test('a recording that reaches its limit ends with a last line', (t) => {
  const recording = new Recording(scratch(t), 2000);
  for (let i = 0; i < 100; i += 1) {
    recording.add([later()]);
    recording.flush();
  }
  const text = fs.readFileSync(recording.file, 'utf8');
  const end = lines(text).at(-1);
  assert.ok(Buffer.byteLength(text) <= 2000 && Buffer.byteLength(text) > 1500);
  assert.deepEqual([end?.['why'], end?.['events'], end?.['dropped']], ['size', lines(text).length - 2, 1]);
  assert.equal(recording.bytes, Buffer.byteLength(text));
});

// Writes up to this many bytes of the file, and then behaves like a full disk.
function fill(t: TestContext, room: number): void {
  const write = fs.writeSync as (fd: number, bytes: Buffer, offset: number, length: number, position: number) => number;
  t.mock.method(fs, 'writeSync', (fd: number, bytes: Buffer, offset: number, length: number, position: number) => {
    if (position >= room) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    return write(fd, bytes, offset, Math.min(length, room - position), position);
  });
}

test('on a full disk a recording ends with whole lines and says what is missing', (t) => {
  for (const room of [700, 1000, 1300, 1999]) {
    fill(t, room);
    const recording = new Recording(scratch(t));
    for (let i = 0; i < 100; i += 1) {
      recording.add([later()]);
      if (i % 3 === 0) recording.flush();
    }
    recording.end('asked');
    t.mock.restoreAll();
    const found = lines(fs.readFileSync(recording.file, 'utf8'));
    const end = found.at(-1);
    assert.deepEqual([end?.['why'], end?.['events']], ['disk', found.length - 2], `${room}`);
    assert.ok(end?.['dropped'] > 0, `${room}`);
  }
});

test('no recording begins where its first line has no room', (t) => {
  fill(t, 10);
  assert.throws(() => new Recording(scratch(t)));
});

test('only so many recordings are kept', (t) => {
  const folder = scratch(t);
  fs.writeFileSync(path.join(folder, 'notes.txt'), 'not ours');
  for (let i = 0; i < 40; i += 1) new Recording(folder).end('asked');
  assert.equal(fs.readdirSync(folder).filter((name) => name.endsWith('.jsonl')).length, 16);
  assert.ok(fs.existsSync(path.join(folder, 'notes.txt')));
});

test('collections from before a recording are not in it', (t) => {
  const recording = new Recording(scratch(t));
  recording.add([collection(0), later()]);
  recording.end('asked');
  assert.equal(lines(fs.readFileSync(recording.file, 'utf8')).length, 3);
});

test('gaps are lines of their own, from the beginning of the recording at most', (t) => {
  const recording = new Recording(scratch(t));
  recording.gap(0, performance.now() + 1000);
  recording.add([later()]);
  recording.gap(performance.now() + 2000, performance.now() + 2500.25);
  recording.end('asked');
  recording.gap(performance.now() + 3000, performance.now() + 4000);
  const [head, ...found] = lines(fs.readFileSync(recording.file, 'utf8'));
  assert.deepEqual(found.map((line) => Object.keys(line)[0]), ['gap', 'gc', 'gap', 'end']);
  const gaps = found.filter((line) => line['gap']);
  assert.ok(gaps[0]?.['from_ms'] >= head?.['at_ms']);
  const unseen = gaps.reduce((sum, gap) => sum + gap['at_ms'] - gap['from_ms'], 0);
  assert.ok(unseen > 1500 && Math.abs(unseen - found.at(-1)?.['unseen_ms']) < 0.01, `${unseen}`);
});

onEach('a program runs on without a runtime folder, or with one whose name is too long', async (release, t) => {
  const app = withRecorder(App.create(t, { 'main.js': 'setTimeout(() => console.log("done"), 200);' }));
  const long = path.join(app.runtime, 'x'.repeat(90));
  for (const folder of ['/proc/nowhere', '/dev/null', long, path.join(long, 'y'.repeat(200))]) {
    const env = { HASTEN_RUNTIME_DIR: folder, HASTEN_NODE_GC: 'record' };
    const outcome = await app.run(release, [...preload(app), 'main.js'], { ...ALONE, env });
    assert.deepEqual(outcome, { code: 0, signal: null, stdout: 'done\n', stderr: '' }, folder);
  }
  assert.deepEqual(fs.readdirSync(path.join(long, 'node')), []);
  assert.deepEqual(recordings(app), []);
}, { only: [18, 24] });
