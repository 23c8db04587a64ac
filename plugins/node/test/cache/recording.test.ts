// What recordings add to a cache, and what they wait for.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { agree, cacheFile, OLD_MILLISECONDS, onEachOld, warm } from './support';

const MODULES = Array.from({ length: 12 }, (_, i) => `m${i}`);
const MANY = {
  'main.js': `console.log(${MODULES.map((name) => `require('./lib/${name}')`).join(' + ')}, process.argv[2] && require('./more/' + process.argv[2]));`,
  ...Object.fromEntries(MODULES.map((name, i) => [`lib/${name}.js`, `module.exports = ${i};`])),
  'more/a.js': "module.exports = 'a' + require('./shared');",
  'more/b.js': "module.exports = 'b' + require('./shared');",
  'more/shared.js': "module.exports = '!';",
};

onEachOld('what a later start loads is added to the cache', MANY, async (app, release) => {
  await warm(app, release);
  const before = fs.statSync(cacheFile(app)).size;
  for (const argument of ['a', 'b']) await warm(app, release, ['main.js', argument]);
  assert.ok(fs.statSync(cacheFile(app)).size > before);
  assert.equal((await agree(app, release)).hits, 13);
  for (const argument of ['a', 'b']) assert.equal((await agree(app, release, ['main.js', argument])).hits, 15);
  // A name that both looked for and did not find.
  app.write('more/shared', "module.exports = '?';");
  for (const argument of ['a', 'b']) assert.match((await agree(app, release, ['main.js', argument])).stdout, /\?$/m);
}, { only: [18, 20, 24] });

const LARGE = 600 * 1024;
const large = (value: string): string => `// A script that is not copied.\nmodule.exports = (() => '${value}')();\n/*${'x'.repeat(LARGE)}*/\n`;

onEachOld('a large script is served from where it is, as long as it is the same', { 'main.js': "console.log(require('./large'));", 'large.js': large('one') }, async (app, release) => {
  await warm(app, release);
  assert.ok(fs.statSync(cacheFile(app)).size < LARGE);
  assert.deepEqual(await agree(app, release), { stdout: 'one\n', hits: 2 });
  const { atime, mtime } = fs.statSync(app.path('large.js'));
  app.write('large.js', large('two'));
  fs.utimesSync(app.path('large.js'), atime, mtime);
  assert.deepEqual(await agree(app, release), { stdout: 'two\n', hits: 1 });
}, { only: [20, 24] });

onEachOld('a recording waits until it has been earned', MANY, async (app, release) => {
  const start = async (): Promise<Record<string, unknown>> => {
    await app.run(release, ['main.js']);
    return app.stats().at(-1)!;
  };
  const folder = path.join(app.cache, 'node');
  await start();
  const [account] = fs.readdirSync(folder).filter((name) => name.endsWith('.credit'));
  fs.writeFileSync(path.join(folder, account!), '-300000 20000 0 ');
  const { recorded_bytes: none, waiting } = await start();
  assert.deepEqual([none, waiting], [0, true]);
  fs.writeFileSync(path.join(folder, account!), '300000 20000 0 ');
  const { recorded_bytes: some, waiting: more } = await start();
  assert.ok(Number(some) > 0 && more === false);
  assert.ok(parseInt(fs.readFileSync(path.join(folder, account!), 'utf8'), 10) < 300000, 'it was not paid for');
  assert.equal((await start())['hits'], 13);
}, { only: [18, 22, 26] });

const PACKAGES = {
  'main.js': `console.log(${MODULES.map((name) => `require('${name}')`).join(' + ')});`,
  ...Object.fromEntries(MODULES.flatMap((name, i) => [
    [`node_modules/${name}/package.json`, { name, version: '1.0.0' }],
    [`node_modules/${name}/index.js`, `module.exports = ${i};`],
  ])),
};

onEachOld('packages that have just been installed are recorded when they are older', PACKAGES, async (app, release) => {
  for (let start = 0; start < 4; start++) {
    const now = new Date();
    for (const name of MODULES) fs.utimesSync(app.path(`node_modules/${name}/package.json`), now, now);
    await warm(app, release);
  }
  assert.ok((await agree(app, release)).hits < 13);
  await sleep(OLD_MILLISECONDS);
  await warm(app, release);
  assert.equal((await agree(app, release)).hits, 13);
}, { only: [18, 22, 26] });
