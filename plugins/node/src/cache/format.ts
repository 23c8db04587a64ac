// The layout of a cache file, for its reader and its writer. docs/node-cache.md shows it in one picture.

/**
 * Header, then segments, then the index (tables, then two texts). A recording adds a segment and rewrites
 * header and index: existing segments stay in place. All numbers are little-endian; every part begins at a
 * multiple of eight, as V8 requires of cached data and typed arrays of their buffer.
 */
export const HEADER_BYTES = 320;
export const MAGIC = 0x54534148; // "HAST"
export const MAX_BYTES = 192 * 1024 * 1024;
export const MAX_SEGMENTS = 16;

/** Positions in the header, as indices of 32-bit words. */
export const enum Word {
  Magic = 0,
  Version = 1,
  /** Checksum of the words after this one. */
  Checksum = 2,
  FileBytes = 3,
  Directories = 4,
  Packages = 5,
  Files = 6,
  Origins = 7,
  Requests = 8,
  Dependencies = 9,
  IndexText = 10,
  EntriesText = 11,
  IndexChecksum = 12,
  Segments = 13,
  /** Consecutive recordings that added next to nothing. */
  Futile = 14,
  /** Four words for each segment: see SegmentWord. */
  FirstSegment = 16,
}

export const enum SegmentWord {
  Latin1Bytes = 0,
  TwoByteBytes = 1,
  CodeBytes = 2,
  Checksum = 3,
  Count = 4,
}

/** The numbers known about a directory: device, inode, modification and change time. */
export const DIRECTORY_NUMBERS = 4;
/** The numbers known about a file: the same plus its size. */
export const FILE_NUMBERS = 5;

/**
 * One row for each directory: its parent (-1 for the root), and the end of its part of the text of entries.
 * What a later recording learnt about the same directory, or about those above it, is a separate row, which
 * rests on what the elder one says about this directory.
 */
export const enum DirectoryWord {
  Parent = 0,
  EntriesEnd = 1,
  /** -1 if there is none. */
  Elder = 2,
  Count = 3,
}

/** One row for each module file. */
export const enum FileWord {
  Directory = 0,
  /** The package.json that decides what a .js file is; -1 if there is none. */
  Package = 1,
  Flags = 2,
  Segment = 3,
  SourceOffset = 4,
  SourceUnits = 5,
  CodeSegment = 6,
  CodeOffset = 7,
  CodeBytes = 8,
  Count = 9,
}

export const enum Flag {
  TwoByte = 1,
  Json = 2,
  /** Changed shortly before it was recorded: its time proves nothing, so its content is compared. */
  Young = 4,
  /** Has a dynamic import, or text that looks like one. */
  Import = 8,
  /** Cannot be served with every position as in the file: known, and left to Node. */
  Odd = 16,
  /** Too large to be copied: the file itself is the source. */
  Apart = 32,
  /** Node may not have run this text: until it has bytecode, it is not known to be a single function. */
  Unproven = 64,
}

/**
 * One row for each request of a directory: the file it leads to, and the end of its dependencies (they begin
 * where those of the previous row end).
 */
export const enum RequestWord {
  File = 0,
  DependenciesEnd = 1,
  Count = 2,
}

/** One row for each directory from which requests come: the directory, and the end of its requests. */
export const enum OriginWord {
  Directory = 0,
  RequestsEnd = 1,
  Count = 2,
}

export interface IndexText {
  readonly key: string;
  /** Absolute paths without links, parents before children. */
  readonly directories: readonly string[];
  readonly packages: readonly string[];
  readonly files: readonly string[];
  readonly requests: readonly string[];
}

/** The relevant names in a directory, each followed by its kind. Read only if the directory has changed. */
export type EntriesText = readonly string[];

/** Nothing, a file, a directory, something else, or a link to what follows the colon. */
export type Entry = '-' | 'f' | 'd' | '?' | `l:${string}`;

export function aligned(bytes: number): number {
  return (bytes + 7) & ~7;
}

export interface Layout {
  /** The beginning of the index. */
  readonly numbers: number;
  readonly words: number;
  readonly indexText: number;
  readonly entriesText: number;
  /** The end of the file. */
  readonly end: number;
}

/** Where the parts of a file begin. `words` is its header. */
export function layout(words: Uint32Array): Layout {
  const count = (place: number): number => words[place] ?? 0;
  let numbers = HEADER_BYTES;
  for (let i = 0, row = Word.FirstSegment; i < count(Word.Segments); i++, row += SegmentWord.Count) numbers += segmentBytes(words, row);
  const doubles = count(Word.Directories) * DIRECTORY_NUMBERS + (count(Word.Packages) + count(Word.Files)) * FILE_NUMBERS;
  const table = numbers + doubles * 8;
  const rows =
    count(Word.Directories) * DirectoryWord.Count +
    count(Word.Files) * FileWord.Count +
    count(Word.Origins) * OriginWord.Count +
    count(Word.Requests) * RequestWord.Count +
    count(Word.Dependencies);
  const indexText = table + aligned(rows * 4);
  const entriesText = indexText + aligned(count(Word.IndexText));
  return { numbers, words: table, indexText, entriesText, end: entriesText + aligned(count(Word.EntriesText)) };
}

/** The size of a segment in the file; `row` is the index of its first word. */
export function segmentBytes(words: Uint32Array, row: number): number {
  const part = (word: SegmentWord): number => aligned(words[row + word] ?? 0);
  return part(SegmentWord.Latin1Bytes) + part(SegmentWord.TwoByteBytes) + part(SegmentWord.CodeBytes);
}
