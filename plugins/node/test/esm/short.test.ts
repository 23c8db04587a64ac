// The shortcut to neighbouring modules: the same result as Node's, and Node decides everything that is not plain.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { App, type RunOptions } from '../support/app';
import { subject } from '../support/places';
import { onEach, type Release } from '../support/releases';

const PRELOAD = ['-r', subject('esm/short')];

const FILES = {
  'package.json': { type: 'module', imports: { '#own': './lib/own.js' } },
  'main.js': `
const names = ['./lib/plain.js', './lib/../lib/plain.js', './lib/plain.mjs', './lib/legacy.cjs', './lib/typed/common.js', './lib/typed/module.mjs', './lib/link.js',
  './linked/plain.js', './lib/folder', './lib/absent.js', './lib/plain', './lib//plain.js', './lib/plain.js?a=1', './lib/plain.js#b', './lib/with%20space.js',
  './lib/with space.js', './lib/data.json', '#own', 'node:path', 'dep', './node_modules/dep/index.js', './node_modules/dep/untyped.js', './broken/any.js',
  './lib/dir.js', import.meta.url.replace('main', 'lib/plain'), './lib/nested.js', './lib/ümlaut.js'];
for (const name of names) {
  const seen = await import(name).then((m) => ({ ...m }), (error) => [error.name, error.code, error.message, error.url]);
  console.log(name, seen);
}
console.log(await import('./lib/data.json', { with: { type: 'json' } }), await import('./lib/plain.js', { with: { type: 'json' } }).catch((error) => error.message));
console.log(import.meta.resolve('./lib/plain.js'), import.meta.resolve('./lib/link.js'), import.meta.resolve('./absent.js'));
`,
  'lib/plain.js': 'export const url = import.meta.url; globalThis.times = (globalThis.times ?? 0) + 1; export const { times } = globalThis;',
  'lib/nested.js': "export { url } from './plain.js'; export * as up from '../lib/plain.js'; export { default as legacy } from './legacy.cjs';",
  'lib/plain.mjs': 'export const mjs = true;',
  'lib/legacy.cjs': 'module.exports = { legacy: __filename };',
  'lib/typed/package.json': { type: 'commonjs' },
  'lib/typed/common.js': 'module.exports = typeof require;',
  'lib/typed/module.mjs': "export { default } from './common.js';",
  'lib/own.js': "export default 'own';",
  'lib/folder/index.js': "export default 'index';",
  'lib/with space.js': "export default 'space';",
  'lib/ümlaut.js': "export default 'ümlaut';",
  'lib/data.json': { data: 1 },
  'lib/dir.js/file.js': '',
  'broken/package.json': '{"type": "module"',
  'broken/any.js': 'export default 1;',
  'node_modules/dep/package.json': { name: 'dep', main: 'index.js' },
  'node_modules/dep/index.js': "module.exports = 'common';",
  'node_modules/dep/untyped.js': "export default 'detected';",
};

function program(t: Parameters<typeof App.create>[0]): App {
  const app = App.create(t, FILES);
  app.link('lib/plain.js', 'lib/link.js');
  app.link('lib', 'linked');
  return app;
}

async function bothWays(app: App, release: Release, args: string[], options: RunOptions = {}): Promise<string> {
  const plain = await app.run(release, ['--no-warnings', ...args], { ...options, plugin: false });
  const short = await app.run(release, ['--no-warnings', ...PRELOAD, ...args], { ...options, plugin: false });
  assert.deepEqual(short, plain);
  return plain.stdout;
}

onEach('every way to name a module leads where Node leads', async (release, t) => {
  const seen = await bothWays(program(t), release, ['main.js']);
  assert.match(seen, /ERR_MODULE_NOT_FOUND/);
  assert.match(seen, /typeof|function/);
}, { from: 22 });

onEach('what is plain is not asked of Node again', async (release, t) => {
  const app = App.create(t, { ...FILES, 'few.js': "import './lib/plain.js'; import './lib/nested.js'; import 'dep'; import './lib/legacy.cjs';" });
  const { stdout } = await app.run(release, [...PRELOAD, 'few.js'], { plugin: false, env: { HASTEN_TEST_ASKED: '1' } });
  assert.match(stdout, /'\.\/lib\/legacy\.cjs'/);
  assert.match(stdout, /'dep'/);
  assert.doesNotMatch(stdout, /plain|nested/);
}, { from: 22 });

