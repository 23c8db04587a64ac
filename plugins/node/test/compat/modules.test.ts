// CommonJS's guarantees, examined from inside a program that prints everything it can see of its modules.
import assert from 'node:assert/strict';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

const LIBRARY = {
  'node_modules/lib/package.json': {
    name: 'lib',
    version: '1.0.0',
    exports: { '.': { custom: './custom.js', import: './index.mjs', require: './index.js' }, './deep/*': './src/*.js', './package.json': './package.json' },
    imports: { '#inner': './src/inner.js' },
  },
  'node_modules/lib/index.js': "exports.name = 'lib'; exports.inner = require('#inner'); exports.self = require('lib/deep/inner') === exports.inner;",
  'node_modules/lib/index.mjs': "export const name = 'lib as a module';",
  'node_modules/lib/custom.js': "exports.name = 'lib by a condition';",
  'node_modules/lib/src/inner.js': 'module.exports = { inner: __filename };',
  'node_modules/old/package.json': { name: 'old', main: 'lib' },
  'node_modules/old/lib/index.js': "module.exports = 'main is a folder';",
};

const PROGRAM = {
  ...LIBRARY,
  'main.js': `#!/usr/bin/env node
const seen = {};
seen.library = require('lib');
seen.old = require('old');
seen.wrapper = require('./src/wrapper');
seen.circle = require('./src/circle-a');
seen.json = require('./data');
seen.cjs = require('./src/explicit.cjs');
seen.folder = require('./src/folder');
seen.bom = require('./src/bom');
seen.hashbang = require('./src/hashbang');
seen.last = require('./src/no newline at the end');
seen.same = require('./src/wrapper.js') === require('./src/wrapper');
const refusal = (name) => { try { return require(name); } catch (error) { return [error.name, error.code, error.message, error.requireStack, error.path]; } };
for (const name of ['absent', './absent', 'lib/hidden', './src/broken.json', '#nowhere', '']) seen['require ' + name] = refusal(name);
seen.throwing = [refusal('./src/throwing'), refusal('./src/throwing'), require.resolve('./src/throwing') in require.cache];
seen.resolved = [require.resolve('lib'), require.resolve('./src/folder'), require.resolve('fs'), require.resolve('lib/deep/inner', { paths: [__dirname + '/src'] })];
seen.paths = [module.paths, require.resolve.paths('lib'), require.resolve.paths('./x'), require.resolve.paths('fs')];
seen.main = [require.main === module, module.id, module.filename, module.loaded, module.parent, module.path, Object.keys(require), Object.keys(module)];
delete require.cache[require.resolve('./src/counted')];
seen.counted = [require('./src/counted'), delete require.cache[require.resolve('./src/counted')], require('./src/counted'), global.counted];
require.cache[require.resolve('./src/replaced')] = { exports: 'replaced', loaded: true };
seen.replaced = require('./src/replaced');
seen.strict = require('./src/strict');
seen.source = require('./src/wrapper').source === String(require('./src/wrapper').fn);
const list = (m, above) => [m.id, m.loaded, m.constructor.name, ...(above.includes(m) ? [] : (m.children ?? []).map((child) => list(child, [m, ...above])))];
process.on('exit', () => {
  seen.tree = list(module, []);
  seen.cache = Object.keys(require.cache).filter((file) => file.startsWith(__dirname));
  console.log(JSON.stringify(seen, null, 1));
});
`,
  'src/wrapper.js': `exports.fn = function named(a, b) { return a; };
exports.facts = [arguments.length, this === exports, this === module.exports, __filename, __dirname, typeof require.extensions, require.main.filename, module.parent.id];
exports.source = exports.fn.toString();
exports.where = new Error('here').stack.split('\\n').slice(0, 2);
exports.names = [require.name, require.length, require.resolve.name, typeof require.cache, module.children.length, Object.getPrototypeOf(module).constructor.name];
exports.caller = arguments.callee.toString().slice(0, 40);`,
  'src/circle-a.js': "exports.early = 1; const b = require('./circle-b'); exports.late = b.seen;",
  'src/circle-b.js': "const a = require('./circle-a'); exports.seen = { ...a };",
  'src/explicit.cjs': 'module.exports = __filename;',
  'src/folder/index.js': "module.exports = 'folder';",
  'src/folder/index.json': {},
  'src/folder.json': '{"a file goes before a folder": true}',
  'src/bom.js': '\uFEFFmodule.exports = new Error().stack.split("\\n")[1];',
  'src/hashbang.js': '#!/usr/bin/node --flag\nmodule.exports = new Error().stack.split("\\n")[1];',
  'src/no newline at the end.js': 'module.exports = 1 // and a comment',
  'src/throwing.js': "global.times = (global.times ?? 0) + 1; throw new Error('thrown ' + global.times);",
  'src/broken.json': '{"broken": ',
  'src/counted.js': 'module.exports = global.counted = (global.counted ?? 0) + 1;',
  'src/replaced.js': "throw new Error('never loaded');",
  'src/strict.js': "'use strict'; module.exports = (function () { return this === undefined; })();",
  'data.json': '\uFEFF{"text": "ü", "list": [1, 2.5, null]}',
};

