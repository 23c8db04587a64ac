// What one process does with its cache, and what it has seen of its modules: the part that every start pays for.
import fs = require('node:fs');
import type * as Vm from 'node:vm';
import type { Catalog } from './catalog';
import type { LoadedModule } from './loader';

/** A module that this process has loaded, for the recorder. */
export interface Seen {
  readonly filename: string;
  /** Its place in the catalog; undefined if it is not there, or not as it is now. */
  readonly file: number | undefined;
  /** Kept where V8 had to compile what the catalog had: the bytecode is still to be had. */
  readonly script: Vm.Script | undefined;
}

/** A request that Node answered: by which module, what, and where it led. */
export type Resolution = readonly [parent: LoadedModule, request: string, filename: string];

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
  seen: Seen[] | null = null;
  resolutions: Resolution[] | null = null;
  /** Called once, when there is something that may be worth recording. */
  onNews: (() => void) | undefined;
  private readonly began = Date.now();
  /** The first module that there may be something to record of, and whether it was the only one. */
  private lone: string | undefined;
  private isLone = true;

  note(filename: string, file: number | undefined, script: Vm.Script | undefined): void {
    this.seen?.push({ filename, file, script });
    if (file !== undefined && !script) return;
    if (this.lone === undefined) this.lone = filename;
    else this.isLone = false;
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
      this.seen = null;
      this.resolutions = null;
    }
  }
}

function isLarge(filename: string): boolean {
  return (fs.statSync(filename, { throwIfNoEntry: false })?.size ?? 0) >= LONE_BYTES;
}