onEach('where it does not pay it goes away, in the middle of a program', async (release, t) => {
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`many/${n}.js`, '']));
  const app = App.create(t, {
    ...FILES,
    ...many,
    'many/package.json': {},
    'mixed.js': `import { createRequire } from 'node:module';
      await import('./lib/plain.js');
      const require = createRequire(import.meta.url);
      for (let n = 0; n < 30; n++) require('./many/' + n + '.js');
      console.log((await import('./lib/nested.js')).up.url, (await import('./lib/plain.mjs')).mjs);`,
  });
  await bothWays(app, release, ['mixed.js']);
  const { stdout } = await app.run(release, [...PRELOAD, 'mixed.js'], { plugin: false, env: { HASTEN_TEST_ASKED: '1' } });
  assert.doesNotMatch(stdout, /'\.\/lib\/plain\.js'/);
  assert.match(stdout, /'\.\/lib\/nested\.js'/);
}, { from: 22 });

onEach('symlinks that are preserved', async (release, t) => {
  const app = program(t);
  app.write('linked-main.mjs', "import { url } from './linked/plain.js'; console.log(url, import.meta.url);");
  assert.match(await bothWays(app, release, ['linked-main.mjs']), /app\/lib\/plain\.js/);
  const preserved = await app.run(release, ['--preserve-symlinks', 'linked-main.mjs'], { plugin: false });
  assert.match(preserved.stdout, /app\/linked\/plain\.js/);
  const { stderr } = await app.run(release, [...PRELOAD, '--preserve-symlinks', 'linked-main.mjs'], { plugin: false });
  assert.match(stderr, /has no hooks/, 'stays away');
}, { from: 22 });

const HOOKS = "export const resolve = (name, context, next) => name.includes('plain') ? next(name.replace('plain', 'other'), context) : next(name, context);";

onEach('hooks of the program see everything, whichever kind they are', async (release, t) => {
  const app = App.create(t, {
    ...FILES,
    'lib/other.js': "export const url = 'other';",
    'lib/late.js': "export { url } from './plain.js';",
    'hooks.js': HOOKS,
    'thread.js': "import { register } from 'node:module'; register('./hooks.js', import.meta.url); console.log((await import('./lib/late.js')).url, (await import('./lib/plain.js')).url);",
    'sync.js': `import { registerHooks } from 'node:module'; import * as hooks from './hooks.js'; registerHooks(hooks);
      console.log((await import('./lib/late.js')).url, (await import('./lib/plain.js')).url);`,
  });
  assert.equal(await bothWays(app, release, ['thread.js']), 'other other\n');
  assert.equal(await bothWays(app, release, ['sync.js']), 'other other\n');
}, { from: 22 });

onEach('a file that is changed, moved or replaced by a link between two imports', async (release, t) => {
  const app = App.create(t, {
    'package.json': { type: 'module' },
    'main.js': `import fs from 'node:fs';
      const see = (name) => import(name).then((m) => m.default, (error) => error.code);
      const seen = [await see('./a/one.js'), await see('./a/two.js')];
      fs.writeFileSync('a/two.js', "export default 'two'"); seen.push(await see('./a/two.js?again'));
      fs.renameSync('a', 'b'); seen.push(await see('./a/three.js'), await see('./b/three.js'));
      console.log(seen);`,
    'a/one.js': "export default 'one'",
    'a/three.js': "export default 'three'",
  });
  const results = [];
  for (const args of [[], PRELOAD]) {
    fs.rmSync(app.path('b'), { recursive: true, force: true });
    for (const name of ['one', 'three']) app.write(`a/${name}.js`, `export default '${name}'`);
    fs.rmSync(app.path('a/two.js'), { force: true });
    results.push(await app.run(release, [...args, 'main.js'], { plugin: false }));
  }
  assert.equal(results[0]?.code, 0, results[0]?.stderr);
  assert.deepEqual(results[1], results[0]);
}, { from: 22 });
