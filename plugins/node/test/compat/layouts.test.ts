// Folder layouts of package managers.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { packages } from '../support/places';
import { onEach } from '../support/releases';

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
}

/**
 * Lays out a package and its dependencies as pnpm does: node_modules/.pnpm/NAME@VERSION/node_modules/…,
 * joined by symlinks.
 */
function pnpm(app: App, name: string): void {
  const store = app.path('node_modules/.pnpm');
  const done = new Map<string, string>();
  const place = (name: string): string => {
    const known = done.get(name);
    if (known) return known;
    const source = path.join(packages, name);
    const { version, dependencies = {} } = JSON.parse(fs.readFileSync(path.join(source, 'package.json'), 'utf8')) as Manifest;
    const around = path.join(store, `${name.replace('/', '+')}@${version}/node_modules`);
    done.set(name, path.join(around, name));
    fs.cpSync(source, path.join(around, name), { recursive: true, filter: (file) => !file.slice(source.length).includes('node_modules') });
    for (const needed of Object.keys(dependencies)) join(around, needed, place(needed));
    return path.join(around, name);
  };
  const join = (folder: string, name: string, target: string): void => {
    const link = path.join(folder, name);
    fs.mkdirSync(path.dirname(link), { recursive: true });
    fs.symlinkSync(path.relative(path.dirname(link), target), link);
  };
  join(app.path('node_modules'), name, place(name));
}

const MAIN = "const express = require('express'); const app = express(); console.log(typeof app.listen, require.resolve('express'), Object.keys(require.cache).filter((file) => file.includes('express')));";

onEach('pnpm: everything through symlinks', async (release, t) => {
  const app = App.create(t, { 'main.js': MAIN });
  pnpm(app, 'express');
  const { plain } = await sameAsPlain(app, release, ['main.js'], { served: true });
  assert.match(plain.stdout, /node_modules\/\.pnpm\/express@/);
}, { only: [18, 20, 24, 26] });

onEach('pnpm: a symlink that is pointed at another version', async (release, t) => {
  const app = App.create(t, {
    'main.js': "console.log(require('lib'));",
    'node_modules/.pnpm/lib@1.0.0/node_modules/lib/index.js': "module.exports = 'one';",
    'node_modules/.pnpm/lib@2.0.0/node_modules/lib/index.js': "module.exports = 'two';",
  });
  for (const version of ['1.0.0', '2.0.0', '1.0.0']) {
    fs.rmSync(app.path('node_modules/lib'), { force: true });
    app.link(`node_modules/.pnpm/lib@${version}/node_modules/lib`, 'node_modules/lib');
    assert.equal((await sameAsPlain(app, release, ['main.js'], { served: true })).plain.stdout, version === '1.0.0' ? 'one\n' : 'two\n');
  }
});

onEach('workspaces: packages of the same repository, one changing', async (release, t) => {
  const app = App.create(t, {
    'package.json': { workspaces: ['packages/*'] },
    'packages/app/main.js': "console.log(require('shared'), require('shared/other'));",
    'packages/shared/package.json': { name: 'shared', exports: { '.': './one.js', './other': './other.js' } },
    'packages/shared/one.js': 'module.exports = [1, module.paths[0]];',
    'packages/shared/two.js': 'module.exports = 2;',
    'packages/shared/other.js': "module.exports = 'other';",
  });
  app.link('packages/shared', 'node_modules/shared');
  await sameAsPlain(app, release, ['packages/app/main.js']);
  app.write('packages/shared/package.json', { name: 'shared', exports: { '.': './two.js', './other': './other.js' } });
  assert.equal((await sameAsPlain(app, release, ['packages/app/main.js'])).plain.stdout, '2 other\n');
}, { only: [18, 22, 26] });

onEach("Yarn's Plug'n'Play: its hook into the resolution comes first", async (release, t) => {
  const app = App.create(t, {
    '.pnp.cjs': `const Module = require('module'); const original = Module._resolveFilename;
      process.versions.pnp = '3';
      Module._resolveFilename = (name, ...rest) => name === 'lib' ? __dirname + '/.yarn/cache/lib.js' : original.call(Module, name, ...rest);`,
    'main.js': "console.log(require('lib'), require('./own'));",
    'own.js': "module.exports = 'own';",
    '.yarn/cache/lib.js': "module.exports = 'from the cache of Yarn';",
  });
  const { plain } = await sameAsPlain(app, release, ['-r', './.pnp.cjs', 'main.js']);
  assert.equal(plain.stdout, 'from the cache of Yarn own\n');
}, { only: [18, 22, 26] });
