// Programs that look at what the cache could have changed: plain, recorded and served, they print the same.
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

/** The main script, and the module under test. */
const programs: Record<string, Record<string, string>> = {
  'what a module knows of itself': {
    'main.js': "require('./lib'); console.log(require.main === module, module.children.length, module.parent, require('./lib') === require('./lib/index.js'));",
    'lib/index.js': "console.log(module.id === __filename, module.loaded, module.parent === require.main, module.paths.length > 0, this === exports, arguments.length, require.resolve('../main'), require.resolve.paths('x').length > 1, require.name, require.length);",
  },
  'cycles': {
    'main.js': "console.log(require('./a'));",
    'a.js': "exports.early = 1; exports.b = require('./b').seen; exports.late = 2;",
    'b.js': "const a = require('./a'); exports.seen = { ...a };",
  },
  'strict mode, a mark and an interpreter': {
    'main.js': "#!/usr/bin/env node\nconsole.log(require('./strict'), require('./sloppy'), require('./marked'), require('./run'));",
    'strict.js': "'use strict';\nmodule.exports = (function () { return this; })() === undefined;",
    'sloppy.js': 'undeclared = 1; module.exports = (function () { return this; })() === globalThis;',
    'marked.js': '\uFEFFmodule.exports = 7;',
    'run.js': '#!/bin/false\nreturn module.exports = 8;',
  },
  'texts of functions': {
    'main.js': "const { f, C, own } = require('./lib'); console.log(f.toString(), String(C), own);",
    'lib.js': 'exports.f = function  (a,b) { /* as it is */ return a };\nexports.C = class  C { };\nexports.own = arguments.callee.toString().length;',
  },
  'modules that are taken out and put in': {
    'main.js': "require('./a').n = 5; console.log(require('./a').n); delete require.cache[require.resolve('./a')]; console.log(require('./a').n); require.cache[require.resolve('./b')] = { exports: 'put', loaded: true }; console.log(require('./b')); module.paths.unshift(__dirname + '/more'); console.log(require('extra'));",
    'a.js': 'exports.n = 1;',
    'b.js': "module.exports = 'b';",
    'more/extra.js': "module.exports = 'from more';",
    'node_modules/extra/index.js': "module.exports = 'from node_modules';",
  },
  'JSON that is changed': {
    'main.js': "require('./d.json').x = 2; console.log(require('./d'), delete require.cache[require.resolve('./d.json')], require('./d'));",
    'd.json': '\uFEFF{"x":1}',
  },
  'import() in a module': {
    'main.js': "require('./a').then(({ default: value }) => console.log(value, new Function('return import(\"node:fs\")')().constructor.name));",
    'a.js': "module.exports = import('./b.mjs');",
    'b.mjs': "export default 'imported';",
  },
  'import() that is made of a text': {
    'main.js': "require('./a').then(console.log); require('./c');",
    'a.js': "const AsyncFunction = (async () => {}).constructor;\nconst { constructor } = Object.getPrototypeOf(function* () {});\nmodule.exports = new AsyncFunction('return [(await import(\"./b.mjs\")).default, (await this.make(\\'return import(\"./b.mjs\")\\')).default]').call({ make: (text) => constructor(text)().next().value });",
    'b.mjs': "export default 'imported';",
    'c.js': "// import('./b.mjs')\nexports.text = `import('./b.mjs') is ${'not'} called`;",
  },
  'texts that are no functions': {
    'main.js': "for (const name of ['open', 'import', 'await']) try { require('./' + name); console.log(name); } catch (error) { console.log(error.name, error.message); }",
    'open.js': '}); (function () {',
    'import.cjs': "import 'fs';",
    'import.js': 'const const = 1;',
    'await.js': 'const exports = 1;',
  },
  'an exception that nobody catches': { 'main.js': "require('./a');", 'a.js': "const a = 1;\n  if (a) throw new TypeError('here');" },
  'an exit in the middle': { 'main.js': "process.on('exit', (code) => console.log('exit', code)); require('./a'); console.log('never');", 'a.js': 'process.exit(3);' },
  'an exit code': { 'main.js': "require('./a');", 'a.js': 'process.exitCode = 4;' },
  'a worker': {
    'main.js': "const { Worker } = require('worker_threads'); require('./a'); new Worker(__dirname + '/worker.js', { workerData: 1 }).on('message', console.log);",
    'worker.js': "require('worker_threads').parentPort.postMessage(require('./a'));",
    'a.js': "module.exports = 'a';",
  },
  'a fork': {
    'main.js': "if (process.send) process.send(require('./a')); else require('child_process').fork(__filename).on('message', (said) => console.log(said, require('./a')));",
    'a.js': "module.exports = 'a';",
  },
  'a cluster': {
    'main.js': "const cluster = require('cluster'); if (cluster.isPrimary) cluster.fork().on('message', (said) => console.log(said)); else { process.send(require('./a')); process.disconnect(); }",
    'a.js': "module.exports = 'a';",
  },
  'names that are hard to find': {
    'main.js': "console.log(require('.'), require('./dir/'), require('./dir/..'), require('./dir/sub/../x'), require(__dirname + '/dir'), require('pkg/sub'), require('@scope/name'));",
    'index.js': "module.exports = 'index';",
    'dir/index.js': "module.exports = 'dir';",
    'dir/x.cjs': "module.exports = 'never';",
    'dir/x.js': "module.exports = 'x';",
    'node_modules/pkg/sub.js': "module.exports = 'sub';",
    'node_modules/@scope/name/index.js': "module.exports = 'scoped';",
  },
  'a module that is not there': {
    'main.js': "for (let i = 0; i < 2; i++) try { require('./absent') } catch (error) { console.log(error.code, error.requireStack) }\ntry { require('') } catch (error) { console.log(error.code) }\ntry { require.resolve(1) } catch (error) { console.log(error.code) }\nrequire('./a');",
    'a.js': '',
  },
};

for (const [name, files] of Object.entries(programs)) {
  onEach(name, async (release, t) => {
    // The second start may complete the cache, and the third is served from it. Before Node 22 modules that
    // import are left to Node.
    const served = release.major > 20 || name !== 'import() in a module';
    await sameAsPlain(App.create(t, files), release, ['main.js'], { starts: 3, served });
  });
}
