// node build.mjs plugin|eager|hasty|tests OUT: bundles the package, one for tests that records whatever it costs, one that is also quick to believe the
// times of files, or its tests, into OUT. The tools are in .deps/node-plugin (scripts/node-plugin.sh).
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, '../..');
const { build } = createRequire(path.join(root, '.deps/node-plugin/'))('esbuild');

// One file for each moment in the life of a process: a short one reads no more than it uses.
const entries = {
  register: 'src/register.ts',
  own: 'src/own.ts',
  serve: 'src/cache/serve.ts',
  recorder: 'src/cache/recorder.ts',
  record: 'src/cache/record.ts',
  gc: 'src/gc/gc.ts',
  esm: 'src/esm/esm.ts',
  stats: 'src/cache/stats.ts',
};

const common = {
  absWorkingDir: here,
  bundle: true,
  charset: 'ascii',
  format: 'cjs',
  logLevel: 'warning',
  platform: 'node',
  target: 'node18',
};

async function plugin(outdir, plugins = []) {
  const { register, ...others } = entries;
  await build({ ...common, entryPoints: others, outdir, plugins });
  await build({ ...common, ...OLD, entryPoints: { register }, outdir, plugins });
  const file = path.join(outdir, 'register.js');
  fs.writeFileSync(file, withEager(askingOnce(fs.readFileSync(file, 'utf8'))));
  fs.writeFileSync(path.join(outdir, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`);
  fs.copyFileSync(path.join(here, 'README.md'), path.join(outdir, 'README.md'));
}

// What is loaded first has to be read by releases that know nothing of what the plugin is written in, nor of the names with `node:`. It ends there at once.
const OLD = {
  target: 'es2017',
  tsconfigRaw: { compilerOptions: { useDefineForClassFields: false } },
};

// What every start calls. V8 compiles a function in parentheses with its file; others it reads twice, the second time when they are called.
const EAGER = [
  ...['disabled', 'settings', 'folder', 'standAside', 'isForeign', 'packed', 'privileged', 'environment', 'options', 'firstMeaning', 'words', 'isPlain', 'script', 'isWorker'],
  ...['isPatched', 'isHooked', 'mainScript', 'isModule', 'packageType', 'keyText', 'digest', 'takeNotes', 'noted'],
  ...['hide', 'start', 'startCache', 'useCache', 'goOnLater'],
];

// esbuild asks for a module of Node's in every file that needs it, which takes 10 µs each time. Old releases know it without `node:` only.
function askingOnce(text) {
  const names = new Map();
  text = text.replaceAll('require("node:', 'require("');
  return [...text.matchAll(/^var (\w+) = require\("([\w:]+)"\);\n/gm)].reduce((before, [line, name, module]) => {
    const first = names.get(module);
    if (!first) names.set(module, name);
    return first ? before.replace(line, '').replace(new RegExp(`\\b${name}\\b`, 'g'), first) : before;
  }, text);
}

function withEager(text) {
  return EAGER.reduce((before, name) => {
    const after = before.replace(new RegExp(`^(function ${name}\\([^]*?^\\})$`, 'm'), `var ${name} = ($1);`);
    if (after === before) throw new Error(`register.js has no function ${name} any more`);
    return after;
  }, text);
}

// Small programs are not worth a cache, and large ones get theirs over several starts. Tests want one of every program, at once.
// Nor may the recorder of collections look away from a program that is compared with V8's own trace.
const POLICY = {
  'cache/recorder': { WORTH_MODULES: '1', WORTH_BESIDE: '1' },
  'cache/credit': { GIVEN: '1e12' },
  'cache/session': { LONE_BYTES: '0', LONE_MILLISECONDS: '0' },
  'gc/budget': { NOTICE_SHARE: '1e6' },
  // Long profiles are taken in stretches; tests are short.
  'gc/stacks': { LEAST_MS: '300', RARELY: '1' },
};

// A walk over many steps cannot wait two seconds at each.
const HASTE = { ...POLICY, 'cache/record': { YOUNG_MILLISECONDS: '20' } };

const changing = (policy) => ({
  name: 'changing',
  setup: (building) => {
    for (const [file, constants] of Object.entries(policy)) {
      building.onLoad({ filter: new RegExp(`/src/${file}\\.ts$`) }, ({ path: found }) => {
        let contents = fs.readFileSync(found, 'utf8');
        for (const [name, value] of Object.entries(constants)) {
          const changed = contents.replace(new RegExp(`^((?:export )?const ${name}) = .*;$`, 'm'), `$1 = ${value};`);
          if (changed === contents) throw new Error(`${file}.ts has no constant ${name} any more`);
          contents = changed;
        }
        return { contents, loader: 'ts' };
      });
    }
  },
});

// The package is what has been built: no tools, and the version of the workspace.
function manifest() {
  const { private: _, devDependencies: __, name, ...rest } = JSON.parse(fs.readFileSync(path.join(here, 'package.json'), 'utf8'));
  const [, version] = fs.readFileSync(path.join(root, 'Cargo.toml'), 'utf8').match(/^version = "(.+)"$/m);
  return { name, version, ...rest };
}

async function tests(outdir) {
  const files = fs.readdirSync(path.join(here, 'test'), { recursive: true, encoding: 'utf8' });
  const sources = files.filter((file) => /\.(test|subject)\.ts$/.test(file));
  fs.rmSync(outdir, { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: sources.map((file) => path.join('test', file)),
    outbase: 'test',
    outdir,
    sourcemap: 'inline',
    define: {
      HASTEN_ROOT: JSON.stringify(root),
      HASTEN_PLUGIN: JSON.stringify(path.join(path.dirname(outdir), 'plugin')),
      HASTEN_TESTS: JSON.stringify(outdir),
    },
  });
}

const [what, out] = process.argv.slice(2);
if (what === 'plugin') await plugin(path.resolve(out));
else if (what === 'eager') await plugin(path.resolve(out), [changing(POLICY)]);
else if (what === 'hasty') await plugin(path.resolve(out), [changing(HASTE)]);
else if (what === 'tests') await tests(path.resolve(out));
else throw new Error('usage: node build.mjs plugin|eager|hasty|tests OUT');
