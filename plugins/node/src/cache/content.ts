// Reads a file using only functions that call nothing else: Node's `readFileSync` calls others of its module, which the
// program may have replaced.
import type * as Fs from 'node:fs';

type Reading = Pick<typeof Fs, 'closeSync' | 'constants' | 'fstatSync' | 'openSync' | 'readSync'>;

/** The whole file; throws as Node does. */
export function contentOf({ closeSync, constants, fstatSync, openSync, readSync }: Reading, path: string): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY);
  try {
    let bytes = Buffer.allocUnsafeSlow(fstatSync(descriptor).size + 1);
    for (let end = 0; ; ) {
      const read = readSync(descriptor, bytes, end, bytes.length - end, end);
      if (read === 0) return bytes.subarray(0, end);
      end += read;
      // It has grown.
      if (end === bytes.length) bytes = Buffer.concat([bytes, Buffer.allocUnsafeSlow(end)]);
    }
  } finally {
    closeSync(descriptor);
  }
}
