// A cache that has been read: its contents, and whether they are still true.
import fs = require('node:fs');
import {
  DirectoryWord,
  DIRECTORY_NUMBERS,
  FILE_NUMBERS,
  FileWord,
  Flag,
  OriginWord,
  RequestWord,
  Word,
  type EntriesText,
  type Entry,
  type IndexText,
} from './format';
import { contentOf } from './content';
import { segment, type Segment, type Stored } from './store';
import { wrappedFile } from './apart';
import { jsonOf, wraps } from './text';

const { lstatSync, readlinkSync, statSync } = fs;
const { then } = Promise.prototype;
const QUIETLY = { throwIfNoEntry: false } as const;
/**
 * All segments are read at the first need of any if they are no larger than this. A larger program is likely to have
 * parts that not every start needs.
 */
const MOST_AT_ONCE = 16 * 1024 * 1024;

/** What this process has found out about a package.json. */
const enum Known {
  Nothing,
  Good,
  Bad,
}

export interface Code {
  readonly source: string;
  readonly bytecode: Buffer | undefined;
  readonly flags: number;
}

/** Everything in a file besides sources and bytecode, in lists that can grow. */
export interface Tables {
  readonly text: { readonly [list in 'directories' | 'packages' | 'files' | 'requests']: string[] };
  readonly numbers: { readonly [list in 'directories' | 'packages' | 'files']: number[] };
  readonly words: { readonly [list in 'directories' | 'files' | 'origins' | 'requests' | 'dependencies']: number[] };
  /** The text of each directory's entries. */
  readonly entries: Buffer[];
}

const afterwards = Promise.resolve();

export class Catalog {
  readonly text: IndexText;
  readonly stored: Stored;
  /** Directories and files that differed and yet were right: their facts are worth rewriting. */
  readonly worn = { directories: new Set<number>(), files: new Set<number>() };

  private readonly numbers: Float64Array;
  private readonly words: Uint32Array;
  private readonly fileRows: number;
  private readonly originRows: number;
  private readonly requestRows: number;
  private readonly dependencyRows: number;
  private readonly fileByPath = new Map<string, number>();
  private readonly originByPath = new Map<string, number>();
  /** The previous origin of the same directory; -1 if there is none. */
  private readonly olderOrigins: Int32Array;
  private readonly requestsByOrigin: (Map<string, number> | undefined)[] = [];
  /** For each directory the turn in which it was verified, negative if something differed. */
  private readonly directories: Int32Array;
  /** The same for the directory's own rows, whatever is above it. */
  private readonly held: Int32Array;
  /** For each directory the turn in which its names were compared because its times had changed. */
  private readonly compared: Int32Array;
  /** A turn is a synchronous run of the program. Node itself also looks at the file system once per turn. */
  private turn = 0;
  private isTurnOver = true;
  /** The last file examined, and its state. */
  private looked = -1;
  private lookedStats: fs.Stats | undefined;
  private readonly packages: Known[];
  private readonly segments: (Segment | null)[] = [];

  /** The catalog of a file; null if it was made for another key. */
  static of(stored: Stored, key: string): Catalog | null {
    const begin = stored.layout.indexText - stored.layout.numbers;
    const text = JSON.parse(stored.index.toString('utf8', begin, begin + (stored.words[Word.IndexText] ?? 0))) as IndexText;
    return text.key === key ? new Catalog(stored, text) : null;
  }

  private constructor(stored: Stored, text: IndexText) {
    this.stored = stored;
    this.text = text;
    const { index, layout, words } = stored;
    const count = (place: Word): number => words[place] ?? 0;
    this.numbers = new Float64Array(index.buffer, index.byteOffset, (layout.words - layout.numbers) / 8);
    this.words = new Uint32Array(index.buffer, index.byteOffset + layout.words - layout.numbers, (layout.indexText - layout.words) / 4);
    this.fileRows = count(Word.Directories) * DirectoryWord.Count;
    this.originRows = this.fileRows + count(Word.Files) * FileWord.Count;
    this.requestRows = this.originRows + count(Word.Origins) * OriginWord.Count;
    this.dependencyRows = this.requestRows + count(Word.Requests) * RequestWord.Count;
    this.directories = new Int32Array(count(Word.Directories));
    this.held = new Int32Array(count(Word.Directories));
    this.compared = new Int32Array(count(Word.Directories));
    this.packages = new Array<Known>(count(Word.Packages)).fill(Known.Nothing);
    const { files, directories } = text;
    for (let i = 0; i < files.length; i++) this.fileByPath.set(files[i]!, i);
    const origins = count(Word.Origins);
    this.olderOrigins = new Int32Array(origins);
    for (let i = 0; i < origins; i++) {
      const directory = directories[this.words[this.originRows + i * OriginWord.Count]!]!;
      this.olderOrigins[i] = this.originByPath.get(directory) ?? -1;
      this.originByPath.set(directory, i);
    }
  }

