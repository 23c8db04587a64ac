// Programs of ES modules use Node's own compile cache, in a folder private to the user.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { App } from '../support/app';
import { onEach } from '../support/releases';

const program = (t: TestContext): App =>
  App.create(t, {
    'main.mjs': "import './lib.mjs'; import { getCompileCacheDir } from 'node:module'; console.log(getCompileCacheDir?.() ?? 'none');",
    'lib.mjs': 'export const lib = 1;',
    'main.js': "console.log(require('node:module').getCompileCacheDir?.() ?? 'none');",
    'typed/package.json': { type: 'module' },
    'typed/main.js': "import { getCompileCacheDir } from 'node:module'; console.log(getCompileCacheDir?.() ?? 'none');",
  });

onEach('a program of ES modules has one, below our folder', async (release, t) => {
  const app = program(t);
  for (const main of ['main.mjs', 'typed/main.js']) {
    const { stdout } = await app.run(release, [main]);
    assert.ok(stdout.startsWith(path.join(app.cache, 'node/compile-v')), stdout);
    assert.equal(app.stats().at(-1)?.['compile_cache'], true);
  }
  assert.equal(fs.statSync(path.join(app.cache, 'node')).mode & 0o777, 0o700);
  assert.ok(cached(app).length >= 2);
}, { from: 22 });

onEach('a program of CommonJS has none', async (release, t) => {
  assert.equal((await program(t).run(release, ['main.js'])).stdout, 'none\n');
}, { only: [18, 22, 26] });

onEach('source maps leave it on', async (release, t) => {
  const app = program(t);
  assert.match((await app.run(release, ['--enable-source-maps', 'main.js'])).stdout, /compile-v/);
}, { only: [22, 26] });

onEach('the user decides', async (release, t) => {
  const app = program(t);
  const own = app.path('own');
  assert.ok((await app.run(release, ['main.mjs'], { env: { NODE_COMPILE_CACHE: own } })).stdout.startsWith(own));
  for (const env of [{ NODE_DISABLE_COMPILE_CACHE: '1' }, { HASTEN_NODE_CACHE: '0' }, { HASTEN_NODE_CACHE: 'read' }, { HASTEN_DISABLE: 'node' }, { HASTEN_DISABLE: 'tls NODE' }]) {
    assert.equal((await app.run(release, ['main.mjs'], { env })).stdout, 'none\n', JSON.stringify(env));
  }
  assert.deepEqual(cached(app), []);
}, { from: 22 });

onEach('a folder that others can write to is left alone', async (release, t) => {
  for (const prepare of [
    (app: App) => fs.chmodSync(path.join(app.cache, 'node'), 0o777),
    (app: App) => fs.chmodSync(app.cache, 0o775),
    (app: App) => {
      fs.rmSync(path.join(app.cache, 'node'), { recursive: true });
      fs.mkdirSync(app.path('elsewhere'));
      fs.symlinkSync(app.path('elsewhere'), path.join(app.cache, 'node'));
    },
    (app: App) => {
      fs.rmSync(path.join(app.cache, 'node'), { recursive: true });
      fs.writeFileSync(path.join(app.cache, 'node'), 'a file');
    },
  ]) {
    const app = program(t);
    fs.mkdirSync(path.join(app.cache, 'node'), { recursive: true, mode: 0o700 });
    prepare(app);
    assert.deepEqual(await app.run(release, ['main.mjs']), { code: 0, signal: null, stdout: 'none\n', stderr: '' });
  }
}, { only: [22, 26] });

onEach('it is kept within half the limit, looked at once a day', async (release, t) => {
  const app = program(t);
  await app.run(release, ['main.mjs']);
  const [first] = cached(app);
  assert.ok(first);
  const old = path.join(path.dirname(first), 'old');
  fs.writeFileSync(old, Buffer.alloc(600 * 1024));
  fs.utimesSync(old, 1, 1);
  const env = { HASTEN_NODE_CACHE_LIMIT: '1' };
  await app.run(release, ['main.mjs'], { env });
  assert.ok(fs.existsSync(old), 'not again on the same day');
  fs.utimesSync(path.join(app.cache, 'node/compile-checked'), 1, 1);
  await app.run(release, ['main.mjs'], { env });
  assert.ok(!fs.existsSync(old));
  assert.ok(fs.existsSync(first));
}, { only: [22, 26] });

/** The files in Node's cache. */
function cached(app: App): string[] {
  const folder = path.join(app.cache, 'node');
  if (!fs.existsSync(folder)) return [];
  const all = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => path.join(folder, name));
  return all.filter((file) => file.includes('/compile-v') && fs.statSync(file).isFile());
}
