// Writing a cache file: whole or not at all, and never for anybody else to write.
import fs = require('node:fs');
import path = require('node:path');
import { checksum } from './checksum';
import type { Draft, DraftFile } from './draft';
import { evict } from './evict';
import { aligned, FileWord, Flag, HEADER_BYTES, MAGIC, MAX_BYTES, OriginWord, RequestWord, SegmentWord, Word, type IndexText } from './format';
import { VERSION } from './key';
import { isPrivateFolder, makeFolder } from './store';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants;
/** A temporary file that is older was left behind. */
const ABANDONED_MILLISECONDS = 60_000;

/** Writes the file; the number of its bytes, or null if that could not be. */
export function write(file: string, draft: Draft, limit: number): number | null {
  const folder = path.dirname(file);
  const temporary = `${file}.tmp`;
  let descriptor: number | null = null;
  try {
    makeFolder(folder);
    if (!isPrivateFolder(folder)) return null;
    descriptor = create(temporary);
    if (descriptor === null) return null;
    const parts = image(draft, Math.min(limit, MAX_BYTES));
    if (!parts) throw new Error('larger than a cache may be');
    for (const part of parts) writeAll(descriptor, part);
    fs.fsyncSync(descriptor);
    fs.closeSync(descriptor);
    descriptor = -1;
    fs.renameSync(temporary, file);
    evict(folder, limit, file);
    return parts.reduce((sum, part) => sum + part.length, 0);
  } catch {
    // Full disk, read-only home, no rights: the program is not told, and starts as it always did.
    if (descriptor !== null) discard(temporary);
    return null;
  } finally {
    if (descriptor !== null && descriptor >= 0) fs.closeSync(descriptor);
  }
}

// The name is a lock, too: of many processes that start at once, one writes.
function create(temporary: string): number | null {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      return fs.openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isAbandoned(temporary)) return null;
      discard(temporary);
    }
  }
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
    // Gone already, or not ours to remove.
  }
}

function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += fs.writeSync(descriptor, bytes, done, bytes.length - done);
}

/** The bytes of the file, in parts; null if they are too many. */
function image(draft: Draft, largest: number): Uint8Array[] | null {
  const hot = packed(draft.files);
  let rest = draft.others.size > 0 ? packed(draft.others) : null;
  if (rest && size(hot) + size(rest) > largest) rest = null;
  if (size(hot) > largest) return null;
  const segments = rest ? [hot, rest] : [hot];
  const header = new Uint32Array(HEADER_BYTES / 4);
  const index = new Index(draft, segments).bytes(header);
  const all = [index, ...segments.flatMap(({ parts }) => parts)];
  header[Word.Magic] = MAGIC;
  header[Word.Version] = VERSION;
  header[Word.FileBytes] = all.reduce((sum, part) => sum + part.length, HEADER_BYTES);
  header[Word.IndexChecksum] = checksum(index);
  header[Word.Segments] = segments.length;
  header[Word.Futile] = draft.futile;
  segments.forEach(({ words }, i) => header.set(words, Word.FirstSegment + i * SegmentWord.Count));
  const bytes = bytesOf(header);
  header[Word.Checksum] = checksum(bytes.subarray((Word.Checksum + 1) * 4));
  return [bytes, ...all];
}

interface Packed {
  readonly parts: readonly [text: Uint8Array, code: Uint8Array];
  readonly words: Uint32Array;
  readonly rows: Map<string, Row>;
}

interface Row {
  readonly file: DraftFile;
  readonly twoByte: boolean;
  readonly sourceOffset: number;
  readonly codeOffset: number;
}

// Sources one after the other, those with letters beyond Latin-1 apart; then their bytecodes.
function packed(files: ReadonlyMap<string, DraftFile>): Packed {
  const rows = new Map<string, Row>();
  let [latin1, twoByte, code] = [0, 0, 0];
  for (const [filename, file] of files) {
    const wide = !isLatin1(file.source);
    rows.set(filename, { file, twoByte: wide, sourceOffset: wide ? twoByte : latin1, codeOffset: code });
    if (wide) twoByte += file.source.length;
    else latin1 += file.source.length;
    code += aligned(file.bytecode?.length ?? 0);
  }
  const text = Buffer.allocUnsafeSlow(aligned(latin1) + aligned(twoByte * 2)).fill(0, latin1);
  const codes = Buffer.allocUnsafeSlow(code);
  for (const { file, twoByte: wide, sourceOffset, codeOffset } of rows.values()) {
    if (wide) text.write(file.source, aligned(latin1) + sourceOffset * 2, 'utf16le');
    else text.write(file.source, sourceOffset, 'latin1');
    if (!file.bytecode) continue;
    codes.set(file.bytecode, codeOffset);
    codes.fill(0, codeOffset + file.bytecode.length, codeOffset + aligned(file.bytecode.length));
  }
  const words = Uint32Array.of(latin1, twoByte * 2, code, checksum(codes, checksum(text)));
  return { parts: [text, codes], words, rows };
}

function size({ parts }: Packed): number {
  return parts[0].length + parts[1].length;
}

