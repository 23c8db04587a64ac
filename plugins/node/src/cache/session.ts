// One process's use of its cache, and what it has seen of its modules: the part that every start pays for.
import fs = require('node:fs');
import type * as Vm from 'node:vm';
import type { Catalog } from './catalog';
import { loader, type LoadedModule } from './loader';

/** A loaded module, for the recorder. */
export interface Seen {
  readonly filename: string;
  /** Its index in the catalog; undefined if it is missing there, or outdated. */
  readonly file: number | undefined;
  /** Kept if V8 had to compile a text from the catalog: its bytecode is still available. */
  readonly script: Vm.Script | undefined;
  /** Whether Node has accepted the text as a module, and run it to its end. */
  proven: boolean;
}

/** A request that Node answered: its directory, the request, and the resulting file. */
export type Resolution = readonly [directory: string, request: string, filename: string];

/** This many modules, and as many requests, make up a start. A program that keeps loading does so all the time. */
const MOST = 20_000;

/**
 * A program of one module no larger than this, or that ends so soon, has nothing worth recording. Checking its
 * size takes 100 µs.
 */
const LONE_BYTES = 64 * 1024;
const LONE_MILLISECONDS = 5;

/** What has happened so far. */
export class Session {
  catalog: Catalog | null = null;
  hits = 0;
  misses = 0;
  resolved = 0;
  unresolved = 0;
  rejected = 0;
  /** For the recorder; null if nothing is (or will be) recorded. */
  seen: Map<string, Seen> | null = null;
  resolutions: Resolution[] | null = null;
  /** Called once, when there may be something worth recording. */
  onNews: (() => void) | undefined;
  /** When the process began, in milliseconds of the clock, and which user it acted for. */
  readonly processBegan = Date.now() - process.uptime() * 1000;
  readonly user = process.geteuid?.();
  /** Node's last resort for packages. The list is replaced when the program has Node re-read NODE_PATH. */
  readonly globalPaths = loader.globalPaths;
  private readonly began = Date.now();
  private readonly answers = new Map<string, Map<string, string>>();
  /** The first module that may be worth recording, and whether it was the only one. */
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

  /** Notes an answer of Node's. The requesting module is not retained: the program may drop it. */
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

  /** Stops recording. */
  forget(): void {
    this.seen = null;
    this.resolutions = null;
    this.answers.clear();
  }

  /** Called once the program has run for a while, or ends. */
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
      // Without a recording, the program is as good as it was.
      this.forget();
    }
  }
}

const { statSync } = fs;

function isLarge(filename: string): boolean {
  return (statSync(filename, { throwIfNoEntry: false })?.size ?? 0) >= LONE_BYTES;
}
