// What one process does with its cache, and what it has seen of its modules: the part that every start pays for.
import fs = require('node:fs');
import type * as Vm from 'node:vm';
import type { Catalog } from './catalog';
import { loader, type LoadedModule } from './loader';

/** A module that this process has loaded, for the recorder. */
export interface Seen {
  readonly filename: string;
  /** Its place in the catalog; undefined if it is not there, or not as it is now. */
  readonly file: number | undefined;
  /** Kept where V8 had to compile what the catalog had: the bytecode is still to be had. */
  readonly script: Vm.Script | undefined;
  /** Whether Node has taken the text for a module, and run it to its end. */
  proven: boolean;
}

/** A request that Node answered: from where, what, and where it led. */
export type Resolution = readonly [directory: string, request: string, filename: string];

/** So many modules, and as many requests, are a start. A program that goes on loading makes others all the time. */
const MOST = 20_000;

/** A program of one module that is no larger than this, or is at its end so soon, has nothing worth recording. To ask how large it is takes 100 µs. */
const LONE_BYTES = 64 * 1024;
const LONE_MILLISECONDS = 5;

/** What happened so far. */
export class Session {
  catalog: Catalog | null = null;
  hits = 0;
  misses = 0;
  resolved = 0;
  unresolved = 0;
  rejected = 0;
  /** For the recorder; null when nothing is recorded (any more). */
  seen: Map<string, Seen> | null = null;
  resolutions: Resolution[] | null = null;
  /** Called once, when there is something that may be worth recording. */
  onNews: (() => void) | undefined;
  /** When the process began, in milliseconds of the clock, and for whom it acted. */
  readonly processBegan = Date.now() - process.uptime() * 1000;
  readonly user = process.geteuid?.();
  /** Where Node looks for packages last. Another list takes its place when the program has Node read NODE_PATH again. */
  readonly globalPaths = loader.globalPaths;
  private readonly began = Date.now();
  private readonly answers = new Map<string, Map<string, string>>();
  /** The first module that there may be something to record of, and whether it was the only one. */
  private lone: string | undefined;
  private isLone = true;

  note(filename: string, file: number | undefined, script: Vm.Script | undefined): void {
    const { seen } = this;
    if (seen && (seen.size < MOST || seen.has(filename))) seen.set(filename, { filename, file, script, proven: false });
    if (file !== undefined && !script) return;
    if (this.lone === undefined) this.lone = filename;
    else if (this.lone !== filename) this.isLone = false;
  }

  prove(filename: string): void {
    const one = this.seen?.get(filename);
    if (one) one.proven = true;
  }

  /** Notes an answer of Node's. The module that asked is not kept: the program may be rid of it. */
  noteAnswer({ filename }: LoadedModule, request: string, answer: string): void {
    const { answers, resolutions } = this;
    if (!resolutions || typeof filename !== 'string' || typeof request !== 'string') return;
    if (resolutions.length >= MOST || loader.globalPaths !== this.globalPaths) return;
    const directory = filename.slice(0, filename.lastIndexOf('/'));
    let known = answers.get(directory);
    if (!known) answers.set(directory, (known = new Map()));
    if (known.get(request) === answer) return;
    known.set(request, answer);
    resolutions.push([directory, request, answer]);
  }

  /** Nothing is recorded any more. */
  forget(): void {
    this.seen = null;
    this.resolutions = null;
    this.answers.clear();
  }

  /** Once the program has run for a while, or is at its end. */
  settle(): void {
    if (!this.onNews || this.lone === undefined) return;
    if (this.isLone && (Date.now() - this.began < LONE_MILLISECONDS || !isLarge(this.lone))) return;
    this.tell(this.onNews);
  }

  private tell(onNews: () => void): void {
    this.onNews = undefined;
    try {
      onNews();
    } catch {
      // A program without a recording is as good as it was.
      this.forget();
    }
  }
}

const { statSync } = fs;

function isLarge(filename: string): boolean {
  return (statSync(filename, { throwIfNoEntry: false })?.size ?? 0) >= LONE_BYTES;
}
