// A cache file in the making: the tables of the previous file, if any, and what this start adds to them.
import path = require('node:path');
import type { Catalog, Tables } from './catalog';
import type { Facts, FileNumbers, PackageFile } from './facts';
import { DIRECTORY_NUMBERS, DirectoryWord, FILE_NUMBERS, FileWord, Flag } from './format';
import type { Proof } from './resolve';

export interface DraftFile {
  readonly filename: string;
  readonly package: PackageFile | null;
  readonly numbers: FileNumbers;
  readonly flags: number;
  readonly source: string;
}

interface DraftRequest extends Proof {
  readonly request: string;
  readonly answer: number;
}

/** A recording's addition: one segment. */
export interface Addition {
  readonly latin1: readonly string[];
  readonly twoByte: readonly string[];
  readonly code: readonly Buffer[];
}

export class Draft {
  readonly tables: Tables;
  /** Consecutive recordings, including this one, that added next to nothing. */
  futile = 0;

  private readonly segment: number;
  private readonly addition = { latin1: [] as string[], twoByte: [] as string[], code: [] as Buffer[] };
  private readonly units = { latin1: 0, twoByte: 0, code: 0 };
  private readonly fileByPath: Map<string, number>;
  private readonly files: (DraftFile & { readonly place: Place })[] = [];
  private readonly requests = new Map<string, DraftRequest[]>();
  private readonly packages = new Map<string, number>();
  /** The last row of each directory of the previous file. */
  private readonly elders: Map<string, number>;
  private readonly rows = new Map<string, number>();
  private readonly firstFile: number;

  constructor(
    private readonly facts: Facts,
    catalog: Catalog | null,
  ) {
    this.tables = catalog ? catalog.tables() : none();
    this.segment = catalog ? catalog.segmentCount : 0;
    this.fileByPath = new Map(catalog?.files());
    this.firstFile = this.tables.text.files.length;
    this.elders = new Map(this.tables.text.directories.map((directory, row) => [directory, row]));
  }

  has(filename: string): boolean {
    return this.fileByPath.has(filename);
  }

  /** Whether this start has added the file. */
  isNew(filename: string): boolean {
    return (this.fileByPath.get(filename) ?? -1) >= this.firstFile;
  }

  /** A file that is missing, or outdated. */
  addFile(file: DraftFile): void {
    const { flags, source } = file;
    const list = flags & Flag.Apart ? null : isLatin1(source) ? 'latin1' : 'twoByte';
    this.fileByPath.set(file.filename, this.firstFile + this.files.length);
    this.files.push({ ...file, place: { twoByte: list === 'twoByte', offset: list ? this.units[list] : 0 } });
    if (!list) return;
    this.addition[list].push(source);
    this.units[list] += source.length;
  }

  /** The bytecode of a file in the catalog. */
  addBytecode(file: number, bytecode: Buffer): void {
    const { files } = this.tables.words;
    const row = file * FileWord.Count;
    files[row + FileWord.CodeSegment] = this.segment;
    files[row + FileWord.CodeOffset] = this.units.code;
    files[row + FileWord.CodeBytes] = bytecode.length;
    const rest = -bytecode.length & 7;
    this.addition.code.push(bytecode, Buffer.alloc(rest));
    this.units.code += bytecode.length + rest;
  }

  /** Records that a request leads to a file in the tables. */
  addRequest(directory: string, request: string, answer: string, proof: Proof): void {
    const requests = this.requests.get(directory) ?? [];
    if (requests.length === 0) this.requests.set(directory, requests);
    requests.push({ ...proof, request, answer: this.fileByPath.get(answer)! });
  }

  /** Completes the tables. */
  finish(): Addition {
    this.findDirectories();
    for (const file of this.files) this.addFileRow(file);
    for (const [directory, requests] of this.requests) this.addOrigin(directory, requests);
    return this.addition;
  }

  // A directory is a name in the one above it: what they all contain must be known before any is written down.
  private findDirectories(): void {
    const { facts } = this;
    for (const { filename } of this.files) facts.directory(path.dirname(filename));
    for (const [directory, requests] of this.requests) {
      facts.directory(directory);
      for (const { directories } of requests) for (const one of directories) facts.directory(one);
    }
  }