  /** The file to which a request from a directory leads; undefined if that is not certain. */
  resolve(directory: string, request: string, isLoaded: (filename: string) => boolean): string | undefined {
    const origin = this.originByPath.get(directory);
    if (origin === undefined) return undefined;
    const row = this.requestOf(origin, request);
    if (row === undefined) return undefined;
    this.take();
    const place = this.requestRows + row * RequestWord.Count;
    const end = this.dependencyRows + this.words[place + RequestWord.DependenciesEnd]!;
    let at = this.dependencyRows + (row === 0 ? 0 : this.words[place - RequestWord.Count + RequestWord.DependenciesEnd]!);
    for (; at < end; at++) {
      const dependency = this.words[at]! | 0;
      if (dependency >= 0 ? !this.isDirectoryUnchanged(dependency) : !this.isPackageUnchanged(~dependency)) return undefined;
    }
    return this.present(this.words[place + RequestWord.File]!, isLoaded);
  }

  /** The index of a file in the catalog; undefined if it is not there. */
  find(filename: string): number | undefined {
    return this.fileByPath.get(filename);
  }

  flags(file: number): number {
    return this.words[this.fileRows + file * FileWord.Count + FileWord.Flags]!;
  }

  /** Source and bytecode of a file, if its content is still as recorded and it is still what it was taken for. */
  load(file: number): Code | null {
    const row = this.fileRows + file * FileWord.Count;
    const owner = this.words[row + FileWord.Package]! | 0;
    this.take();
    if (!this.isDirectoryUnchanged(this.words[row + FileWord.Directory]!) || (owner >= 0 && !this.isPackageUnchanged(owner))) return null;
    const flags = this.words[row + FileWord.Flags]!;
    const stats = this.look(file);
    if (!stats?.isFile()) return null;
    const same = this.isFileAsRecorded(stats, this.fileNumbers(this.text.packages.length + file));
    if (flags & Flag.Apart) return same ? this.apart(file, row) : null;
    const code = this.code(row, flags);
    if (!code || (same && !(flags & Flag.Young))) return code;
    // Touched, copied, or so young that its time proves nothing: the content decides.
    this.worn.files.add(file);
    const content = contentOf(fs, this.text.files[file]!).toString();
    return (flags & Flag.Json ? code.source === jsonOf(content) : wraps(code.source, content)) ? code : null;
  }

  /** Consecutive recordings that added next to nothing. */
  get futile(): number {
    return this.stored.words[Word.Futile] ?? 0;
  }

  /** The files of the catalog, and their indices. */
  files(): ReadonlyMap<string, number> {
    return this.fileByPath;
  }

  /** The length of a file's source, as far as it is known without reading it. */
  units(file: number): number {
    const row = this.fileRows + file * FileWord.Count;
    const apart = this.words[row + FileWord.Flags]! & Flag.Apart;
    return apart ? this.numbers[this.fileNumbers(this.text.packages.length + file) + 4]! : this.words[row + FileWord.SourceUnits]!;
  }

  get segmentCount(): number {
    return this.stored.words[Word.Segments] ?? 0;
  }

