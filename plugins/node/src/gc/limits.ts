// The limits that V8 and the system impose on this process.
import os = require('node:os');
import v8 = require('node:v8');

const MIB = 1024 * 1024;

/** The memory available to the process's control group, in bytes; null without such a limit. */
export function memoryLimit(): number | null {
  const limit = (process as { constrainedMemory?(): number | undefined }).constrainedMemory?.() ?? 0;
  return limit > 0 && limit < os.totalmem() ? limit : null;
}

/** The largest size of one semi-space in bytes; null if it does not follow from V8's figures. */
export function semiSpaceMax(): number | null {
  const limit = v8.getHeapStatistics().heap_size_limit;
  const possible = oldSpaces().flatMap((old) => semiSpace(limit - old));
  return new Set(possible).size === 1 ? (possible[0] ?? null) : null;
}

// V8's limit is the sum of those of the old and the young generation, which is three semi-spaces: two halves, and as
// much again for large objects. A semi-space is a power of two.
function semiSpace(young: number): number[] {
  const size = young / 3;
  return Number.isInteger(Math.log2(size)) && size >= MIB / 2 && size <= 2048 * MIB ? [size] : [];
}

// The old generation's size is set by an option, or chosen by V8 for 64 bits: 2 or 4 GiB, or a share of the memory.
function oldSpaces(): number[] {
  const option = maxOldSpace();
  if (option !== null) return [option * MIB];
  const memory = memoryLimit() ?? os.totalmem();
  return [2048 * MIB, 4096 * MIB, memory / 2, memory / 4].map((size) => Math.floor(size));
}

// The last one counts; those of the command line follow those of NODE_OPTIONS.
function maxOldSpace(): number | null {
  const options = [...(process.env['NODE_OPTIONS'] ?? '').split(/[\s"]+/), ...process.execArgv];
  const values = options.flatMap((option) => /^--max[-_]old[-_]space[-_]size=(\d+)$/.exec(option)?.[1] ?? []);
  return values.length > 0 ? Number(values[values.length - 1]) : null;
}