function isLatin1(text: string): boolean {
  // Counting the bytes is vectorised, and answers for nearly every file.
  return Buffer.byteLength(text, 'utf8') === text.length || !/[^\x00-\xff]/.test(text);
}

function bytesOf(array: Float64Array | Uint32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Numbers the paths of a draft and lays out the tables that speak of them. */
class Index {
  private readonly directories = new Map<string, number>();
  private readonly packages = new Map<string, number>();
  private readonly packageNumbers: number[] = [];
  private readonly files: [string, Row, number][];
  private readonly fileNumbers = new Map<string, number>();

  constructor(
    private readonly draft: Draft,
    segments: readonly Packed[],
  ) {
    this.files = segments.flatMap(({ rows }, segment) => [...rows].map(([name, row]): [string, Row, number] => [name, row, segment]));
    this.files.forEach(([name], i) => this.fileNumbers.set(name, i));
  }

  bytes(header: Uint32Array): Buffer {
    const files = this.files.flatMap(([, row, segment]) => this.fileRow(row, segment));
    const { origins, requests, texts, dependencies } = this.requestRows();
    const entries = this.entries();
    const directories = this.directoryRows(entries);
    const words = Uint32Array.from([...directories, ...files, ...origins, ...requests, ...dependencies], (word) => word >>> 0);
    const text = this.text(texts);
    const allEntries = Buffer.concat(entries);
    header[Word.Directories] = this.directories.size;
    header[Word.Packages] = this.packages.size;
    header[Word.Files] = this.files.length;
    header[Word.Origins] = origins.length / OriginWord.Count;
    header[Word.Requests] = requests.length / RequestWord.Count;
    header[Word.Dependencies] = dependencies.length;
    header[Word.IndexText] = text.length;
    header[Word.EntriesText] = allEntries.length;
    return Buffer.concat([bytesOf(this.numbers()), padded(bytesOf(words)), padded(text), padded(allEntries)]);
  }

  private fileRow({ file, twoByte, sourceOffset, codeOffset }: Row, segment: number): number[] {
    const row = new Array<number>(FileWord.Count);
    row[FileWord.Directory] = this.directory(file.directory);
    row[FileWord.Package] = file.package ? this.package(file.package) : -1;
    row[FileWord.Flags] = (file.flags & ~Flag.TwoByte) | (twoByte ? Flag.TwoByte : 0);
    row[FileWord.Segment] = segment;
    row[FileWord.SourceOffset] = sourceOffset;
    row[FileWord.SourceUnits] = file.source.length;
    row[FileWord.CodeOffset] = codeOffset;
    row[FileWord.CodeBytes] = file.bytecode?.length ?? 0;
    return row;
  }

  private requestRows(): { origins: number[]; requests: number[]; texts: string[]; dependencies: number[] } {
    const [origins, requests, texts, dependencies]: [number[], number[], string[], number[]] = [[], [], [], []];
    for (const [directory, known] of this.draft.requests) {
      for (const [request, { answer, directories, packages }] of known) {
        const file = this.fileNumbers.get(answer);
        if (file === undefined) continue;
        for (const one of directories) dependencies.push(this.directory(one));
        for (const one of packages) dependencies.push(~this.package(one));
        requests.push(file, dependencies.length);
        texts.push(request);
      }
      origins.push(this.directory(directory), texts.length);
    }
    return { origins, requests, texts, dependencies };
  }

  // Parents first: that a directory is where it was rests on those above it.
  private directory(path_: string): number {
    const known = this.directories.get(path_);
    if (known !== undefined) return known;
    if (path_ !== '/') this.directory(path.dirname(path_));
    this.draft.facts.directory(path_);
    const number = this.directories.size;
    this.directories.set(path_, number);
    return number;
  }

  private package({ path: path_, numbers }: NonNullable<DraftFile['package']>): number {
    const known = this.packages.get(path_);
    if (known !== undefined) return known;
    const number = this.packages.size;
    this.packages.set(path_, number);
    this.packageNumbers.push(...numbers);
    return number;
  }

  private numbers(): Float64Array {
    const directories = [...this.directories.keys()].flatMap((one) => this.draft.facts.directory(one).numbers);
    return Float64Array.from([...directories, ...this.packageNumbers, ...this.files.flatMap(([, { file }]) => file.numbers)]);
  }

  private text(requests: string[]): Buffer {
    const text: IndexText = {
      key: this.draft.key,
      directories: [...this.directories.keys()],
      packages: [...this.packages.keys()],
      files: this.files.map(([name]) => name),
      requests,
    };
    return Buffer.from(JSON.stringify(text));
  }

  private entries(): Buffer[] {
    return [...this.directories.keys()].map((one) => Buffer.from(JSON.stringify([...this.draft.facts.directory(one).entries].flat())));
  }

  private directoryRows(entries: readonly Buffer[]): number[] {
    let end = 0;
    return [...this.directories.keys()].flatMap((one, i) => {
      const parent = one === '/' ? -1 : this.directories.get(path.dirname(one))!;
      return [parent, (end += entries[i]!.length)];
    });
  }
}

function padded(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(aligned(bytes.length));
  whole.set(bytes);
  return whole;
}
