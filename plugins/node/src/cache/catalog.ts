// A cache that was read: what it says, and whether that is still true.
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
import type { Facts, FileNumbers } from './facts';
import { segment, type Segment, type Stored } from './store';
import { jsonOf, wraps } from './text';

const { lstatSync, readlinkSync, statSync } = fs;
const QUIETLY = { throwIfNoEntry: false } as const;

/** What has been found out about a package.json in this process. */
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

export interface PackageNumbers {
  readonly path: string;
  readonly numbers: FileNumbers;
}

export interface ExportedFile {
  readonly numbers: FileNumbers;
  readonly flags: number;
  readonly source: string;
  readonly bytecode: Buffer | null;
  readonly package: PackageNumbers | null;
}

export interface ExportedRequest {
  readonly directory: string;
  readonly request: string;
  readonly answer: string;
  readonly directories: readonly string[];
  readonly packages: readonly PackageNumbers[];
}

const afterwards = Promise.resolve();

export class Catalog {
  readonly text: IndexText;
  readonly stored: Stored;
  /** Set when something was different and yet right: the cache is worth writing again. */
  worn = false;

  private readonly numbers: Float64Array;
  private readonly words: Uint32Array;
  private readonly fileRows: number;
  private readonly originRows: number;
  private readonly requestRows: number;
  private readonly dependencyRows: number;
  private readonly fileByPath = new Map<string, number>();
  private readonly originByPath = new Map<string, number>();
  private readonly requestsByOrigin: (Map<string, number> | undefined)[] = [];
  /** For each directory the turn in which it was verified, negative where something was different. */
  private readonly directories: Int32Array;
  /** A turn is a synchronous run of the program. Node, too, looks at the file system once in a turn. */
  private turn = 0;
  private isTurnOver = true;
  /** The file that was looked at last, and what it was. */
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
    this.packages = new Array<Known>(count(Word.Packages)).fill(Known.Nothing);
    const { files, directories } = text;
    for (let i = 0; i < files.length; i++) this.fileByPath.set(files[i]!, i);
    const origins = count(Word.Origins);
    for (let i = 0; i < origins; i++) this.originByPath.set(directories[this.words[this.originRows + i * OriginWord.Count]!]!, i);
  }

  /** The file that a request from a directory leads to; undefined if that is not known for certain. */
  resolve(directory: string, request: string, isLoaded: (filename: string) => boolean): string | undefined {
    const origin = this.originByPath.get(directory);
    if (origin === undefined) return undefined;
    const row = this.requestsOf(origin).get(request);
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

  /** Where a file stands in the catalog; undefined if it does not. */
  find(filename: string): number | undefined {
    return this.fileByPath.get(filename);
  }

  flags(file: number): number {
    return this.words[this.fileRows + file * FileWord.Count + FileWord.Flags]!;
  }

  /** Source and bytecode of a file, if it still has the content that was recorded, and still is what it was taken for. */
  load(file: number): Code | null {
    const row = this.fileRows + file * FileWord.Count;
    const owner = this.words[row + FileWord.Package]! | 0;
    this.take();
    if (!this.isDirectoryUnchanged(this.words[row + FileWord.Directory]!) || (owner >= 0 && !this.isPackageUnchanged(owner))) return null;
    const filename = this.text.files[file]!;
    const flags = this.words[row + FileWord.Flags]!;
    const stats = this.look(file);
    const same = stats !== undefined && this.isFileAsRecorded(stats, this.fileNumbers(this.text.packages.length + file));
    const code = stats?.isFile() ? this.code(row, flags) : null;
    if (!code || (same && !(flags & Flag.Young))) return code;
    // Touched, copied, or so young that its time says nothing: the content decides.
    this.worn = true;
    const content = fs.readFileSync(filename, 'utf8');
    return (flags & Flag.Json ? code.source === jsonOf(content) : wraps(code.source, content)) ? code : null;
  }

  /** Recordings in a row that added next to nothing. */
  get futile(): number {
    return this.stored.words[Word.Futile] ?? 0;
  }

  /** The files of the catalog, and their places. */
  files(): ReadonlyMap<string, number> {
    return this.fileByPath;
  }

  /** All that is known of a file, for another catalog. */
  export(file: number): ExportedFile | null {
    const row = this.fileRows + file * FileWord.Count;
    const flags = this.words[row + FileWord.Flags]!;
    const code = this.code(row, flags);
    const owner = this.words[row + FileWord.Package]! | 0;
    const at = this.fileNumbers(this.text.packages.length + file);
    return (
      code && {
        numbers: fiveOf(this.numbers, at),
        flags,
        source: code.source,
        bytecode: code.bytecode ?? null,
        package: owner < 0 ? null : this.exportPackage(owner),
      }
    );
  }

  /** All requests of the catalog. */
  *requests(): Generator<ExportedRequest> {
    let row = 0;
    let at = this.dependencyRows;
    for (let origin = this.originRows; origin < this.requestRows; origin += OriginWord.Count) {
      const directory = this.text.directories[this.words[origin + OriginWord.Directory]!]!;
      for (const end = this.words[origin + OriginWord.RequestsEnd]!; row < end; row++) {
        const place = this.requestRows + row * RequestWord.Count;
        const [directories, packages]: [string[], PackageNumbers[]] = [[], []];
        for (const last = this.dependencyRows + this.words[place + RequestWord.DependenciesEnd]!; at < last; at++) {
          const dependency = this.words[at]! | 0;
          if (dependency >= 0) directories.push(this.text.directories[dependency]!);
          else packages.push(this.exportPackage(~dependency));
        }
        yield { directory, request: this.text.requests[row]!, answer: this.text.files[this.words[place + RequestWord.File]!]!, directories, packages };
      }
    }
  }

  /** Tells whether a directory, by its path, has every name as it was. `facts` are those of now, and learn the names. */
  comparison(facts: Facts): (directory: string) => boolean {
    const numbers = new Map(this.text.directories.map((directory, i) => [directory, i]));
    const results = new Map<number, boolean>();
    const unchanged = (number: number): boolean => {
      const known = results.get(number);
      if (known !== undefined) return known;
      const parent = this.parent(number);
      const path = this.text.directories[number]!;
      const good = (parent < 0 || unchanged(parent)) && facts.agree(path, this.entries(number), this.directoryNumbers(number));
      results.set(number, good);
      return good;
    };
    return (directory) => {
      const number = numbers.get(directory);
      return number !== undefined && unchanged(number);
    };
  }

  private directoryNumbers(directory: number): Float64Array {
    return this.numbers.subarray(directory * DIRECTORY_NUMBERS, (directory + 1) * DIRECTORY_NUMBERS);
  }

  private exportPackage(number: number): PackageNumbers {
    return { path: this.text.packages[number]!, numbers: fiveOf(this.numbers, this.fileNumbers(number)) };
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
    const number = this.words[row + FileWord.Segment]!;
    let found = this.segments[number];
    if (found === undefined) this.segments[number] = found = segment(this.stored, number);
    if (!found) return null;
    const begin = this.words[row + FileWord.SourceOffset]!;
    const end = begin + this.words[row + FileWord.SourceUnits]!;
    const source = flags & Flag.TwoByte ? found.twoByte.slice(begin, end) : found.latin1.slice(begin, end);
    const bytes = this.words[row + FileWord.CodeBytes]!;
    const at = this.words[row + FileWord.CodeOffset]!;
    return { source, bytecode: bytes ? found.code.subarray(at, at + bytes) : undefined, flags };
  }

  // What a turn has found out is void in the next.
  private take(): void {
    if (!this.isTurnOver) return;
    this.isTurnOver = false;
    this.turn++;
    void afterwards.then(() => {
      this.isTurnOver = true;
    });
  }

  private isDirectoryUnchanged(directory: number): boolean {
    const known = this.directories[directory]!;
    if (known === this.turn || known === -this.turn) return known > 0;
    const parent = this.parent(directory);
    const good = (parent < 0 || this.isDirectoryUnchanged(parent)) && (this.isDirectoryAsRecorded(directory) || this.hasSameEntries(directory));
    this.directories[directory] = good ? this.turn : -this.turn;
    return good;
  }

  // A file that has gone is for Node to say, or to find elsewhere.
  private present(file: number, isLoaded: (filename: string) => boolean): string | undefined {
    const filename = this.text.files[file]!;
    if (isLoaded(filename)) return filename;
    this.lookedStats = statSync(filename, QUIETLY);
    this.looked = file;
    return this.lookedStats?.isFile() ? filename : undefined;
  }

  // Resolving it was a moment ago, and nothing has run since.
  private look(file: number): fs.Stats | undefined {
    const fresh = this.looked === file ? this.lookedStats : statSync(this.text.files[file]!, QUIETLY);
    this.looked = -1;
    return fresh;
  }

  private isDirectoryAsRecorded(directory: number): boolean {
    const stats = statSync(this.text.directories[directory]!, QUIETLY);
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
    for (let i = 0; i < entries.length; i += 2) if (entryOf(path === '/' ? `/${entries[i]}` : `${path}/${entries[i]}`) !== entries[i + 1]) return false;
    this.worn = true;
    return true;
  }

  private parent(directory: number): number {
    return this.words[directory * DirectoryWord.Count + DirectoryWord.Parent]! | 0;
  }

  // One directory at a time: the whole text takes longer to parse than all that is saved.
  private entries(directory: number): EntriesText {
    const { index, layout } = this.stored;
    const begin = layout.entriesText - layout.numbers;
    const end = (number: number): number => begin + this.words[number * DirectoryWord.Count + DirectoryWord.EntriesEnd]!;
    return JSON.parse(index.toString('utf8', directory === 0 ? begin : end(directory - 1), end(directory))) as EntriesText;
  }

  // Once is enough: Node, too, reads a package.json once in the life of a process.
  private isPackageUnchanged(number: number): boolean {
    const known = this.packages[number];
    if (known !== Known.Nothing) return known === Known.Good;
    const stats = statSync(this.text.packages[number]!, QUIETLY);
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

function fiveOf(numbers: Float64Array, at: number): FileNumbers {
  return [numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, numbers[at + 3]!, numbers[at + 4]!];
}

/** What a name in a directory is, without following it. */
export function entryOf(path: string): Entry {
  try {
    const stats = lstatSync(path, QUIETLY);
    if (!stats) return '-';
    if (stats.isFile()) return 'f';
    if (stats.isDirectory()) return 'd';
    return stats.isSymbolicLink() ? `l:${readlinkSync(path)}` : '?';
  } catch {
    // Not a directory on the way, or not to be looked into: Node does not find anything there either.
    return '-';
  }
}
