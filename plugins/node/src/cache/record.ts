// Recording: what a start has shown is proved, measured against a budget, and written. Loaded only when there is something to record.
import fs = require('node:fs');
import path = require('node:path');
import type { Catalog } from './catalog';
import { Draft, type DraftFile } from './draft';
import { Facts, numbersOf } from './facts';
import { Flag } from './format';
import { installation } from './installation';
import { limit } from './limit';
import { loader } from './loader';
import { prove } from './resolve';
import type { Seen, Session } from './session';
import { flagsOf, jsonOf, wrapped } from './text';
import { write } from './write';

export interface Job {
  readonly session: Session;
  /** The text that the cache is for, the script, and the file it belongs into. */
  readonly key: string;
  readonly main: string;
  readonly file: string;
  /** When the process began, in milliseconds of the clock. */
  readonly began: number;
  /** The CPU time of the process, in microseconds, at which recording has to be over. */
  readonly end: number;
  /** A recording that adds fewer sources and bytecodes was futile. */
  readonly worth: number;
}

export interface Recorded {
  readonly files: number;
  readonly bytes: number;
  /** Files that the budget left to the next start. */
  readonly left: number;
}

// Times of files are as coarse as the kernel's clock; what changed within this time may have changed twice.
const YOUNG_MILLISECONDS = 2000;
/** What a byte costs from here into the page cache, with its checksum: measured 3 to 6 ms for each megabyte. */
const MICROSECONDS_PER_BYTE = 5e-3;

/** Writes the cache anew with what this start has shown; null if there was nothing, or no place, to write. */
export function record(job: Job): Recorded | null {
  return new Recording(job).run();
}

type Content = Pick<DraftFile, 'numbers' | 'flags' | 'source' | 'bytecode'>;

class Recording {
  private readonly facts: Facts;
  private readonly draft: Draft;
  private readonly catalog: Catalog | null;
  private readonly seen: Map<string, Seen>;
  private readonly lookups = new Map<string, string[]>();
  /** CPU time that writing will take. */
  private reserved = 0;
  private left = 0;
  /** Sources and bytecodes that no cache had before. */
  private gained = 0;

  constructor(private readonly job: Job) {
    this.facts = new Facts(job.began - YOUNG_MILLISECONDS);
    this.draft = new Draft(`${job.key}\n${installation(job.main)}`, this.facts);
    this.catalog = job.session.catalog;
    // A module that was loaded again after it had been taken out of require.cache counts as it was last.
    this.seen = new Map((job.session.seen ?? []).map((one) => [one.filename, one]));
  }

  run(): Recorded | null {
    if (this.catalog) this.takeOver(this.catalog);
    const before = this.draft.files.size;
    for (const [{ filename }, request, answer] of this.job.session.resolutions ?? []) {
      if (this.isOver() && this.draft.files.size > before) break;
      if (typeof filename !== 'string' || typeof request !== 'string' || !path.isAbsolute(answer)) continue;
      this.addRequest(path.dirname(filename), request, answer);
      this.add(answer);
    }
    for (const filename of this.seen.keys()) this.add(filename);
    if (this.catalog) this.draft.keep(this.catalog);
    this.draft.futile = this.gained >= this.job.worth ? 0 : (this.catalog?.futile ?? 0) + 1;
    const bytes = write(this.job.file, this.draft, limit(process.env));
    return bytes === null ? null : { files: this.draft.files.size, bytes, left: this.left };
  }

  private isOver(): boolean {
    const { user, system } = process.cpuUsage();
    return user + system + this.reserved > this.job.end;
  }

  // What was served has been verified in this process.
  private takeOver(catalog: Catalog): void {
    for (const { filename, file, script } of this.seen.values()) {
      if (file === undefined) continue;
      const old = catalog.export(file);
      const content = old && catalog.worn ? this.renewed(filename, file, old) : old;
      if (!content) continue;
      this.addFile(filename, content);
      if (script) this.addBytecode(filename, script);
    }
  }

  // Its content was compared; its times are those of now, unless it has changed since.
  private renewed(filename: string, file: number, old: Content): Content | null {
    const stats = fs.statSync(filename, { throwIfNoEntry: false });
    if (!stats) return null;
    const numbers = numbersOf(stats);
    if (numbers.every((number, i) => number === old.numbers[i])) return old;
    if (this.facts.isYoung(stats) || !this.catalog!.load(file)) return old;
    return { ...old, numbers, flags: old.flags & ~Flag.Young };
  }

  private addRequest(directory: string, request: string, answer: string): void {
    let lookup = this.lookups.get(directory);
    if (!lookup) this.lookups.set(directory, (lookup = [...loader._nodeModulePaths(directory), ...loader.globalPaths]));
    try {
      const proof = prove(this.facts, directory, request, answer, lookup);
      if (proof) this.draft.addRequest(directory, request, answer, proof);
    } catch {
      // A directory that went away, or may not be looked into.
    }
  }

  private add(filename: string): void {
    const seen = this.seen.get(filename);
    if (!seen || seen.file !== undefined || this.draft.files.has(filename)) return;
    if (this.isOver() && this.draft.files.size > 0) {
      this.left++;
      return;
    }
    try {
      if (this.addFile(filename, this.read(filename))) this.gained++;
    } catch {
      // Not readable any more.
    }
  }

  // What the file is now, whatever it was when it was loaded: that is what the next start will compare it with.
  private read(filename: string): Content {
    const json = filename.endsWith('.json');
    const numbers = numbersOf(fs.statSync(filename));
    const content = fs.readFileSync(filename, 'utf8');
    const young = this.facts.isYoung(fs.statSync(filename)) ? Flag.Young : 0;
    const flags = young | (json ? Flag.Json : flagsOf(content));
    return { numbers, flags, source: json ? jsonOf(content) : wrapped(content), bytecode: null };
  }

  private addFile(filename: string, content: Content): boolean {
    const directory = path.dirname(filename);
    const place = this.facts.walk(filename);
    if (place.real !== filename || place.kind !== 'file') return false;
    if (!/\.(?:c?js|json)$/.test(filename)) return false;
    const scope = filename.endsWith('.js') ? this.facts.scopeOf(directory) : null;
    if (scope === undefined || scope?.data.type === 'module') return false;
    this.draft.addFile(filename, { ...content, directory, package: scope });
    this.reserve(content.source.length + (content.bytecode?.length ?? 0));
    return true;
  }

  private addBytecode(filename: string, script: NonNullable<Seen['script']>): void {
    const file = this.draft.files.get(filename);
    if (!file) return;
    file.bytecode = script.createCachedData();
    this.reserve(file.bytecode.length);
    this.gained++;
  }

  private reserve(bytes: number): void {
    this.reserved += bytes * MICROSECONDS_PER_BYTE;
  }
}
