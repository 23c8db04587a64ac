// Cache files on disk, believed only when nobody but this user can have written them.
import fs = require('node:fs');
import nodePath = require('node:path');
import { checksum } from './checksum';
import { aligned, HEADER_BYTES, layout, MAGIC, MAX_BYTES, MAX_SEGMENTS, SegmentWord, segmentBytes, Word, type Layout } from './format';
import { VERSION } from './key';
import { exactly, GROUP_OR_OTHERS_WRITE, reading } from './trust';

/** The part of a cache file that is read first, and which file it was. */
export interface Stored {
  readonly path: string;
  readonly inode: number;
  readonly modified: number;
  readonly words: Uint32Array;
  readonly layout: Layout;
  /** From the end of the last segment to that of the file. */
  readonly index: Buffer;
}

/** One segment: sources as two strings that modules are slices of, and the bytecode of all of them. */
export interface Segment {
  readonly latin1: string;
  readonly twoByte: string;
  readonly code: Buffer;
}

/** Reads header and index; null if there is no such file, or anything about it is not as it should be. */
export function open(path: string): Stored | null {
  return reading(path, (descriptor, stats) => {
    if (stats.size > MAX_BYTES) return null;
    const header = exactly(descriptor, 0, HEADER_BYTES);
    if (!header) return null;
    const words = new Uint32Array(header.buffer, header.byteOffset, HEADER_BYTES / 4);
    if (words[Word.Magic] !== MAGIC || words[Word.Version] !== VERSION || words[Word.FileBytes] !== stats.size) return null;
    if (checksum(header.subarray((Word.Checksum + 1) * 4)) !== words[Word.Checksum]) return null;
    if ((words[Word.Segments] ?? 0) > MAX_SEGMENTS) return null;
    const places = layout(words);
    if (places.end !== stats.size) return null;
    const index = exactly(descriptor, places.numbers, places.end - places.numbers);
    if (!index || checksum(index) !== words[Word.IndexChecksum]) return null;
    return { path, inode: stats.ino, modified: stats.mtimeMs, words, layout: places, index };
  });
}

/** Reads a segment of a file that was opened before; null if that file is gone or the segment is not what was written. */
export function segment(stored: Stored, number: number): Segment | null {
  return reading(stored.path, (descriptor, stats) => {
    if (stats.ino !== stored.inode || stats.size !== stored.words[Word.FileBytes]) return null;
    const [place, row] = locate(stored, number);
    const latin1Bytes = stored.words[row + SegmentWord.Latin1Bytes] ?? 0;
    const twoByteBytes = stored.words[row + SegmentWord.TwoByteBytes] ?? 0;
    const codeBytes = stored.words[row + SegmentWord.CodeBytes] ?? 0;
    const text = exactly(descriptor, place, aligned(latin1Bytes) + aligned(twoByteBytes)) as BufferWithSlices | null;
    const code = exactly(descriptor, place + aligned(latin1Bytes) + aligned(twoByteBytes), aligned(codeBytes));
    if (!text || !code || checksum(code, checksum(text)) !== stored.words[row + SegmentWord.Checksum]) return null;
    const twoByteStart = aligned(latin1Bytes);
    return {
      // A string of more than a megabyte lives outside V8's heap: nothing is copied there, and no collection moves it.
      latin1: text.latin1Slice(0, latin1Bytes),
      twoByte: text.ucs2Slice(twoByteStart, twoByteStart + twoByteBytes),
      code,
    };
  });
}

/** Makes a folder and those above it, for us alone; throws at the first that cannot be. Node's `recursive` tries for ever in /proc. */
export function makeFolder(path: string): void {
  if (fs.lstatSync(path, { throwIfNoEntry: false })) return;
  makeFolder(nodePath.dirname(path));
  try {
    fs.mkdirSync(path, 0o700);
  } catch (error) {
    // Another process was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** A folder that is ours and that nobody else can write into. */
export function isPrivateFolder(path: string): boolean {
  try {
    const stats = fs.lstatSync(path);
    return stats.isDirectory() && stats.uid === process.geteuid?.() && (stats.mode & GROUP_OR_OTHERS_WRITE) === 0;
  } catch {
    return false;
  }
}

function locate(stored: Stored, number: number): [place: number, row: number] {
  let place = HEADER_BYTES;
  let row: number = Word.FirstSegment;
  for (let i = 0; i < number; i++, row += SegmentWord.Count) place += segmentBytes(stored.words, row);
  return [place, row];
}

// Documented nowhere, there in every release; twice as fast as toString() for small slices, as it checks less.
interface BufferWithSlices extends Buffer {
  latin1Slice(start: number, end: number): string;
  ucs2Slice(start: number, end: number): string;
}
