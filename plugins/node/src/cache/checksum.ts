// The checksum that stands between a cache file and V8, which trusts its input: release builds do not verify cached
// data.
import type * as Zlib from 'node:zlib';
import type * as Crypto from 'node:crypto';

type Checksum = (bytes: Uint8Array, previous: number) => number;

let chosen: Checksum | undefined;

/** Continues `previous` (0 at first) over these bytes. */
export function checksum(bytes: Uint8Array, previous = 0): number {
  chosen ??= choose();
  return chosen(bytes, previous);
}

// CRC-32 runs at many gigabytes per second where zlib offers it (20.15, 22.2). A digest is slower but just as good.
function choose(): Checksum {
  const { crc32 } = require('node:zlib') as typeof Zlib & { crc32?: Checksum };
  return crc32 ?? digest;
}

function digest(bytes: Uint8Array, previous: number): number {
  const { createHash } = require('node:crypto') as typeof Crypto;
  return createHash('sha1').update(String(previous)).update(bytes).digest().readUInt32LE(0);
}
