// Ways in which a program is started, and starts others.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

onEach('a script with a #! line, through a symlink', async (release, t) => {
  const app = App.create(t, {
    'node_modules/tool/bin/tool.js': "#!/usr/bin/env node\nconsole.log(require('../lib').name, __filename, process.argv.slice(2), require.main === module);\n",
    'node_modules/tool/lib/index.js': "exports.name = 'tool';",
  });
  app.link('node_modules/tool/bin/tool.js', 'node_modules/.bin/tool');
  fs.chmodSync(app.path('node_modules/tool/bin/tool.js'), 0o755);
  const { plain } = await sameAsPlain(app, release, ['--flag'], { program: app.path('node_modules/.bin/tool'), served: true });
  assert.match(plain.stdout, /^tool .*\/tool\.js \[ '--flag' \] true\n$/);
});

onEach('a main without its extension, and a folder', async (release, t) => {
  const app = App.create(t, { 'src/index.js': 'console.log(__filename, process.argv)', 'noext': "console.log('no extension', __filename)", 'package.json': { main: 'src' } });
  for (const main of ['src/index', 'src', '.', './noext']) await sameAsPlain(app, release, [main]);
  assert.match((await sameAsPlain(app, release, ['absent'])).plain.stderr, /Cannot find module/);
}, { only: [18, 22, 26] });

onEach('npm start and npx', async (release, t) => {
  const app = App.create(t, {
    'package.json': { name: 'app', version: '1.0.0', scripts: { start: 'node main.js' } },
    'main.js': "console.log('started', require('./lib').name);",
    'lib.js': "exports.name = 'lib';",
    'node_modules/tool/package.json': { name: 'tool', version: '1.0.0', bin: 'tool.js' },
    'node_modules/tool/tool.js': "#!/usr/bin/env node\nconsole.log('tool', process.argv.slice(2));\n",
  });
  app.link('node_modules/tool/tool.js', 'node_modules/.bin/tool');
  fs.chmodSync(app.path('node_modules/tool/tool.js'), 0o755);
  const npm = { starts: 2, served: true, env: { npm_config_update_notifier: 'false', npm_config_loglevel: 'error' } };
  assert.match((await sameAsPlain(app, release, ['start'], { ...npm, program: 'npm' })).plain.stdout, /started lib/);
  assert.match((await sameAsPlain(app, release, ['--no', 'tool', 'x'], { ...npm, program: 'npx' })).plain.stdout, /tool \[ 'x' \]/);
}, { only: [20] });

onEach('a cluster', async (release, t) => {
  const app = App.create(t, {
    'main.js': `const cluster = require('cluster');
      if (cluster.isPrimary) {
        const lines = [];
        for (const id of [1, 2]) cluster.fork({ ID: id }).on('message', (line) => lines.push(line));
        cluster.on('exit', () => { if (Object.keys(cluster.workers).length === 0) console.log(lines.sort().join('\\n')); });
      } else {
        process.send(process.env.ID + require('./lib').name, () => process.exit());
      }`,
    'lib.js': "exports.name = ' worker';",
  });
  assert.equal((await sameAsPlain(app, release, ['main.js'], { served: true })).plain.stdout, '1 worker\n2 worker\n');
});

onEach('fork, spawn and their options', async (release, t) => {
  const app = App.create(t, {
    'main.js': `const { fork, execFileSync } = require('child_process');
      fork('./child.js', ['forked'], { execArgv: ['--stack-trace-limit=1'] }).on('exit', (code) => {
        console.log(code, execFileSync(process.execPath, ['child.js', 'spawned'], { encoding: 'utf8' }));
        console.log(execFileSync(process.execPath, ['-p', 'require("./lib").name'], { encoding: 'utf8' }));
        console.log(execFileSync(process.execPath, ['child.js', 'bare'], { encoding: 'utf8', env: {} }));
      });`,
    'child.js': "console.log(process.argv[2], process.execArgv, require('./lib').name); process.exitCode = 3 * (process.argv[2] === 'forked');",
    'lib.js': "exports.name = 'lib';",
  });
  assert.match((await sameAsPlain(app, release, ['main.js'], { starts: 2, served: true })).plain.stdout, /^forked .*\n3 spawned/);
});

