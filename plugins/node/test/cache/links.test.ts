// Links switched back and forth: what was recorded about each target is true only while they lead there.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import type { App } from '../support/app';
import { agree, onEachOld, warm } from './support';

/** As in a deployment: one link replaces another. */
function turn(app: App, name: string, target: string): void {
  fs.rmSync(app.path(`${name}.new`), { force: true });
  app.link(target, `${name}.new`);
  fs.renameSync(app.path(`${name}.new`), app.path(name));
}

const RELEASES = { 'rel/1/v.js': "module.exports = 'rel/1';", 'rel/2/v.js': "module.exports = 'rel/2';" };

onEachOld('a roll-back of a link', { 'prog/main.js': "console.log(require('../cur/v'));", ...RELEASES }, async (app, release) => {
  await warm(app, release, ['prog/main.js']);
  for (const [target, starts] of [['rel/2', 3], ['rel/1', 3], ['rel/2', 1], ['rel/1', 1]] as const) {
    turn(app, 'cur', target);
    for (let start = 0; start < starts; start++) assert.equal((await agree(app, release, ['prog/main.js'])).stdout, `${target}\n`);
  }
  assert.ok((await agree(app, release, ['prog/main.js'])).hits >= 2);
}, { links: { cur: 'rel/1' } });

const NESTED = { 'main.js': "console.log(require('./a/b/v'), require('pkg/v'));", ...RELEASES, 'deep/x/one.js': '', 'deep/y/two.js': '' };

onEachOld('links that lead through links', NESTED, async (app, release) => {
  await warm(app, release);
  for (const [link, target] of [['deep/x/b', 'rel/2'], ['a', 'deep/y'], ['deep/x/b', 'rel/1'], ['a', 'deep/x'], ['node_modules/pkg', 'deep/y/b'], ['deep/y/b', 'rel/1']] as const) {
    turn(app, link, target);
    for (let start = 0; start < 2; start++) await agree(app, release);
  }
  assert.equal((await agree(app, release)).stdout, 'rel/1 rel/1\n');
}, { links: { a: 'deep/x', 'deep/x/b': 'rel/1', 'deep/y/b': 'rel/2', 'node_modules/pkg': 'rel/2' }, only: [20, 26] });
