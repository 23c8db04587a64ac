// Cache files on disk, trusted only if nobody but this user can have written them.
import fs = require('node:fs');
import nodePath = require('node:path');
import { checksum } from './checksum';
import { aligned, HEADER_BYTES, layout, MAGIC, MAX_BYTES, MAX_SEGMENTS, SegmentWord, segmentBytes, Word, type Layout } from './format';
import { VERSION } from './key';
import { PIECE_UNITS, Text, textOf } from './pieces';
import { exactly, fill, GROUP_OR_OTHERS_WRITE, reading } from './trust';

/** The part of a cache file that is read first, and the file's identity. */
export interface Stored {
  readonly path: string;
  readonly inode: number;
  readonly modified: number;
  readonly words: Uint32Array;
  readonly layout: Layout;
  /** From the end of the last segment to the end of the file. */
  readonly index: Buffer;
}

/** One segment: sources as two texts of which modules are slices, and the bytecode of all of them. */
export interface Segment {
  readonly latin1: Text;
  readonly twoByte: Text;
  readonly code: Buffer;
}

/** Reads header and index; null if there is no such file, or anything about it is wrong. */
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

/** Reads a segment of a file opened earlier; null if that file is gone or the segment is damaged. */
export function segment(stored: Stored, number: number): Segment | null {
  return reading(stored.path, (descriptor, stats) => {
    if (stats.ino !== stored.inode || stats.size !== stored.words[Word.FileBytes]) return null;
    const [place, row] = locate(stored, number);
    const bytes = (word: SegmentWord): number => stored.words[row + word] ?? 0;
    const reader = new Reader(descriptor, place);
    const latin1 = reader.text(bytes(SegmentWord.Latin1Bytes), 1);
    const twoByte = reader.text(bytes(SegmentWord.TwoByteBytes), 2);
    const code = reader.bytes(bytes(SegmentWord.CodeBytes));
    return code && reader.sum === bytes(SegmentWord.Checksum) ? { latin1, twoByte, code } : null;
  });
}

/**
 * Continues `sum` over a segment's bytes in its reader's order: sources in pieces, so that each is still in
 * the processor's cache when it is copied.
 */
export function segmentSum(bytes: Uint8Array, unitBytes: 1 | 2 | undefined, sum: number): number {
  const step = unitBytes ? PIECE_UNITS * unitBytes : Infinity;
  for (let at = 0; at < bytes.length; at += step) sum = checksum(bytes.subarray(at, at + step), sum);
  return sum;
}

/**
 * The parts of a segment, in order. One buffer serves all sources: touching pages for the first time costs
 * more than reading into them.
 */
class Reader {
  sum = 0;

  constructor(
    private readonly descriptor: number,
    private place: number,
  ) {}

  text(bytes: number, unitBytes: 1 | 2): Text {
    const pieces: string[] = [];
    const end = aligned(bytes);
    for (let at = 0; at < end; at += PIECE_UNITS * unitBytes) {
      const length = Math.min(end - at, PIECE_UNITS * unitBytes);
      const piece = scratch(PIECE_UNITS * unitBytes);
      if (!fill(this.descriptor, piece, this.place + at, length)) throw new Error('the file has become shorter');
      this.sum = checksum(piece.subarray(0, length), this.sum);
      pieces.push(textOf(piece, Math.min(bytes - at, length), unitBytes));
    }
    this.place += end;
    return new Text(pieces);
  }

  bytes(bytes: number): Buffer | null {
    const code = exactly(this.descriptor, this.place, aligned(bytes));
    if (code && code.length > 0) this.sum = checksum(code, this.sum);
    return code;
  }
}

let lent: Buffer | undefined;

// Released after the program's turn: most segments are read in the first one.
function scratch(bytes: number): Buffer {
  if (lent && lent.length >= bytes) return lent;
  if (!lent) void Promise.resolve().then(() => (lent = undefined));
  return (lent = Buffer.alloc(bytes));
}

/**
 * Makes a folder and its parents, for us alone; throws at the first that is impossible, or would be in
 * another user's folder. Node's `recursive` tries for ever in /proc.
 */
export function makeFolder(path: string): void {
  if (fs.lstatSync(path, { throwIfNoEntry: false })) return;
  const parent = nodePath.dirname(path);
  makeFolder(parent);
  // Root with somebody else's home: a folder owned by root would be in the way of its owner.
  const { uid } = fs.statSync(parent);
  if (uid !== 0 && uid !== process.geteuid?.()) throw new Error(`${parent} belongs to another user`);
  try {
    fs.mkdirSync(path, 0o700);
  } catch (error) {
    // Another process was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Whether a folder is ours and nobody else can write to it. */
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
