// Coverage counts the same code, equally often, whether or not the program has a cache.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

const FILES = {
  'main.js': "const { sign } = require('./sign');\nconsole.log(sign(3), sign(4));\n",
  'sign.js': "exports.sign = (n) => {\n  if (n < 0) return 'negative';\n  return n ? 'positive' : 'zero';\n};\nfunction never() {\n  return 1;\n}\n",
};

interface Profile {
  result: { url: string; functions: unknown[] }[];
}

/** V8's counts for the app's files. */
function counted(app: App, folder: string): unknown[] {
  const profiles = fs.readdirSync(app.path(folder)).map((name) => JSON.parse(fs.readFileSync(app.path(path.join(folder, name)), 'utf8')) as Profile);
  const scripts = profiles.flatMap(({ result }) => result).filter(({ url }) => url.includes(app.folder));
  return scripts.map(({ url, functions }) => ({ url, functions })).sort((a, b) => (a.url < b.url ? -1 : 1));
}

onEach('NODE_V8_COVERAGE', async (release, t) => {
  const app = App.create(t, FILES);
  await sameAsPlain(app, release, ['main.js'], { served: true });
  for (const plugin of [false, true]) {
    await app.run(release, ['main.js'], { plugin, env: { NODE_V8_COVERAGE: `coverage-${plugin}` } });
  }
  assert.equal(counted(app, 'coverage-false').length, 2);
  assert.deepEqual(counted(app, 'coverage-true'), counted(app, 'coverage-false'));
});

onEach('coverage that starts later, through an inspector session', async (release, t) => {
  const app = App.create(t, { ...FILES, 'session.js': `
const { Session } = require('inspector');
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
require('./main');
session.post('Profiler.takePreciseCoverage', (error, { result }) => {
  const own = result.filter(({ url }) => url.includes(__dirname) && !url.endsWith('session.js'));
  for (const { url, functions } of own) {
    const source = require('fs').readFileSync(new URL(url), 'utf8');
    for (const { functionName, ranges } of functions) {
      if (functionName) console.log(url, functionName, ranges.map(({ startOffset, endOffset, count }) => [source.slice(startOffset, endOffset), count]));
    }
  }
});` });
  const { plain } = await sameAsPlain(app, release, ['session.js']);
  assert.match(plain.stdout, /negative/);
});

onEach('c8', async (release, t) => {
  const app = App.create(t, FILES).usePackages();
  await sameAsPlain(app, release, ['main.js'], { served: true });
  const { plain } = await sameAsPlain(app, release, ['node_modules/c8/bin/c8.js', '--reporter=text', 'node', 'main.js'], { starts: 2 });
  assert.match(plain.stdout, /sign\.js .* 50 /);
}, { only: [20, 24] });
