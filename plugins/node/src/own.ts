// The plugin's other files. The program does not see them in require.cache.
import vm = require('node:vm');
import type * as Zlib from 'node:zlib';
import { digest } from './cache/digest';
import { exactly, reading } from './cache/trust';
import type { Builtin, Taken } from './load';

/** One of our files, compiled from its text: its bytecode is worth keeping if the program keeps any. */
export interface Compiled {
  /** Its destination. */
  readonly place: string;
  /** What precedes the bytecode, except for its own checksum. */
  readonly mark: readonly number[];
  readonly script: vm.Script;
}

export class Files {
  readonly compiled: Compiled[] = [];

  constructor(
    private readonly place: string,
    private readonly builtin: Builtin,
    private readonly loader: unknown,
    private readonly read: (path: string) => Buffer,
    private readonly taken: Taken,
  ) {}

  /**
   * The exports of the file with this name, which is run anew each time. Its bytecode may be kept in a folder of
   * caches.
   */
  load<T>(name: string, folder?: string): T {
    const filename = `${this.place}/${name}.js`;
    // 20.15, 22.2 and later.
    const crc32 = folder ? this.builtin<typeof Zlib & { crc32?: Crc32 }>('node:zlib').crc32 : undefined;
    const bytes = this.read(filename);
    const text = `${HEAD}${bytes.toString('latin1')}\n})`;
    const options = { filename: `${INTERNAL}${name}`, columnOffset: -HEAD.length };
    const kept = folder && crc32 ? keeping(folder, filename, bytes, crc32) : undefined;
    const cachedData = kept && bytecode(kept, crc32!);
    const script = new vm.Script(text, cachedData ? { ...options, cachedData } : options);
    if (kept && (!cachedData || script.cachedDataRejected)) this.compiled.push({ ...kept, script });
    const own = { exports: {}, constructor: this.loader };
    (script.runInThisContext() as Wrapper)(own.exports, this.builtin, own, ...this.taken);
    return own.exports as T;
  }
}

type Crc32 = (bytes: Uint8Array) => number;
type Wrapper = (exports: unknown, require: Builtin, module: unknown, ...taken: Taken) => void;
type Kept = Omit<Compiled, 'script'>;

// In our files these names mean what they did before the program ran, whatever has replaced them.
const HEAD = '(function (exports, require, module, setTimeout, clearTimeout, setInterval, clearInterval, Date) { ';
// Node skips its own stack frames when determining a caller: a warning is hidden if the caller is in node_modules.
const INTERNAL = 'node:internal/hasten/';
const MAGIC = 0x43534148; // "HASC"
const MARK_BYTES = 16;
const MAX_BYTES = 1024 * 1024;

// V8 itself rejects bytecode from another version or other options, but of the text it checks only the length.
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
