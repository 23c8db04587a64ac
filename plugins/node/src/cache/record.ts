// Recording: what a start has shown is proved, weighed against a budget, and written. Loaded only if there is something
// to record.
import fs = require('node:fs');
import path = require('node:path');
import type { Catalog } from './catalog';
import { contentOf } from './content';
import { BEGIN_BYTES } from './apart';
import { Draft, type DraftFile } from './draft';
import { Facts, numbersOf } from './facts';
import { DIRECTORY_NUMBERS, FILE_NUMBERS, FileWord, Flag, MAX_SEGMENTS } from './format';
import { installation } from './installation';
import { keep } from './keep';
import { limit } from './limit';
import { loader } from './loader';
import { prove } from './resolve';
import type { Seen, Session } from './session';
import { flagsOf, isQuiet, jsonOf, wrapped } from './text';
import { write } from './write';
import type { Compiled } from '../own';

export interface Job {
  readonly session: Session;
  /** The text identifying what the cache is for, the script, and the cache's file. */
  readonly key: string;
  readonly main: string;
  readonly file: string;
  /** The CPU time in microseconds that recording may take. */
  readonly budget: number;
  /** A recording that adds fewer sources and bytecodes than this was futile. */
  readonly worth: number;
  /** Our own files whose bytecode has not been kept yet. */
  readonly compiled: readonly Compiled[];
}

export interface Recorded {
  readonly files: number;
  readonly bytes: number;
  /** Pieces that did not fit the budget and are left to the next start. */
  readonly left: number;
  /** The cost of the smallest of them, in microseconds, if none fitted; else 0. */
  readonly need: number;
}

// File times are as coarse as the kernel's clock; what changed within this time may have changed twice.
const YOUNG_MILLISECONDS = 2000;
/** Larger scripts are not copied. */
const LARGE_BYTES = 512 * 1024;

/**
 * Upper bounds of costs, in microseconds: a file and the way to it, and a byte of it from there into the page cache.
 */
const FILE = 150;
const SOURCE_BYTE = 0.009;
const WRITTEN_BYTE = 0.003;
/** A row of the tables. */
const ROW = 15;
/** A bytecode, and its cost per unit of source. */
const BYTECODE = 30;
const BYTECODE_UNIT = 0.0015;

/** Rewrites the cache with what this start has shown, if there is a place to write to. */
export function record(job: Job): Recorded {
  return new Recording(job).run();
}

type Content = Pick<DraftFile, 'numbers' | 'flags' | 'source'>;

class Recording {
  private readonly facts: Facts;
  private readonly draft: Draft;
  /** The catalog to extend; null if the cache is started afresh. */
  private readonly catalog: Catalog | null;
  private readonly budget: Budget;
  private readonly seen: Map<string, Seen>;
  private readonly lookups = new Map<string, string[]>();
  private left = 0;
  private need = Infinity;
  /** Sources and bytecodes that were in no cache before. */
  private gained = 0;

  constructor(private readonly job: Job) {
    const { catalog, seen } = job.session;
    this.budget = new Budget(job.budget);
    this.facts = new Facts(job.session.processBegan - YOUNG_MILLISECONDS);
    this.catalog = catalog && catalog.segmentCount < MAX_SEGMENTS ? catalog : null;
    this.draft = new Draft(this.facts, this.catalog);
    // A module that was reloaded after its removal from require.cache counts in its latest state.
    this.seen = new Map(seen);
  }

  run(): Recorded {
    const { catalog, draft, job } = this;
    if (catalog) this.renew(catalog);
    if (catalog) for (const { file, script } of this.seen.values()) if (file !== undefined && script) this.addBytecode(catalog, file, script);
    for (const [directory, request, answer] of job.session.resolutions ?? []) {
      if (!path.isAbsolute(answer)) continue;
      this.add(answer);
      if (draft.has(answer) && this.budget.fits(FILE)) this.addRequest(directory || '/', request, answer);
    }
    for (const filename of this.seen.keys()) this.add(filename);
    if (this.gained === 0 && this.left > 0) return { files: 0, bytes: 0, left: this.left, need: this.need };
    const hopeful = this.gained >= job.worth || this.left > 0 || this.facts.postponed;
    draft.futile = hopeful ? 0 : (catalog?.futile ?? 0) + 1;
    const key = `${job.key}\n${installation(job.main)}`;
    const bytes = write(job.file, key, draft, catalog?.stored ?? null, limit(process.env));
    if (bytes !== null) keep(job.compiled);
    return { files: this.gained, bytes: bytes ?? 0, left: this.left, need: 0 };
  }

  // Records the present state of what differed and yet was right.
  private renew(catalog: Catalog): void {
    const { text, numbers, words } = this.draft.tables;
    for (const path_ of new Set([...catalog.worn.directories].map((directory) => text.directories[directory]!))) {
      const rows = text.directories.flatMap((other, row) => (other === path_ ? [row] : []));
      const old = (row: number): number[] => numbers.directories.slice(row * DIRECTORY_NUMBERS, (row + 1) * DIRECTORY_NUMBERS);
      if (!rows.every((row) => this.facts.agree(path_, catalog.entries(row), old(row)))) continue;
      for (const row of rows) this.facts.directory(path_).numbers.forEach((number, i) => (numbers.directories[row * DIRECTORY_NUMBERS + i] = number));
    }
    for (const file of [...catalog.worn.files]) {
      const stats = fs.statSync(text.files[file]!, { throwIfNoEntry: false });
      if (!stats || this.facts.isYoung(stats) || !catalog.load(file)) continue;
      numbersOf(stats).forEach((number, i) => (numbers.files[file * FILE_NUMBERS + i] = number));
      words.files[file * FileWord.Count + FileWord.Flags]! &= ~Flag.Young;
    }
  }

