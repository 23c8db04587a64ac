// Whatever changes between two starts, the second one runs what is there now.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import type { App } from '../support/app';
import { agree, onEachOld, warm } from './support';

const FILES = {
  'main.js': "console.log(require('./lib/one'), require('pkg'), require('dual/part'), require('./lib/data'), require('./linked'));",
  'package.json': { name: 'app', version: '1.0.0' },
  'package-lock.json': { lockfileVersion: 3 },
  'lib/one.js': "module.exports = 'one ' + require('./two/deep');",
  'lib/two/index.js': "module.exports = 'never';",
  'lib/two/deep/index.js': "module.exports = 'deep';",
  'lib/data.json': { data: 1 },
  'node_modules/pkg/package.json': { name: 'pkg', main: 'a.js' },
  'node_modules/pkg/a.js': "module.exports = 'a';",
  'node_modules/pkg/b.js': "module.exports = 'b';",
  'node_modules/dual/package.json': { name: 'dual', exports: { './part': './x.js' } },
  'node_modules/dual/x.js': "module.exports = 'x';",
  'node_modules/dual/y.js': "module.exports = 'y';",
  'stores/1/index.js': "module.exports = 'store 1';",
  'stores/2/index.js': "module.exports = 'store 2';",
};

/** A change, and the program's output after it. */
const changes: Record<string, [change: (app: App) => void, said: RegExp]> = {
  'nothing': [() => {}, /^one deep a x \{ data: 1 \} store 1$/m],
  'a file of the same size and time': [(app) => restamped(app, 'lib/one.js', "module.exports = 'two ' + require('./two/deep');"), /^two deep a/],
  'a file that was touched': [(app) => fs.utimesSync(app.path('lib/one.js'), 1, 1), /^one deep a/],
  'a file that was replaced by its copy': [(app) => replaced(app, 'lib/one.js'), /^one deep a/],
  'a file beside a directory': [(app) => app.write('lib/two/deep.js', "module.exports = 'shadow';"), /^one shadow a/],
  'JSON': [(app) => restamped(app, 'lib/data.json', '{"data":2}'), /data: 2/],
  'JSON that gives way to a script': [(app) => app.write('lib/data.js', 'module.exports = 3;'), / 3 store/],
  'a nearer package': [(app) => app.write('lib/node_modules/pkg/index.js', "module.exports = 'far';"), /^one deep a/],
  'main of a package': [(app) => app.write('node_modules/pkg/package.json', { name: 'pkg', main: 'b.js' }), /deep b x/],
  'exports of a package': [(app) => app.write('node_modules/dual/package.json', { name: 'dual', exports: { './part': './y.js' } }), /a y/],
  'a package.json that appears': [(app) => app.write('lib/two/deep/package.json', { main: '../index.js' }), /^one never a/],
  'a lock file': [(app) => app.write('package-lock.json', { lockfileVersion: 2 }), /^one deep a/],
  'a link': [(app) => relinked(app), /store 2/],
  'a replaced directory': [(app) => exchanged(app), /^one new a/],
};

for (const [name, [change, said]] of Object.entries(changes)) {
  onEachOld(`a start after a change: ${name}`, FILES, async (app, release) => {
    await warm(app, release);
    const before = await agree(app, release);
    assert.ok(before.hits >= 5, `${before.hits} modules from the cache`);
    change(app);
    const { stdout, hits } = await agree(app, release);
    assert.match(stdout, said);
    if (name === 'nothing') assert.equal(hits, before.hits);
    // Another installation: nothing of the old one is used.
    if (name === 'a lock file') assert.equal(hits, 0);
    // Once more, with what has been recorded since.
    assert.equal((await app.run(release, ['main.js'], { eager: true })).stdout, stdout);
  }, { only: [18, 24], links: { linked: 'stores/1' } });
}

onEachOld('a module type that changes', { 'package.json': {}, 'main.js': "try { require('./lib') } catch (error) { console.log(error.code) }", 'lib/index.js': 'console.log(typeof module);' }, async (app, release) => {
  await warm(app, release);
  assert.ok(Number(app.stats().at(-1)?.['hits']) >= 2);
  app.write('lib/package.json', { type: 'module' });
  await agree(app, release);
});

onEachOld('a nearer node_modules', { 'lib/main.js': "console.log(require('pkg'));", 'node_modules/pkg/index.js': "module.exports = 'outer';" }, async (app, release) => {
  await warm(app, release, ['lib/main.js']);
  assert.ok((await agree(app, release, ['lib/main.js'])).hits >= 2);
  app.write('lib/node_modules/pkg/index.js', "module.exports = 'inner';");
  assert.match((await agree(app, release, ['lib/main.js'])).stdout, /inner/);
});

onEachOld('environments have caches of their own', { 'main.js': "console.log(require('./one'), require('global-one'));", 'one.js': 'module.exports = process.env.NODE_ENV;', 'a/global-one.js': "module.exports = 'a';", 'b/global-one.js': "module.exports = 'b';" }, async (app, release) => {
  const a = { env: { NODE_PATH: app.path('a') } };
  await warm(app, release, ['main.js'], a);
  assert.match((await agree(app, release, ['main.js'], a)).stdout, /a$/m);
  assert.match((await agree(app, release, ['main.js'], { env: { NODE_PATH: app.path('b') } })).stdout, /b$/m);
  const other = await agree(app, release, ['main.js'], { env: { ...a.env, NODE_ENV: 'production' } });
  assert.equal(other.hits, 0);
});

const AGAIN = "process.env.NODE_PATH = process.argv[2]; require('module')._initPaths(); console.log(require('conf'), require('./here'));";

onEachOld('NODE_PATH that is read again', { 'main.js': AGAIN, 'here.js': "module.exports = 'here';", 'a/conf.js': "module.exports = 'a';", 'b/conf.js': "module.exports = 'b';" }, async (app, release) => {
  const args = (name: string): string[] => ['main.js', app.path(name)];
  await warm(app, release, args('a'));
  for (const name of ['a', 'b', 'a', 'b']) assert.equal((await agree(app, release, args(name))).stdout, `${name} here\n`);
  assert.ok((await agree(app, release, args('a'))).hits >= 2);
});

onEachOld('a program that changes its own files', {
  'main.js': `const fs = require('fs'); console.log(require('./one'));
    fs.writeFileSync(__dirname + '/made.js', 'module.exports = ' + process.hrtime()[1] % 2 + ' < 2;');
    console.log(require('./made')); delete require.cache[require.resolve('./one')]; console.log(require('./one'), require.resolve('./made') === __dirname + '/made.js');`,
  'one.js': "module.exports = { loaded: module.loaded, id: module.id === __filename };",
  'made.js': 'module.exports = true;',
}, async (app, release) => {
  await warm(app, release);
  assert.ok((await agree(app, release)).hits >= 2);
});

function restamped(app: App, name: string, content: string): void {
  const { atime, mtime, size } = fs.statSync(app.path(name));
  assert.equal(content.length, size);
  fs.writeFileSync(app.path(name), content);
  fs.utimesSync(app.path(name), atime, mtime);
}

function replaced(app: App, name: string): void {
  fs.copyFileSync(app.path(name), app.path(`${name}.copy`));
  fs.renameSync(app.path(`${name}.copy`), app.path(name));
}

function relinked(app: App): void {
  fs.unlinkSync(app.path('linked'));
  app.link('stores/2', 'linked');
}

function exchanged(app: App): void {
  fs.renameSync(app.path('lib/two'), app.path('lib/old'));
  app.write('lib/two/deep/index.js', "module.exports = 'new';");
}
