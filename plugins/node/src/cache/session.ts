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

/** A program of one module that is no larger than this has nothing worth recording, and is not to pay for the question. */
const LONE_BYTES = 64 * 1024;

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
  /** Called once, when there may be something to record. */
  onNews: (() => void) | undefined;
  private isLone = true;

  note(filename: string, file: number | undefined, script: Vm.Script | undefined): void {
    this.seen?.push({ filename, file, script });
    if (!this.onNews || (file !== undefined && !script)) return;
    if (!this.isLone || isLarge(filename)) {
      this.onNews();
      this.onNews = undefined;
    }
    this.isLone = false;
  }
}

function isLarge(filename: string): boolean {
  return (fs.statSync(filename, { throwIfNoEntry: false })?.size ?? 0) >= LONE_BYTES;
}
