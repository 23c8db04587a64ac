// Programs of ES modules, and both kinds of modules in one program.
import assert from 'node:assert/strict';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

const FILES = {
  'package.json': { type: 'module', imports: { '#own': './lib/own.js' } },
  'main.js': `import fs, { existsSync } from 'node:fs';
import { own, late } from '#own';
import legacy, { name } from './legacy.cjs';
import * as space from './lib/cycle-a.js';
const dynamic = await import('./lib/dynamic.js?query=1');
const again = await import('./lib/dynamic.js?query=2');
const failing = await import('./lib/absent.js').catch((error) => [error.code, error.message, error.url]);
const broken = await import('./lib/broken.js').catch((error) => [error.name, error.message]);
console.log({ own, same: fs.existsSync === existsSync, legacy, name, space, dynamic, again, failing, broken, meta: { ...import.meta } });
console.log(await late(), import.meta.resolve?.('./lib/own.js'), typeof require, this, new Error().stack.split('\\n')[1]);
`,
  'lib/own.js': "export const own = 'own';\nexport const late = async () => (await import('./late.js')).default;\n",
  'lib/late.js': 'export default class Late {}\n',
  'lib/cycle-a.js': "import { b } from './cycle-b.js';\nexport const a = 1;\nexport { b };\nexport default () => b;\n",
  'lib/cycle-b.js': "import * as a from './cycle-a.js';\nexport const b = typeof a;\n",
  'lib/dynamic.js': 'export const url = import.meta.url;\nglobalThis.count = (globalThis.count ?? 0) + 1;\nexport const count = globalThis.count;\n',
  'lib/broken.js': 'export const = 1;\n',
  'legacy.cjs': "exports.name = 'legacy'; exports.other = require('./legacy-other.cjs'); exports.load = () => import('./lib/own.js');\n",
  'legacy-other.cjs': 'module.exports = __filename;\n',
};

onEach('a program of ES modules', async (release, t) => {
  const { plain } = await sameAsPlain(App.create(t, FILES), release, ['main.js'], { starts: 4 });
  assert.equal(plain.code, 0, plain.stderr);
});

onEach('a program of ES modules that uses packages of CommonJS', async (release, t) => {
  const app = App.create(t, { 'main.mjs': "import express, { Router } from 'express';\nimport { createRequire } from 'node:module';\nconsole.log(typeof express, typeof Router, createRequire(import.meta.url)('express') === express);\n" });
  assert.equal((await sameAsPlain(app.usePackages(), release, ['main.mjs'], { served: true })).plain.stdout, 'function function true\n');
}, { only: [18, 22, 24, 26] });

onEach('JSON by an import attribute', async (release, t) => {
  const app = App.create(t, { 'main.mjs': "import data from './data.json' with { type: 'json' };\nconsole.log(data, (await import('./data.json', { with: { type: 'json' } })).default === data);\n", 'data.json': { a: 1 } });
  assert.equal((await sameAsPlain(app, release, ['--no-warnings', 'main.mjs'])).plain.stdout, '{ a: 1 } true\n');
}, { from: 20 });

onEach('CommonJS imports dynamically, with attributes and relative to the file', async (release, t) => {
  const app = App.create(t, {
    'main.js': "const load = require('./lib/load.js');\nload().then((result) => console.log(result)); import('./lib/absent.mjs').catch((error) => console.log(error.message));\neval(\"import('./lib/module.mjs')\").then((m) => console.log(m.name));\nnew Function(\"return import('fs')\")().then((m) => console.log(typeof m.readFileSync), (error) => console.log(error.code));",
    'lib/load.js': "module.exports = async () => [await import('./module.mjs'), (await import('fs')).default === require('fs'), await import('./plain.js')];",
    'lib/module.mjs': "export const name = 'module'; export default 1;",
    'lib/plain.js': 'module.exports = { plain: true };',
  });
  const { plain } = await sameAsPlain(app, release, ['main.js']);
  assert.match(plain.stdout, /name: 'module'/);
});

onEach('CommonJS requires an ES module', async (release, t) => {
  const app = App.create(t, {
    'main.js': `const refusal = (name) => { try { return require(name); } catch (error) { return [error.name, error.code, error.message.split('\\n')[0]]; } };
      console.log(require('./module.mjs'), require('./typed'), require('./detected'), require('./marked.mjs'), refusal('./async.mjs'), require('./module.mjs') === require('./module.mjs'));`,
    'module.mjs': "export const name = 'module'; export default class Own {}",
    'typed/package.json': { type: 'module', main: 'index.js' },
    'typed/index.js': "export { name } from '../module.mjs';",
    'detected.js': "import { name } from './module.mjs'; export const detected = name;",
    'marked.mjs': "const value = { marked: true }; export { value as 'module.exports' };",
    'async.mjs': 'await null; export const late = 1;',
  });
  const { plain } = await sameAsPlain(app, release, ['--no-warnings', 'main.js'], { starts: 4 });
  assert.match(plain.stdout, /ERR_REQUIRE_ASYNC_MODULE/);
}, { from: 22 });

onEach('CommonJS is refused an ES module', async (release, t) => {
  const app = App.create(t, { 'main.js': "require('./module.mjs')", 'detect.js': "import fs from 'fs'", 'module.mjs': 'export const a = 1;' });
  assert.match((await sameAsPlain(app, release, ['main.js'])).plain.stderr, /ERR_REQUIRE_ESM/);
  assert.match((await sameAsPlain(app, release, ['detect.js'])).plain.stderr, /Cannot use import statement/);
}, { only: [18] });

onEach('an error in an ES module', async (release, t) => {
  const app = App.create(t, { 'main.mjs': "import './lib.mjs';", 'lib.mjs': "\n\n  throw new Error('third line');" });
  assert.match((await sameAsPlain(app, release, ['main.mjs'])).plain.stderr, /lib\.mjs:3:9/);
});

onEach('an unfinished top-level await', async (release, t) => {
  const app = App.create(t, { 'main.mjs': 'await new Promise(() => {});' });
  assert.equal((await sameAsPlain(app, release, ['main.mjs'])).plain.code, 13);
}, { only: [18, 22, 26] });