  private addFileRow({ filename, numbers, flags, package: owner, source, place }: (typeof this.files)[number]): void {
    const row = new Array<number>(FileWord.Count).fill(0);
    row[FileWord.Directory] = this.directory(path.dirname(filename));
    row[FileWord.Package] = owner ? this.package(owner) : -1;
    row[FileWord.Flags] = (flags & ~Flag.TwoByte) | (place.twoByte ? Flag.TwoByte : 0);
    row[FileWord.Segment] = this.segment;
    row[FileWord.SourceOffset] = place.offset;
    row[FileWord.SourceUnits] = source.length;
    this.tables.words.files.push(...row);
    this.tables.text.files.push(filename);
    this.tables.numbers.files.push(...numbers);
  }

  private addOrigin(directory: string, added: readonly DraftRequest[]): void {
    const { text, words } = this.tables;
    for (const { request, answer, directories, packages } of added) {
      words.dependencies.push(...this.lowest(directories.map((one) => this.directory(one))));
      for (const one of packages) words.dependencies.push(~this.package(one));
      words.requests.push(answer, words.dependencies.length);
      text.requests.push(request);
    }
    words.origins.push(this.directory(directory), text.requests.length);
  }

  // A row that is verified together with another one need not be named.
  private lowest(rows: readonly number[]): number[] {
    const covered = new Set<number>();
    for (const row of rows) {
      for (let above = this.parentOf(row); above >= 0; above = this.parentOf(above)) for (const one of this.lineOf(above)) covered.add(one);
    }
    return rows.filter((row) => !covered.has(row));
  }

  // Parents first: a directory's identity rests on those above it.
  private directory(directory: string): number {
    const known = this.rows.get(directory);
    if (known !== undefined) return known;
    const parent = directory === '/' ? -1 : this.directory(path.dirname(directory));
    const { numbers, entries } = this.facts.directory(directory);
    const { text, words } = this.tables;
    const elder = this.elderOf(directory, numbers);
    const before = this.namesOf(elder);
    const added = [...entries].filter(([name]) => !before.has(name)).flat();
    let row = elder;
    if (elder < 0 || added.length > 0 || !this.isBelow(elder, parent)) {
      row = text.directories.push(directory) - 1;
      words.directories.push(parent, 0, elder);
      this.tables.numbers.directories.push(...numbers);
      this.tables.entries.push(Buffer.from(JSON.stringify(added)));
    }
    this.rows.set(directory, row);
    return row;
  }

  // Whether what a row says about those above it is still true: the row verified with it is theirs, or one that theirs
  // rests on.
  private isBelow(row: number, parent: number): boolean {
    const above = this.parentOf(row);
    return above === parent || this.lineOf(parent).includes(above);
  }

  private parentOf(row: number): number {
    return this.tables.words.directories[row * DirectoryWord.Count + DirectoryWord.Parent]! | 0;
  }

  /** A row, and those on which it rests. */
  private lineOf(row: number): number[] {
    const line: number[] = [];
    for (let one = row; one >= 0; one = this.tables.words.directories[one * DirectoryWord.Count + DirectoryWord.Elder]! | 0) line.push(one);
    return line;
  }

  private namesOf(row: number): Set<string> {
    const names = this.lineOf(row).flatMap((one) => JSON.parse(this.tables.entries[one]!.toString()) as string[]);
    return new Set(names.filter((_, i) => i % 2 === 0));
  }

  // A row that holds as long as the directory has not changed since: the same as now. NaN equals no number.
  private elderOf(directory: string, numbers: readonly number[]): number {
    const row = this.elders.get(directory);
    if (row === undefined) return -1;
    const at = row * DIRECTORY_NUMBERS;
    return numbers.every((number, i) => number === this.tables.numbers.directories[at + i]) ? row : -1;
  }

  private package({ path: file, numbers }: PackageFile): number {
    const known = this.packages.get(file);
    if (known !== undefined) return known;
    const { text, numbers: all } = this.tables;
    let row = text.packages.lastIndexOf(file);
    if (row < 0 || !numbers.every((number, i) => number === all.packages[row * FILE_NUMBERS + i])) {
      row = text.packages.push(file) - 1;
      all.packages.push(...numbers);
    }
    this.packages.set(file, row);
    return row;
  }
}

interface Place {
  readonly twoByte: boolean;
  readonly offset: number;
}

function none(): Tables {
  return {
    text: { directories: [], packages: [], files: [], requests: [] },
    numbers: { directories: [], packages: [], files: [] },
    words: { directories: [], files: [], origins: [], requests: [], dependencies: [] },
    entries: [],
  };
}

function isLatin1(text: string): boolean {
  // Counting bytes is vectorised, and decides nearly every case.
  return Buffer.byteLength(text, 'utf8') === text.length || !/[^\x00-\xff]/.test(text);
}