onEach('all that a program can see of its modules', async (release, t) => {
  const app = App.create(t, PROGRAM);
  const { plain } = await sameAsPlain(app, release, ['main.js'], { served: true });
  assert.equal(plain.code, 0, plain.stderr);
  assert.match(plain.stdout, /"a file goes before a folder"/);
});

onEach('conditions, symlinks and NODE_PATH lead elsewhere, each with a cache of its own', async (release, t) => {
  const app = App.create(t, { ...LIBRARY, 'main.js': "console.log(require('lib').name, __filename)", 'other/far.js': "console.log('far')" });
  await sameAsPlain(app, release, ['main.js']);
  const { plain } = await sameAsPlain(app, release, ['--conditions=custom', 'main.js']);
  assert.match(plain.stdout, /by a condition/);
  await sameAsPlain(app, release, ['main.js']);
  await sameAsPlain(app, release, ['main.js'], { env: { NODE_OPTIONS: '-C custom' } });
  app.write('far.js', "require('far')");
  assert.match((await sameAsPlain(app, release, ['far.js'])).plain.stderr, /Cannot find module 'far'/);
  assert.equal((await sameAsPlain(app, release, ['far.js'], { env: { NODE_PATH: app.path('other') } })).plain.stdout, 'far\n');
  await sameAsPlain(app, release, ['far.js']);
  app.link('main.js', 'linked/main.js');
  await sameAsPlain(app, release, ['linked/main.js']);
  await sameAsPlain(app, release, ['--preserve-symlinks', '--preserve-symlinks-main', 'linked/main.js']);
  await sameAsPlain(app, release, ['linked/main.js'], { env: { NODE_PRESERVE_SYMLINKS: '1' } });
}, { only: [18, 22, 26] });

