// The plugin's other files, and Node's modules for them: loaded past whatever the program has put in the place of the loader meanwhile. It does not
// see them in require.cache either.
import fs = require('node:fs');
import type * as Vm from 'node:vm';
import type * as Zlib from 'node:zlib';
import { digest } from './cache/key';
import { loader } from './cache/loader';
import { exactly, reading } from './cache/trust';

const { readFileSync } = fs;
const load = loader._load as (request: string) => unknown;
// 20.16, 22.3 and later. Where hooks see what the loader loads (22.15), there is this.
const { getBuiltinModule } = process as { getBuiltinModule?: (id: string) => unknown };

/** One of Node's modules, by its name with `node:`. */
export function builtin<T>(name: string): T {
  return (getBuiltinModule ? getBuiltinModule(name) : load.call(loader, name)) as T;
}

/** One of our files that was compiled from its text: its bytecode is worth keeping, if the program keeps any. */
export interface Compiled {
  /** Where it belongs. */
  readonly place: string;
  /** What the bytecode is preceded by, but for its own checksum. */
  readonly mark: readonly number[];
  readonly script: Vm.Script;
}

export const compiled: Compiled[] = [];

/** What the file of this name beside ours exports; it is run anew each time. Its bytecode may be kept in a folder of caches. */
export function loadOwn<T>(name: string, folder?: string): T {
  const filename = `${__dirname}/${name}.js`;
  const { Script } = builtin<typeof Vm>('node:vm');
  // 20.15, 22.2 and later.
  const crc32 = folder ? builtin<typeof Zlib & { crc32?: Crc32 }>('node:zlib').crc32 : undefined;
  const bytes = readFileSync(filename);
  const text = `${HEAD}${bytes.toString('latin1')}\n})`;
  const options = { filename, columnOffset: -HEAD.length };
  const kept = folder && crc32 ? keeping(folder, filename, bytes, crc32) : undefined;
  const cachedData = kept && bytecode(kept, crc32!);
  const script = new Script(text, cachedData ? { ...options, cachedData } : options);
  if (kept && (!cachedData || script.cachedDataRejected)) compiled.push({ ...kept, script });
  const own = { exports: {}, constructor: loader };
  (script.runInThisContext() as Wrapper)(own.exports, builtin, own);
  return own.exports as T;
}

type Crc32 = (bytes: Uint8Array) => number;
type Wrapper = (exports: unknown, require: typeof builtin, module: unknown) => void;
type Kept = Omit<Compiled, 'script'>;

const HEAD = '(function (exports, require, module) { ';
const MAGIC = 0x43534148; // "HASC"
export const MARK_BYTES = 16;
const MAX_BYTES = 1024 * 1024;

// V8 itself refuses what another version or other options have made, but of the text it knows only the length.
function keeping(folder: string, filename: string, bytes: Uint8Array, crc32: Crc32): Kept {
  const { arch, env, execArgv, version } = process;
  const key = [version, arch, execArgv.join(' '), env['NODE_OPTIONS'] ?? '', filename].join('\n');
  return { place: `${folder}/${digest(key)}.code`, mark: [MAGIC, bytes.length, crc32(bytes)] };
}

function bytecode({ place, mark }: Kept, crc32: Crc32): Buffer | undefined {
  const whole = reading(place, (descriptor, { size }) => (size > MARK_BYTES && size < MAX_BYTES ? exactly(descriptor, 0, size) : null));
  if (!whole) return undefined;
  const code = whole.subarray(MARK_BYTES);
  return [...mark, crc32(code)].every((number, i) => whole.readUInt32LE(i * 4) === number) ? code : undefined;
}
