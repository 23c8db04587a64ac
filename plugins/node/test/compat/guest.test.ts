// The plugin is a guest: it accompanies every Node.js, and leaves nothing in the program's world.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { oldReleases, onEach } from '../support/releases';

for (const release of oldReleases) {
  test(`a release from before its time (node ${release.major})`, async (t) => {
    // Longer than the plugin waits elsewhere.
    const app = App.create(t, {
      'main.js': `console.log(require('./lib').name, process.argv.slice(2));
        require('child_process').fork('./child.js').on('exit', (code) => setTimeout(() => { console.log(code); process.exit(4); }, 1200));`,
      'child.js': "console.log('child'); process.exitCode = 3;",
      'lib.js': "exports.name = 'lib';",
    });
    const { plain, stats } = await sameAsPlain(app, release, ['main.js', 'x']);
    assert.deepEqual(plain, { code: 4, signal: null, stdout: "lib [ 'x' ]\nchild\n3\n", stderr: '' });
    assert.deepEqual(stats, []);
  });
}

// Long enough for the plugin to have observed the program twice.
const WAIT = "const { setTimeout: later } = require('timers');";

onEach('a program that brings its own timers and clock', async (release, t) => {
  const app = App.create(t, {
    'main.js': `${WAIT} const real = { setTimeout, Date };
      const calls = [];
      for (const name of ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'setImmediate', 'queueMicrotask']) globalThis[name] = () => calls.push(name);
      globalThis.Date = class extends Date { static now() { calls.push('Date.now'); return 0; } };
      require('./lib');
      process.on('exit', () => console.log(calls));
      later(() => {}, 1500);`,
    'lib.js': '',
  });
  assert.equal((await sameAsPlain(app, release, ['main.js'], { starts: 3 })).plain.stdout, '[]\n');
});

onEach('a program that looks at who uses files', async (release, t) => {
  const app = App.create(t, {
    'main.js': `${WAIT} const fs = require('fs');
      require('./lib');
      const calls = [];
      for (const name of Object.keys(fs)) {
        const original = fs[name];
        if (typeof original === 'function' && name.endsWith('Sync') && !/^(real|read)/.test(name)) fs[name] = Object.assign(function (...given) { calls.push(name); return original.apply(this, given); }, original);
      }
      process.on('exit', () => console.log(calls));
      later(() => {}, 1500);`,
    'lib.js': '',
  });
  assert.equal((await sameAsPlain(app, release, ['main.js'], { starts: 3 })).plain.stdout, '[]\n');
}, { only: [18, 24] });

// realpathSync reuses the last requested state, whoever requested it, and takes links for plain names if that was a
// socket's: the plugin has one.
onEach('a package behind a link that is required late', async (release, t) => {
  const app = App.create(t, {
    'main.js': `const { existsSync } = require('fs'); const { HASTEN_RUNTIME_DIR: folder } = process.env;
      require('./early');
      let looks = 0;
      const look = () => existsSync(folder + '/node/' + process.pid + '.sock') || ++looks > 100 ? setTimeout(() => console.log(require('lib')), 50) : setTimeout(look, 20);
      look();`,
    'early.js': '',
    'store/lib/index.js': "module.exports = require('needed');",
    'store/node_modules/needed/index.js': "module.exports = 'found';",
  });
  app.link('store/lib', 'node_modules/lib');
  assert.equal((await sameAsPlain(app, release, ['main.js'], { env: { HASTEN_NODE_GC: 'record' }, starts: 2 })).plain.stdout, 'found\n');
});

onEach('a program of which Node tells what it reads', async (release, t) => {
  const app = App.create(t, { 'main.js': `${WAIT} later(() => require('./lib'), 1500);`, 'lib.js': "require('fs').statSync('.');" });
  const { plain } = await sameAsPlain(app, release, ['--trace-sync-io', 'main.js'], { starts: 3 });
  assert.match(plain.stderr, /Detected use of sync API/);
});

onEach('a program that looks through require.cache, in a thread, too', async (release, t) => {
  const app = App.create(t, {
    'main.js': `const { Worker, isMainThread } = require('worker_threads');
      require('./lib');
      console.log(Object.keys(require.cache).map((file) => require('path').relative(__dirname, file)));
      for (const file in require.cache) delete require.cache[file];
      console.log(require('./lib').name);
      if (isMainThread) new Worker(__filename);`,
    'lib.js': "exports.name = 'lib';",
  });
  const seen = "[ 'main.js', 'lib.js' ]\nlib\n";
  assert.equal((await sameAsPlain(app, release, ['main.js'], { starts: 3 })).plain.stdout, seen + seen);
});

onEach('modules that a program is rid of', async (release, t) => {
  const app = App.create(t, {
    'main.js': `${WAIT} const gone = [];
      for (let i = 0; i < 50; i++) {
        require('./lib');
        gone.push(new WeakRef(require.cache[require.resolve('./lib')]));
        for (const name of ['./lib', './data']) delete require.cache[require.resolve(name)];
        module.children.length = 0;
      }
      later(() => { gc(); console.log(gone.filter((one) => one.deref()).length < 5); }, 100);`,
    'lib.js': "require('./data'); module.exports = module;",
    'data.js': '',
  });
  const { plain } = await sameAsPlain(app, release, ['--expose-gc', 'main.js'], { starts: 3 });
  assert.equal(plain.stdout, 'true\n');
});

onEach('a warning that is not for the users of a package', async (release, t) => {
  const app = App.create(t, {
    'main.js': "console.log(require('idn'));",
    'node_modules/idn/index.js': "module.exports = require('punycode').toASCII('ä.example');",
  });
  const { plain } = await sameAsPlain(app, release, ['--throw-deprecation', 'main.js'], { starts: 3, served: true });
  assert.deepEqual([plain.code, plain.stderr], [0, '']);
}, { from: 22 });

onEach('a file that ends the function it is put into', async (release, t) => {
  const app = App.create(t, {
    'main.js': "for (const name of ['one', 'two', 'three']) try { require('./' + name); } catch (error) { console.log(name, error.name); }",
    'one.js': "}); console.log('it ran'); (function () {",
    'two.js': "}, console.log('it ran'), function () {",
    'three.js': '}[console.log("it ran")] = function () {',
  });
  const { plain } = await sameAsPlain(app, release, ['main.js'], { starts: 4 });
  assert.match(plain.stdout, /^one SyntaxError\ntwo SyntaxError\nthree SyntaxError\n$/);
});