onEach('worker threads', async (release, t) => {
  const app = App.create(t, {
    'main.js': `const { Worker } = require('worker_threads');
      const run = (file, options) => new Promise((done) => new Worker(file, options).on('message', (text) => console.log(text)).on('exit', done));
      (async () => {
        await run('./worker.js', { workerData: 1 });
        await run(__dirname + '/worker.js', { workerData: 2, argv: ['x'], env: { A: '1' }, execArgv: ['--no-warnings'] });
        await run("require('worker_threads').parentPort.postMessage([module.id, require('./lib').name])", { eval: true });
        await run('./worker.mjs');
        await run(new URL('data:text/javascript,import { parentPort } from "worker_threads"; parentPort.postMessage("data")'));
        await Promise.all([3, 4, 5].map((workerData) => run('./worker.js', { workerData }))).then((codes) => console.log(codes));
      })();`,
    'worker.js': `const { parentPort, workerData } = require('worker_threads');
      if (workerData < 3) parentPort.postMessage([workerData, process.argv.slice(2), require('./lib'), require.main === module, module.id, __filename]);
      require('./lib');`,
    'worker.mjs': "import { parentPort } from 'worker_threads'; import lib from './lib.js'; parentPort.postMessage(lib);",
    'lib.js': "exports.name = 'lib'; exports.stack = new Error().stack.split('\\n')[1];",
  });
  assert.match((await sameAsPlain(app, release, ['main.js'])).plain.stdout, /\[ 0, 0, 0 \]/);
});

onEach('other preloads, before and after', async (release, t) => {
  const app = App.create(t, {
    'main.js': "console.log(global.order, require('./lib').name, module.id, process.mainModule === module);",
    'lib.js': "exports.name = 'lib';",
    'one.js': "global.order = ['one', require('./lib').name, module.parent?.id, require.main];",
    'two.js': "global.order.push('two');",
  });
  await sameAsPlain(app, release, ['-r', './one.js', '--require', './two.js', 'main.js'], { served: true });
  await sameAsPlain(app, release, ['-r', './two.js', 'main.js'], { env: { NODE_OPTIONS: '-r ./one.js' } });
  await sameAsPlain(app, release, ['-r', './absent.js', 'main.js'], { starts: 1 });
}, { only: [18, 20, 24, 26] });

onEach('a native addon', async (release, t) => {
  const app = App.create(t, { 'main.js': "const { crc32, crc32c } = require('@node-rs/crc32'); console.log(crc32('hasten'), crc32c(Buffer.from('hasten')), Object.keys(require.cache).some((file) => file.endsWith('.node')));" });
  const { plain } = await sameAsPlain(app.usePackages(), release, ['main.js'], { served: true });
  assert.match(plain.stdout, /^\d+ \d+ true\n$/);
});

onEach('exit codes and signals', async (release, t) => {
  const app = App.create(t, {
    'exit.js': 'process.exit(Number(process.argv[2]))',
    'late.js': "process.on('exit', (code) => { process.exitCode = code + 7; require('./exit-lib.js') })",
    'exit-lib.js': "console.log('loaded at exit')",
    'kill.js': "process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)",
    'abort.js': 'process.abort()',
    'before.js': "process.once('beforeExit', () => console.log(require('./exit-lib.js')))",
    'handler.js': "process.on('SIGTERM', () => { console.log('terminated'); process.exit(5) }); process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)",
    'listeners.js': "console.log(['beforeExit', 'SIGTERM', 'uncaughtException'].map((name) => process.listenerCount(name)), process._getActiveHandles().length)",
  });
  await sameAsPlain(app, release, ['exit.js', '42']);
  for (const main of ['late.js', 'kill.js', 'before.js', 'handler.js', 'listeners.js']) await sameAsPlain(app, release, [main]);
}, { only: [18, 22, 26] });
