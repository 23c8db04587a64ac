// Writes a cache file: completely or not at all, and writable by nobody else.
import fs = require('node:fs');
import path = require('node:path');
import type { Tables } from './catalog';
import { checksum } from './checksum';
import type { Addition, Draft } from './draft';
import { evict } from './evict';
import { aligned, DirectoryWord, HEADER_BYTES, layout, MAGIC, MAX_BYTES, OriginWord, RequestWord, SegmentWord, Word, type IndexText } from './format';
import { VERSION } from './key';
import { isPrivateFolder, makeFolder, segmentSum, type Stored } from './store';

const { COPYFILE_EXCL, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = fs.constants;
/** A temporary file older than this was left behind. */
const ABANDONED_MILLISECONDS = 60_000;

/**
 * Writes a new file, starting with the segments of the one `before`; returns its size in bytes, or null if that failed.
 */
export function write(file: string, key: string, draft: Draft, before: Stored | null, limit: number): number | null {
  const folder = path.dirname(file);
  const temporary = `${file}.tmp`;
  let descriptor: number | null = null;
  try {
    makeFolder(folder);
    if (!isPrivateFolder(folder)) return null;
    descriptor = create(temporary, before);
    if (descriptor === null) return null;
    const bytes = writeParts(descriptor, image(key, draft, before), before?.layout.numbers ?? HEADER_BYTES, Math.min(limit, MAX_BYTES));
    fs.closeSync(descriptor);
    descriptor = -1;
    // Without flushing: after a power failure the checksums detect damage, and a flush may cost as much as everything
    // else.
    fs.renameSync(temporary, file);
    if (((before?.words[Word.Segments] ?? 0) & 3) === 0) evict(folder, limit, file);
    return bytes;
  } catch {
    // Full disk, read-only home, no rights: the program is not told, and starts as it always did.
    if (descriptor !== null) discard(temporary);
    return null;
  } finally {
    if (descriptor !== null && descriptor >= 0) fs.closeSync(descriptor);
  }
}

// The name is also a lock: of many processes that start at once, one writes.
function create(temporary: string, before: Stored | null): number | null {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      return before ? copy(before, temporary) : fs.openSync(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isAbandoned(temporary)) return null;
      discard(temporary);
    }
  }
  return null;
}

// The kernel copies the segments; null if the file has been replaced.
function copy(before: Stored, temporary: string): number | null {
  try {
    fs.copyFileSync(before.path, temporary, COPYFILE_EXCL);
  } catch (error) {
    // A disk that ran full half way.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') discard(temporary);
    throw error;
  }
  const descriptor = fs.openSync(temporary, O_RDWR | O_NOFOLLOW);
  const header = Buffer.alloc(HEADER_BYTES);
  fs.readSync(descriptor, header, 0, HEADER_BYTES, 0);
  const { words } = before;
  if (header.equals(bytesOf(words)) && (fs.fstatSync(descriptor).mode & 0o777) === 0o600) return descriptor;
  fs.closeSync(descriptor);
  discard(temporary);
  return null;
}

function isAbandoned(temporary: string): boolean {
  const stats = fs.lstatSync(temporary, { throwIfNoEntry: false });
  return stats !== undefined && Math.abs(Date.now() - stats.mtimeMs) > ABANDONED_MILLISECONDS;
}

function discard(file: string): void {
  try {
    fs.unlinkSync(file);
  } catch {
    // Already gone, or not ours to remove.
  }
}

interface Image {
  readonly header: Uint8Array;
  /** The new segment and the index. */
  readonly parts: readonly Uint8Array[];
}

function writeParts(descriptor: number, { header, parts }: Image, begin: number, largest: number): number {
  const end = parts.reduce((sum, part) => sum + part.length, begin);
  if (end > largest) throw new Error('larger than a cache may be');
  let at = begin;
  for (const part of [...parts, header]) {
    if (part === header) at = 0;
    for (let done = 0; done < part.length; ) done += fs.writeSync(descriptor, part, done, part.length - done, at + done);
    at += part.length;
  }
  fs.ftruncateSync(descriptor, end);
  return end;
}

function image(key: string, draft: Draft, before: Stored | null): Image {
  const header = new Uint32Array(HEADER_BYTES / 4);
  if (before) header.set(before.words);
  const segment = segmentOf(draft.finish());
  const count = before?.words[Word.Segments] ?? 0;
  header[Word.Magic] = MAGIC;
  header[Word.Version] = VERSION;
  header[Word.Segments] = count + (segment.parts.length > 0 ? 1 : 0);
  header[Word.Futile] = draft.futile;
  header.set(segment.words, Word.FirstSegment + count * SegmentWord.Count);
  const index = indexOf(key, draft.tables, header);
  header[Word.IndexChecksum] = checksum(index);
  header[Word.FileBytes] = layout(header).end;
  const bytes = bytesOf(header);
  header[Word.Checksum] = checksum(bytes.subarray((Word.Checksum + 1) * 4));
  return { header: bytes, parts: [...segment.parts, index] };
}

// Sources one after another, those with characters beyond Latin-1 separately; then bytecodes.
function segmentOf({ latin1, twoByte, code }: Addition): { parts: Uint8Array[]; words: Uint32Array } {
  const [narrow, wide] = [latin1.join(''), twoByte.join('')];
  const codes = Buffer.concat(code);
  const wideAt = aligned(narrow.length);
  const text = Buffer.allocUnsafeSlow(wideAt + aligned(wide.length * 2));
  text.fill(0, narrow.length, wideAt).fill(0, wideAt + wide.length * 2);
  text.write(narrow, 0, 'latin1');
  text.write(wide, wideAt, 'utf16le');
  const sum = segmentSum(text.subarray(wideAt), 2, segmentSum(text.subarray(0, wideAt), 1, 0));
  const parts = [text, codes].filter(({ length }) => length > 0);
  return { parts, words: Uint32Array.of(narrow.length, wide.length * 2, codes.length, segmentSum(codes, undefined, sum)) };
}

function indexOf(key: string, { text, numbers, words, entries }: Tables, header: Uint32Array): Buffer {
  let end = 0;
  entries.forEach((one, directory) => (words.directories[directory * DirectoryWord.Count + DirectoryWord.EntriesEnd] = end += one.length));
  const indexText = Buffer.from(JSON.stringify({ key, ...text } satisfies IndexText));
  header[Word.Directories] = text.directories.length;
  header[Word.Packages] = text.packages.length;
  header[Word.Files] = text.files.length;
  header[Word.Origins] = words.origins.length / OriginWord.Count;
  header[Word.Requests] = words.requests.length / RequestWord.Count;
  header[Word.Dependencies] = words.dependencies.length;
  header[Word.IndexText] = indexText.length;
  header[Word.EntriesText] = end;
  const doubles = Float64Array.from(numbers.directories.concat(numbers.packages, numbers.files));
  // -1 becomes the largest word.
  const table = Uint32Array.from(words.directories.concat(words.files, words.origins, words.requests, words.dependencies));
  return Buffer.concat([bytesOf(doubles), padded(bytesOf(table)), padded(indexText), padded(Buffer.concat(entries))]);
}

function bytesOf(array: Float64Array | Uint32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function padded(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(aligned(bytes.length));
  whole.set(bytes);
  return whole;
}
