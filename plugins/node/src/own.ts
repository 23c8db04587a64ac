// The plugin's other files, and Node's modules for them: loaded past whatever the program has put in the place of the loader meanwhile. It does not
// see them in require.cache either.
import fs = require('node:fs');
import type * as Vm from 'node:vm';
import { loader } from './cache/loader';

const { readFileSync } = fs;
const load = loader._load as (request: string) => unknown;
// 20.16, 22.3 and later. Where hooks see what the loader loads (22.15), there is this.
const { getBuiltinModule } = process as { getBuiltinModule?: (id: string) => unknown };

/** One of Node's modules, by its name with `node:`. */
export function builtin<T>(name: string): T {
  return (getBuiltinModule ? getBuiltinModule(name) : load.call(loader, name)) as T;
}

/** What the file of this name beside ours exports; it is run anew each time. */
export function loadOwn<T>(name: string): T {
  const filename = `${__dirname}/${name}.js`;
  const { compileFunction } = builtin<typeof Vm>('node:vm');
  const own = { exports: {}, constructor: loader };
  compileFunction(readFileSync(filename, 'utf8'), ['exports', 'require', 'module'], { filename })(own.exports, builtin, own);
  return own.exports as T;
}