const PATCHES: Record<string, string> = {
  'Module._extensions of its own': `
    const original = require.extensions['.js'];
    require.extensions['.js'] = (module, file) => { console.log('loads', file); original(module, file); };
    require.extensions['.odd'] = (module, file) => { module.exports = 'odd'; };
    console.log(require('./a.js'), require('./c'));`,
  'Module.prototype._compile': `
    const { prototype } = require('module'); const original = prototype._compile;
    prototype._compile = function (source, ...rest) { return original.call(this, source.replace('original', 'changed'), ...rest); };
    console.log(require('./a.js'));`,
  'Module._resolveFilename': `
    const Module = require('module'); const original = Module._resolveFilename;
    Module._resolveFilename = (name, ...rest) => original.call(Module, name === './a.js' ? './b.js' : name, ...rest);
    console.log(require('./a.js'));`,
  'Module._load': `
    const Module = require('module'); const original = Module._load;
    Module._load = function (name, ...rest) { console.log('load', name); return original.call(this, name, ...rest); };
    console.log(require('./a.js'));`,
  'Module.wrap': `
    const Module = require('module'); const original = Module.wrap;
    Module.wrap = (source) => original("console.log('wrapped');" + source);
    console.log(require('./a.js'));`,
  'Module.wrapper': `
    const Module = require('module'); Module.wrapper[0] += "console.log('wrapped');";
    console.log(require('./a.js'));`,
  'module.paths': `
    module.paths.unshift(__dirname + '/other_modules');
    console.log(require('other'));`,
  'Module._findPath and _pathCache': `
    const Module = require('module'); const original = Module._findPath;
    Module._findPath = (name, ...rest) => name.endsWith('a.js') ? __dirname + '/b.js' : original(name, ...rest);
    console.log(require('./a.js'));`,
  'Module._nodeModulePaths': `
    const Module = require('module'); const original = Module._nodeModulePaths;
    Module._nodeModulePaths = (from) => [__dirname + '/other_modules', ...original(from)];
    console.log(require('./inner/asks.js'));`,
  'fs.readFileSync': `
    const fs = require('fs'); const original = fs.readFileSync;
    fs.readFileSync = (file, ...rest) => String(file).endsWith('a.js') ? "module.exports = 'virtual'" : original(file, ...rest);
    console.log(require('./a.js'));`,
  'Error.prepareStackTrace': `
    Error.prepareStackTrace = (error, calls) => calls.slice(0, 1).map((call) => [call.getFileName(), call.getLineNumber(), call.getColumnNumber(), call.getFunctionName(), call.getTypeName()].join()).join();
    console.log(require('./stack.js'));`,
  'module.createRequire': `
    const own = require('module').createRequire(__dirname + '/inner/none.js');
    console.log(own('../a.js'), own.resolve('../a.js'), own.main === require.main);`,
  'new Module': `
    const Module = require('module'); const m = new Module(__dirname + '/virtual.js', module);
    m.filename = m.id; m.paths = Module._nodeModulePaths(__dirname);
    m._compile("module.exports = [require('./a.js'), module.parent.id, __filename]", m.filename);
    console.log(m.exports, m.require('./b.js'));`,
};

for (const [name, program] of Object.entries(PATCHES)) {
  onEach(`a program patches ${name}`, async (release, t) => {
    const app = App.create(t, {
      'main.js': `console.log(require('./before.js'));${program}`,
      'before.js': "module.exports = 'before'",
      'a.js': "module.exports = 'original a'",
      'b.js': "module.exports = 'original b'",
      'c.odd': 'not JavaScript',
      'stack.js': 'module.exports = new Error().stack',
      'inner/asks.js': "module.exports = require('other')",
      'other_modules/other.js': "module.exports = 'other'",
      'node_modules/other.js': "module.exports = 'wrong'",
    });
    const { plain } = await sameAsPlain(app, release, ['main.js'], { served: true });
    assert.equal(plain.code, 0, plain.stderr);
  });
}

const HOOKS = `
const { registerHooks } = require('module');
console.log(require('./a.js'));
registerHooks({
  resolve(name, context, next) { if (!name.startsWith('node:')) console.log('resolve', name); return next(name === './virtual' ? './b.js' : name, context); },
  load(url, context, next) { const result = next(url, context); if (url.endsWith('b.js')) { console.log('load', url, typeof result.source); return { ...result, source: "module.exports = 'hooked'" }; } return result; },
});
console.log(require('./virtual'), require('./c.js'));
`;

onEach('module.registerHooks sees what is loaded after it', async (release, t) => {
  const files = { 'main.js': HOOKS, 'a.js': "module.exports = 'a'", 'b.js': "module.exports = 'b'", 'c.js': "module.exports = require('./b.js') + require('./a.js')" };
  const { plain } = await sameAsPlain(App.create(t, files), release, ['main.js'], { served: true });
  assert.match(plain.stdout, /hooked/);
}, { from: 22 });