  /** A copy of everything, for additions. */
  tables(): Tables {
    const { directories, packages, files, requests } = this.text;
    const { numbers, words, fileRows, originRows, requestRows, dependencyRows } = this;
    const [packageAt, fileAt] = [this.fileNumbers(0), this.fileNumbers(packages.length)];
    const part = (list: Float64Array | Uint32Array, begin: number, end: number): number[] => Array.from(list.subarray(begin, end));
    const dependencies = this.stored.words[Word.Dependencies] ?? 0;
    return {
      text: { directories: [...directories], packages: [...packages], files: [...files], requests: [...requests] },
      numbers: {
        directories: part(numbers, 0, packageAt),
        packages: part(numbers, packageAt, fileAt),
        files: part(numbers, fileAt, this.fileNumbers(packages.length + files.length)),
      },
      words: {
        directories: part(words, 0, fileRows),
        files: part(words, fileRows, originRows),
        origins: part(words, originRows, requestRows),
        requests: part(words, requestRows, dependencyRows),
        dependencies: part(words, dependencyRows, dependencyRows + dependencies),
      },
      entries: directories.map((_, directory) => this.entriesText(directory)),
    };
  }

  /** The recorded names of a directory. */
  entries(directory: number): EntriesText {
    return JSON.parse(this.entriesText(directory).toString()) as EntriesText;
  }

  // The latest record counts.
  private requestOf(newest: number, request: string): number | undefined {
    for (let origin = newest; origin >= 0; origin = this.olderOrigins[origin]!) {
      const row = this.requestsOf(origin).get(request);
      if (row !== undefined) return row;
    }
    return undefined;
  }

  private requestsOf(origin: number): Map<string, number> {
    const known = this.requestsByOrigin[origin];
    if (known) return known;
    const place = this.originRows + origin * OriginWord.Count;
    const requests = new Map<string, number>();
    const end = this.words[place + OriginWord.RequestsEnd]!;
    for (let i = origin === 0 ? 0 : this.words[place - OriginWord.Count + OriginWord.RequestsEnd]!; i < end; i++) {
      requests.set(this.text.requests[i]!, i);
    }
    this.requestsByOrigin[origin] = requests;
    return requests;
  }

  private code(row: number, flags: number): Code | null {
    const found = this.segment(this.words[row + FileWord.Segment]!);
    const bytecode = this.bytecode(row);
    if (!found || bytecode === null) return null;
    const begin = this.words[row + FileWord.SourceOffset]!;
    const end = begin + this.words[row + FileWord.SourceUnits]!;
    const source = flags & Flag.TwoByte ? found.twoByte.slice(begin, end) : found.latin1.slice(begin, end);
    return { source, bytecode, flags };
  }

  // The file is its own source, and must not be replaced while it is read.
  private apart(file: number, row: number): Code | null {
    const bytecode = this.bytecode(row);
    const at = this.fileNumbers(this.text.packages.length + file);
    const source = bytecode === null ? null : wrappedFile(this.text.files[file]!, (stats) => this.isFileAsRecorded(stats, at));
    return source === null ? null : { source, bytecode: bytecode!, flags: this.words[row + FileWord.Flags]! };
  }

  // Undefined if there is none, null if it is damaged.
  private bytecode(row: number): Buffer | undefined | null {
    const bytes = this.words[row + FileWord.CodeBytes]!;
    if (bytes === 0) return undefined;
    const found = this.segment(this.words[row + FileWord.CodeSegment]!);
    const at = this.words[row + FileWord.CodeOffset]!;
    return found ? found.code.subarray(at, at + bytes) : null;
  }

  // A start that uses one segment uses nearly all of them, and reading them in sequence costs less: see pieces.ts.
  private segment(number: number): Segment | null {
    if (this.segments.length === 0 && this.stored.layout.numbers < MOST_AT_ONCE) {
      for (let each = 0; each < this.segmentCount; each++) this.segments.push(segment(this.stored, each));
    }
    let found = this.segments[number];
    if (found === undefined) this.segments[number] = found = segment(this.stored, number);
    return found;
  }

  // A turn's findings are void in the next.
  private take(): void {
    if (!this.isTurnOver) return;
    this.isTurnOver = false;
    this.turn++;
    void Reflect.apply(then, afterwards, [
      () => {
        this.isTurnOver = true;
      },
    ]);
  }

  private isDirectoryUnchanged(directory: number): boolean {
    const known = this.directories[directory]!;
    if (known === this.turn || known === -this.turn) return known > 0;
    const parent = this.words[directory * DirectoryWord.Count + DirectoryWord.Parent]! | 0;
    const good = (parent < 0 || this.isDirectoryUnchanged(parent)) && this.holds(directory);
    this.directories[directory] = good ? this.turn : -this.turn;
    return good;
  }

