// What one process does with its cache, and what it has seen of its modules: the part that every start pays for.
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
  /** Called once, when there is something to record. */
  onNews: (() => void) | undefined;

  note(filename: string, file: number | undefined, script: Vm.Script | undefined): void {
    this.seen?.push({ filename, file, script });
    if (this.onNews && (file === undefined || script)) {
      this.onNews();
      this.onNews = undefined;
    }
  }
}
