// The present state of the file system in a cache's terms: the names that were looked up, and the directories that
// contain them.
import fs = require('node:fs');
import path = require('node:path');
import { entryOf } from './catalog';
import { contentOf } from './content';
import type { Entry } from './format';

/** Device, inode, modification and change time; NaN where they prove nothing because they are too young. */
export type DirectoryNumbers = readonly [number, number, number, number];
/** The same plus the size. */
export type FileNumbers = readonly [number, number, number, number, number];

/** Where a path leads, and what that depends on. */
export interface Place {
  /** The path without links; null if there is nothing. */
  readonly real: string | null;
  readonly kind: 'file' | 'directory' | 'nothing';
  /** The directory in which the last name was looked up, and those that contain the links on the way. */
  readonly rests: readonly string[];
  /** The latter alone. */
  readonly links: readonly string[];
}

export interface PackageFile {
  readonly path: string;
  readonly numbers: FileNumbers;
  readonly data: { readonly name?: unknown; readonly main?: unknown; readonly exports?: unknown; readonly type?: unknown };
  readonly text: string;
}

export interface DirectoryFacts {
  readonly numbers: DirectoryNumbers;
  readonly entries: Map<string, Entry>;
}

// Links that lead to each other.
const MAX_LINKS = 40;
const ROOT: Place = { real: '/', kind: 'directory', rests: [], links: [] };

export class Facts {
  readonly directories = new Map<string, DirectoryFacts>();
  private readonly places = new Map<string, Place>([['/', ROOT]]);
  private readonly packages = new Map<string, PackageFile | null>();
  private readonly scopes = new Map<string, PackageFile | null | undefined>();
  /** Whether something was left out only because it changed a moment ago. A later start may include it. */
  postponed = false;

  /** What changed at or after `young` (milliseconds) may change again without a trace. */
  constructor(private readonly young: number) {}

  /** Where an absolute, normalized path leads. */
  walk(target: string, links = 0): Place {
    const known = this.places.get(target);
    if (known) return known;
    const place = this.step(target, links);
    this.places.set(target, place);
    return place;
  }

  /** A directory's package.json; null if it has none, undefined if it cannot be relied on. */
  packageOf(directory: string): PackageFile | null | undefined {
    const { real, kind } = this.walk(join(directory, 'package.json'));
    if (kind !== 'file') return null;
    let found = this.packages.get(real!);
    if (found === undefined) this.packages.set(real!, (found = this.readPackage(real!)));
    return found ?? undefined;
  }

  /**
   * The package.json that applies to the files of a directory without links; null if there is none, undefined if it
   * cannot be relied on.
   */
  scopeOf(directory: string): PackageFile | null | undefined {
    if (!this.scopes.has(directory)) this.scopes.set(directory, this.findScope(directory));
    return this.scopes.get(directory);
  }

  /** Facts of a directory without links. */
  directory(real: string): DirectoryFacts {
    const known = this.directories.get(real);
    if (known) return known;
    const stats = fs.statSync(real);
    const old = stats.mtimeMs < this.young && stats.ctimeMs < this.young;
    const numbers: DirectoryNumbers = old ? [stats.dev, stats.ino, stats.mtimeMs, stats.ctimeMs] : [NaN, NaN, NaN, NaN];
    const facts = { numbers, entries: new Map<string, Entry>() };
    this.directories.set(real, facts);
    // That it is a directory, and not a link to one, is a fact about the parent.
    if (real !== '/') this.entry(path.dirname(real), path.basename(real));
    return facts;
  }

  /** Whether a directory is unchanged; its names are remembered as they are now. */
  agree(real: string, entries: readonly string[], numbers: ArrayLike<number>): boolean {
    try {
      const facts = this.directory(real);
      const same = facts.numbers.every((number, i) => number === numbers[i]);
      for (let i = 0; i < entries.length; i += 2) {
        const [name, entry] = [entries[i]!, entries[i + 1] as Entry];
        if (same && !facts.entries.has(name)) facts.entries.set(name, entry);
        else if (this.entry(real, name) !== entry) return false;
      }
      return true;
    } catch {
      return false;
    }
  }

  isYoung(stats: fs.Stats): boolean {
    return stats.mtimeMs >= this.young || stats.ctimeMs >= this.young;
  }

  /** Whether a file is too young to be recorded. */
  isTooYoung(stats: fs.Stats): boolean {
    if (!this.isYoung(stats)) return false;
    // A time in the future does not age.
    const now = Date.now();
    this.postponed ||= stats.mtimeMs <= now && stats.ctimeMs <= now;
    return true;
  }

  private findScope(directory: string): PackageFile | null | undefined {
    if (directory.endsWith('/node_modules')) return null;
    const found = this.packageOf(directory);
    if (found === null) return directory === '/' ? null : this.scopeOf(path.dirname(directory));
    // A package.json that is a link would depend on directories that nobody asks about here.
    return found?.path === join(directory, 'package.json') ? found : undefined;
  }

  private entry(real: string, name: string): Entry {
    const { entries } = this.directory(real);
    let found = entries.get(name);
    if (found === undefined) entries.set(name, (found = entryOf(join(real, name))));
    return found;
  }

  private step(target: string, links: number): Place {
    const parent = this.walk(path.dirname(target), links);
    const { links: before } = parent;
    if (parent.kind !== 'directory') return { real: null, kind: 'nothing', rests: parent.rests, links: before };
    const real = parent.real!;
    const entry = this.entry(real, path.basename(target));
    // Everything above `real` is verified together with it. A directory that contains a link is not, even if it is
    // above: the link's name counts.
    const rests = [...before, real];
    if (entry === 'f' || entry === 'd') {
      return { real: join(real, path.basename(target)), kind: entry === 'f' ? 'file' : 'directory', rests, links: before };
    }
    if (!isPlainLink(entry) || links >= MAX_LINKS) return { real: null, kind: 'nothing', rests, links: before };
    const end = this.walk(path.resolve(real, entry.slice(2)), links + 1);
    return { ...end, rests: [...rests, ...end.rests], links: [...rests, ...end.links] };
  }

  private readPackage(file: string): PackageFile | null {
    try {
      const stats = fs.statSync(file);
      if (this.isTooYoung(stats)) return null;
      const text = contentOf(fs, file).toString();
      const data = JSON.parse(text) as PackageFile['data'] | null;
      return typeof data === 'object' && data ? { path: file, numbers: numbersOf(stats), data, text } : null;
    } catch {
      return null;
    }
  }
}

// `..` after a name leads out of whatever that name refers to, possibly a link: Node follows such paths.
function isPlainLink(entry: Entry): boolean {
  return entry.startsWith('l:') && !/(?:^|\/)\.\.(?:\/|$)/.test(entry.slice(2).replace(/^(?:\.\.?\/+)+/, ''));
}

export function numbersOf(stats: fs.Stats): FileNumbers {
  return [stats.dev, stats.ino, stats.mtimeMs, stats.ctimeMs, stats.size];
}

export function join(directory: string, name: string): string {
  return directory === '/' ? `/${name}` : `${directory}/${name}`;
}
