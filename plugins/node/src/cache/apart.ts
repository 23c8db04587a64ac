// Files too large to be copied into a cache: `typescript.js` alone is larger than most caches.
import fs = require('node:fs');
import buffer = require('node:buffer');
import { headFor, TAIL, wrapped } from './text';

/** What is compiled for an unchanged file, judged by its state before and after it is read; null if it has changed. */
export function wrappedFile(filename: string, isAsRecorded: (stats: fs.Stats) => boolean): string | null {
  const descriptor = fs.openSync(filename, fs.constants.O_RDONLY);
  try {
    const stats = fs.fstatSync(descriptor);
    if (!isAsRecorded(stats)) return null;
    const begin = Buffer.alloc(Math.min(BEGIN_BYTES, stats.size));
    fs.readSync(descriptor, begin, 0, begin.length, 0);
    const head = headFor(begin.toString('latin1'));
    const text = Buffer.allocUnsafeSlow(head.length + stats.size + TAIL.length);
    const end = head.length + stats.size;
    for (let at = head.length; at < end; ) {
      const read = fs.readSync(descriptor, text, at, end - at, at - head.length);
      if (read === 0) return null;
      at += read;
    }
    return isAsRecorded(fs.fstatSync(descriptor)) ? framed(text, head, end) : null;
  } finally {
    fs.closeSync(descriptor);
  }
}

/** How much of a file is read to find its first line. */
export const BEGIN_BYTES = 4096;

// A single string outside V8's heap: concatenated strings would be copied there once more.
function framed(text: Buffer, head: string, end: number): string {
  const content = text.subarray(head.length, end);
  if (!isAscii?.(content)) return wrapped(content.toString());
  if (content[0] === 0x23 && content[1] === 0x21) text.write('//', head.length);
  text.write(head, 0);
  text.write(TAIL, end);
  return (text as Buffer & { latin1Slice(start: number, end: number): string }).latin1Slice(0, text.length);
}

// 18.15 and later.
const { isAscii } = buffer as { isAscii?: (bytes: Uint8Array) => boolean };
