// The cache over a process's life: worker threads, programs that never end, bytecode that V8 rejects, and processes
// killed while writing.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import type { App } from '../support/app';
import { until } from '../support/waiting';
import { agree, cacheFile, onEachOld, warm } from './support';

const LIBRARY = {
  'lib/a.js': "module.exports = 'a' + require('./b');",
  'lib/b.js': "module.exports = 'b' + require('./data').data;",
  'lib/data.json': { data: 1 },
};

onEachOld('a worker thread is served what the main thread has loaded', {
  ...LIBRARY,
  'main.js': "const { Worker } = require('worker_threads'); console.log(require('./lib/a')); new Worker(__dirname + '/worker.js').on('message', console.log);",
  'worker.js': "require('worker_threads').parentPort.postMessage(require('./lib/a') + ' in a worker');",
}, async (app, release) => {
  await warm(app, release);
  const before = app.stats().length;
  assert.match((await agree(app, release)).stdout, /ab1 in a worker/);
  const [worker, main, ...others] = app.stats().slice(before);
  assert.deepEqual([worker?.['hits'], worker?.['misses'], worker?.['recorded_files'], others], [3, 1, 0, []]);
  assert.equal(main?.['hits'], 4);
});

onEachOld('a server that never ends is recorded once it has started', {
  ...LIBRARY,
  'main.js': "console.log(require('./lib/a')); const server = require('http').createServer().listen(0, '127.0.0.1', () => process.env.HASTEN_TEST_END && server.close());",
}, async (app, release) => {
  const server = app.spawn(release, release.node, ['main.js'], { eager: true });
  await until(() => kept(app).some((name) => name.endsWith('.cache')));
  assert.equal(server.exitCode, null);
  const { hits } = await agree(app, release, ['main.js'], { env: { HASTEN_TEST_END: '1' } });
  assert.equal(hits, 4);
  assert.equal(server.exitCode, null);
}, { only: [20, 26] });

onEachOld('bytecode that V8 refuses', {
  ...LIBRARY,
  'main.js': "if (process.env.HASTEN_TEST_FLAG) require('v8').setFlagsFromString(process.env.HASTEN_TEST_FLAG); console.log(require('./lib/a'));",
}, async (app, release) => {
  await warm(app, release);
  assert.equal((await agree(app, release)).hits, 4);
  assert.equal(app.stats().at(-1)?.['rejected'], 0);
  // From here on, V8 rejects bytecode made without this option.
  const env = { HASTEN_TEST_FLAG: '--no-opt' };
  for (const mode of ['read', '1']) {
    assert.equal((await agree(app, release, ['main.js'], { env: { ...env, HASTEN_NODE_CACHE: mode } })).hits, 4);
    assert.equal(app.stats().at(-1)?.['rejected'], 2);
  }
  // What was recorded instead is for programs that set it.
  await agree(app, release, ['main.js'], { env });
  assert.equal(app.stats().at(-1)?.['rejected'], 0);
});

// Each of these is a third of the piece size for texts, so that some span two pieces; they print their own source.
const LONG = (letter: string): string => `module.exports = function () {\n${`  // ${letter} ${'.'.repeat(90)}\n`.repeat(1000)}  return '${letter}';\n};\n`;
const ONE_BYTE = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const TWO_BYTES = ['α', 'β', 'γ', 'δ', 'ε', 'ζ'];

onEachOld('sources that are longer together than a piece of text', {
  ...Object.fromEntries([...ONE_BYTE, ...TWO_BYTES].map((letter, index) => [`lib/${index}.js`, LONG(letter)])),
  'main.js': `
    const { createHash } = require('crypto');
    for (let i = 0; i < ${ONE_BYTE.length + TWO_BYTES.length}; i += 1) {
      const long = require('./lib/' + i);
      console.log(i, long(), createHash('sha1').update(long.toString()).digest('hex'));
    }`,
}, async (app, release) => {
  await warm(app, release);
  assert.equal((await agree(app, release)).hits, ONE_BYTE.length + TWO_BYTES.length + 1);
});

// Kills its process before the specified file-changing call.
const KILLER = `
const fs = require('fs');
let left = Number(process.env.HASTEN_TEST_KILL);
for (const name of ['openSync', 'writeSync', 'writevSync', 'copyFileSync', 'ftruncateSync', 'fsyncSync', 'fdatasyncSync', 'closeSync', 'renameSync', 'linkSync', 'unlinkSync', 'mkdirSync']) {
  const original = fs[name];
  fs[name] = function (...given) {
    if (left-- === 0) process.kill(process.pid, 'SIGKILL');
    return original.apply(this, given);
  };
}
`;

onEachOld('a writer that is killed at any moment', {
  ...LIBRARY,
  'killer.js': KILLER,
  'main.js': "console.log(require('./lib/a'), process.argv[2] && require(process.argv[2]));",
  'lib/late.js': "module.exports = 'late';",
}, async (app, release) => {
  // Before the plugin, which uses what it finds.
  const before = app.path('killer.js');
  const late = ['main.js', './lib/late'];
  await warm(app, release, ['main.js'], { before });
  const file = cacheFile(app);
  const content = fs.readFileSync(file);
  const names = kept(app);
  let kills = 0;
  for (; ; kills++) {
    fs.writeFileSync(file, content);
    const { signal } = await app.run(release, late, { eager: true, before, env: { HASTEN_TEST_KILL: String(kills) } });
    if (!signal) break;
    const isOld = fs.readFileSync(file).equals(content);
    const { hits } = await agree(app, release, late, { before, env: { HASTEN_NODE_CACHE: 'read' } });
    assert.equal(hits, isOld ? 4 : 5, `before call ${kills} of those that change files`);
    // A minute later, leftovers are in nobody's way.
    const left = kept(app).filter((name) => !names.includes(name));
    assert.ok(left.length <= 1 && left.every((name) => name.endsWith('.tmp')), left.join());
    for (const name of left) fs.utimesSync(path.join(path.dirname(file), name), 1, 1);
  }
  assert.ok(kills >= 5, `${kills} calls`);
  assert.deepEqual(kept(app), names);
  assert.equal((await agree(app, release, late, { before })).hits, 5);
}, { only: [20, 24] });

/** The files in the caches' folder. */
function kept(app: App): string[] {
  const folder = path.join(app.cache, 'node');
  return fs.existsSync(folder) ? fs.readdirSync(folder).sort() : [];
}
