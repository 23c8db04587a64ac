// Loads the plugin's other files, past anything that the program has put in place of the loader.
import fs = require('node:fs');
import type * as Vm from 'node:vm';
import { contentOf } from './cache/content';
import { loader } from './cache/loader';
import type * as Own from './own';

// The plugin's own file functions: the program may replace its own (mocks, spies, queues).
const FILES =
  'chmodSync closeSync constants copyFileSync existsSync fstatSync ftruncateSync lstatSync mkdirSync openSync readSync' +
  ' readdirSync readlinkSync realpathSync renameSync rmSync statSync unlinkSync writeFileSync writeSync';
const files = {} as Record<string, unknown> & typeof fs;
const { statSync } = fs;
for (const name of FILES.split(' ')) files[name] = fs[name as keyof typeof fs];
for (const name of ['fstatSync', 'lstatSync', 'statSync']) files[name] = discreet(files[name] as Stat);

// Node's own realpathSync, by which `require` follows links, looks at the last state requested in this process, and
// stops if that was a socket's or a pipe's. Our requests must not be the last such state.
function discreet(stat: Stat): Stat {
  return (what, options) => {
    const stats = stat(what, options);
    if (stats && (stats.isSocket() || stats.isFIFO())) statSync('/');
    return stats;
  };
}

type Stat = (what: string | number, options?: object) => fs.Stats | undefined;
const load = loader._load as (request: string) => unknown;
// 20.16, 22.3 and later. It is used where hooks see what the loader loads (22.15).
const { getBuiltinModule } = process as { getBuiltinModule?: (id: string) => unknown };

/**
 * One of Node's modules, by its name with `node:`; for `node:fs`, what the plugin uses of it, as it was at the start.
 */
export function builtin<T>(name: string): T {
  if (name === 'node:fs') return files as T;
  return (getBuiltinModule ? getBuiltinModule(name) : load.call(loader, name)) as T;
}

export type Builtin = typeof builtin;

const taken = [setTimeout, clearTimeout, setInterval, clearInterval, Date] as const;
export type Taken = typeof taken;

let known: Own.Files | undefined;

/** Loads the other files. Most starts need none of them, and so not this. */
export function own(): Own.Files {
  if (known) return known;
  const filename = `${__dirname}/own.js`;
  const { Script } = builtin<typeof Vm>('node:vm');
  const wrapper = new Script(`(function (exports, require, module) { ${contentOf(files, filename).toString('latin1')}\n})`, { filename }).runInThisContext();
  const module = { exports: {}, constructor: loader };
  (wrapper as Wrapper)(module.exports, builtin, module);
  return (known = new (module.exports as typeof Own).Files(__dirname, builtin, loader, (path) => contentOf(files, path), taken));
}

type Wrapper = (exports: unknown, require: Builtin, module: unknown) => void;