  // Checks a directory by its row, and by what the elder ones say about it. What they say about directories above was
  // true when they were written.
  private holds(directory: number): boolean {
    const known = this.held[directory]!;
    if (known === this.turn || known === -this.turn) return known > 0;
    const elder = this.words[directory * DirectoryWord.Count + DirectoryWord.Elder]! | 0;
    const same = elder < 0 ? this.isDirectoryAsRecorded(directory) : this.holds(elder) && this.compared[elder] !== this.turn;
    const good = same || ((elder < 0 || this.holds(elder)) && this.hasSameEntries(directory));
    this.held[directory] = good ? this.turn : -this.turn;
    return good;
  }

  // Node reports a missing file, or finds it elsewhere.
  private present(file: number, isLoaded: (filename: string) => boolean): string | undefined {
    const filename = this.text.files[file]!;
    if (isLoaded(filename)) return filename;
    this.lookedStats = stateOf(filename);
    this.looked = file;
    return this.lookedStats?.isFile() ? filename : undefined;
  }

  // It was resolved a moment ago, and nothing has run since.
  private look(file: number): fs.Stats | undefined {
    const fresh = this.looked === file ? this.lookedStats : stateOf(this.text.files[file]!);
    this.looked = -1;
    return fresh;
  }

  private isDirectoryAsRecorded(directory: number): boolean {
    const stats = stateOf(this.text.directories[directory]!);
    const at = directory * DIRECTORY_NUMBERS;
    const { numbers } = this;
    return (
      stats !== undefined &&
      stats.mtimeMs === numbers[at + 2] &&
      stats.ctimeMs === numbers[at + 3] &&
      stats.ino === numbers[at + 1] &&
      stats.dev === numbers[at]
    );
  }

  private hasSameEntries(directory: number): boolean {
    const path = this.text.directories[directory]!;
    const entries = this.entries(directory);
    this.compared[directory] = this.turn;
    for (let i = 0; i < entries.length; i += 2) if (entryOf(path === '/' ? `/${entries[i]}` : `${path}/${entries[i]}`) !== entries[i + 1]) return false;
    this.worn.directories.add(directory);
    return true;
  }

  // One directory at a time: parsing the whole text takes longer than everything that is saved.
  private entriesText(directory: number): Buffer {
    const { index, layout } = this.stored;
    const begin = layout.entriesText - layout.numbers;
    const end = (number: number): number => begin + this.words[number * DirectoryWord.Count + DirectoryWord.EntriesEnd]!;
    return index.subarray(directory === 0 ? begin : end(directory - 1), end(directory));
  }

  // Once is enough: Node also reads a package.json only once in the life of a process.
  private isPackageUnchanged(number: number): boolean {
    const known = this.packages[number];
    if (known !== Known.Nothing) return known === Known.Good;
    const stats = stateOf(this.text.packages[number]!);
    const good = stats !== undefined && this.isFileAsRecorded(stats, this.fileNumbers(number));
    this.packages[number] = good ? Known.Good : Known.Bad;
    return good;
  }

  private fileNumbers(number: number): number {
    return this.text.directories.length * DIRECTORY_NUMBERS + number * FILE_NUMBERS;
  }

  private isFileAsRecorded(stats: fs.Stats, at: number): boolean {
    const { numbers } = this;
    return (
      stats.size === numbers[at + 4] &&
      stats.mtimeMs === numbers[at + 2] &&
      stats.ctimeMs === numbers[at + 3] &&
      stats.ino === numbers[at + 1] &&
      stats.dev === numbers[at]
    );
  }
}

// Node reports what may not be examined.
function stateOf(path: string): fs.Stats | undefined {
  try {
    return statSync(path, QUIETLY);
  } catch {
    return undefined;
  }
}

/** The kind of a name in a directory, without following it. */
export function entryOf(path: string): Entry {
  try {
    const stats = lstatSync(path, QUIETLY);
    if (!stats) return '-';
    if (stats.isFile()) return 'f';
    if (stats.isDirectory()) return 'd';
    return stats.isSymbolicLink() ? `l:${readlinkSync(path)}` : '?';
  } catch {
    // Not a directory on the way, or an inaccessible one: Node does not find anything there either.
    return '-';
  }
}