  private addBytecode(catalog: Catalog, file: number, script: NonNullable<Seen['script']>): void {
    const cost = BYTECODE + catalog.units(file) * BYTECODE_UNIT;
    if (!this.fits(cost)) return;
    const bytecode = script.createCachedData();
    this.draft.addBytecode(file, bytecode);
    this.budget.reserve(bytecode.length * WRITTEN_BYTE);
    this.gained++;
  }

  private addRequest(directory: string, request: string, answer: string): void {
    let lookup = this.lookups.get(directory);
    if (!lookup) this.lookups.set(directory, (lookup = [...loader._nodeModulePaths(directory), ...this.job.session.globalPaths]));
    try {
      const proof = prove(this.facts, directory, request, answer, lookup);
      if (!proof) return;
      this.draft.addRequest(directory, request, answer, proof);
      this.budget.reserve(ROW);
    } catch {
      // A directory that disappeared, or is inaccessible.
    }
  }

  private add(filename: string): void {
    const seen = this.seen.get(filename);
    if (!seen || this.draft.isNew(filename) || (this.catalog && seen.file !== undefined)) return;
    this.seen.delete(filename);
    try {
      if (this.addFile(filename, seen.proven)) this.gained++;
    } catch {
      // No longer readable.
    }
  }

  private addFile(filename: string, proven: boolean): boolean {
    const stats = fs.statSync(filename);
    const large = stats.size > LARGE_BYTES && !filename.endsWith('.json');
    if (!this.fits(FILE + stats.size * (large && KEEPS_LOADER ? 0 : SOURCE_BYTE))) return false;
    const place = this.facts.walk(filename);
    if (place.real !== filename || place.kind !== 'file' || !/\.(?:c?js|json)$/.test(filename)) return false;
    const scope = filename.endsWith('.js') ? this.facts.scopeOf(path.dirname(filename)) : null;
    if (scope === undefined || scope?.data.type === 'module') return false;
    const content = large ? this.look(filename, stats) : this.read(filename, stats);
    if (!content) return false;
    // What Node has run is what is recorded only if it has not changed since.
    const flags = content.flags | (proven && !(content.flags & Flag.Young) ? 0 : Flag.Unproven);
    this.draft.addFile({ filename, package: scope, ...content, flags });
    return true;
  }

  private fits(cost: number): boolean {
    if (this.budget.fits(cost)) return true;
    this.left++;
    this.need = Math.min(this.need, cost);
    return false;
  }

  // The file's present state, whatever it was when it was loaded: the next start will compare with that.
  private read(filename: string, before: fs.Stats): Content {
    const json = filename.endsWith('.json');
    const content = contentOf(fs, filename).toString();
    const young = this.facts.isYoung(fs.statSync(filename)) ? Flag.Young : 0;
    const flags = young | (json ? Flag.Json : flagsOf(content));
    this.budget.reserve(ROW + content.length * WRITTEN_BYTE);
    return { numbers: numbersOf(before), flags, source: json ? jsonOf(content) : wrapped(content) };
  }

  // Without a copy, only its times can show that it is the same.
  private look(filename: string, before: fs.Stats): Content | null {
    if (this.facts.isTooYoung(before)) return null;
    const flags = KEEPS_LOADER && isQuiet(beginning(filename)) ? Flag.Import : flagsOf(contentOf(fs, filename).toString());
    const after = numbersOf(fs.statSync(filename));
    return numbersOf(before).every((number, i) => number === after[i]) ? { numbers: after, flags: flags | Flag.Apart, source: '' } : null;
  }
}

// From 12.4 on, V8 knows who may import for a script from bytecode, so a guess will do.
const KEEPS_LOADER = parseInt(process.versions.node, 10) >= 22;

function beginning(filename: string): string {
  const descriptor = fs.openSync(filename, fs.constants.O_RDONLY);
  try {
    const bytes = Buffer.alloc(BEGIN_BYTES);
    return bytes.toString('latin1', 0, fs.readSync(descriptor, bytes, 0, BEGIN_BYTES, 0));
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * Spendable CPU time. Reading it takes longer than many pieces of work, so the clock is read first: it never shows
 * less.
 */
class Budget {
  private readonly cpu = process.cpuUsage();
  private readonly begun = process.uptime();
  private idle = 0;
  /** The cost of writing. */
  private reserved = 0;

  constructor(private readonly microseconds: number) {}

  fits(cost: number): boolean {
    const allowed = this.microseconds - this.reserved - cost;
    const passed = (process.uptime() - this.begun) * 1e6;
    if (passed - this.idle <= allowed) return true;
    const { user, system } = process.cpuUsage(this.cpu);
    this.idle = passed - user - system;
    return user + system <= allowed;
  }

  reserve(microseconds: number): void {
    this.reserved += microseconds;
  }
}
