// Follows the collections of this heap. Kind, flags and pause of each come from a PerformanceObserver; the heap before
// and after comes from profiles, which cost more and are taken as the budget permits. If collections are so frequent
// that merely noticing them costs too much, observation pauses for some seconds. docs/gc-recorder.md has the
// measurements.
import { PerformanceObserver, performance } from 'node:perf_hooks';
import v8 = require('node:v8');
import { Budget } from './budget';
import { Profiles } from './profiles';
import { type GcEntry, Kind, type Profile } from './v8';

export interface Collection {
  readonly kind: Kind;
  readonly flags: number;
  /** When the pause began and ended, in milliseconds since the process started. */
  readonly from: number;
  readonly to: number;
  readonly pause: number;
  readonly profile: Profile | null;
  /** The heap when the program returned to its event loop: for a full collection without a profile. */
  readonly late: v8.HeapInfo | null;
}

/** Receives the collector's findings, in order of time. */
export interface Listener {
  add(collections: readonly Collection[]): void;
  /** Nothing was observed between these two times. */
  gap(from: number, to: number): void;
}

export class Collector {
  readonly #listener: Listener;
  readonly #observer = new PerformanceObserver((list) => this.#observed(list.getEntries() as GcEntry[]));
  readonly #profiles = new Profiles();
  readonly #budget = new Budget();
  #isOn = false;
  // May stay on longer, see #settle.
  #isObserving = false;
  // Events whose profile has not been read yet.
  #waiting: GcEntry[] = [];
  // Since when nothing has been observed, although there are recordings.
  #gap: number | null = null;

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  start(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#budget.reset();
    this.#look();
    this.#profiles.start();
  }

  /** Once a second: the recorder gets its share of the program's CPU time. */
  tick(): void {
    if (!this.#isOn) return;
    this.#budget.refill();
    if (this.#budget.isExhausted) return this.#rest();
    if (this.#gap !== null) {
      this.#look();
      this.#tellGap();
      this.#gap = null;
    }
    if (this.#waiting.length > 0) this.#observed([]);
    if (this.#budget.allowsRun) this.#profiles.start();
  }

  /** Delivers what is known by now, excluding collections in this turn of the event loop. */
  flush(): void {
    if (!this.#isOn) return;
    if (this.#gap !== null) return this.#tellGap();
    this.#follow((this.#observer as PerformanceObserver & { takeRecords(): GcEntry[] }).takeRecords());
    this.#read();
  }

  /** Returns how many collections will never be reported. */
  stop(): number {
    this.flush();
    this.#isOn = false;
    this.#gap = null;
    this.#settle();
    return this.#profiles.unheard;
  }

  /** Collections waiting for their profile. */
  get waiting(): number {
    return this.#waiting.length;
  }

  #observed(entries: GcEntry[]): void {
    // The program's error handlers must not see our errors.
    try {
      this.#follow(entries);
      if (!this.#isOn) return this.#settle();
      if (this.#profiles.isWorthKeeping && this.#budget.isLeft) return;
      const wasRunning = this.#profiles.isRunning;
      this.#read();
      if (wasRunning ? this.#budget.isLeft : this.#budget.allowsRun) this.#profiles.start();
    } catch {
      this.#isOn = this.#isObserving = false;
      this.#observer.disconnect();
    }
  }

  #follow(entries: GcEntry[]): void {
    this.#budget.spend(entries.length, this.#profiles.writing);
    this.#profiles.follow(entries);
    if (this.#isOn) this.#waiting.push(...entries);
  }

  #read(): void {
    const ready = this.#waiting;
    this.#waiting = [];
    const profiles = this.#profiles.read(ready);
    const last = ready.length - 1;
    if (last >= 0) this.#listener.add(ready.map((entry, index) => collection(entry, profiles[index] ?? null, index === last)));
  }

  #look(): void {
    if (!this.#isObserving) this.#observer.observe({ entryTypes: ['gc'] });
    this.#isObserving = true;
  }

  // While a profiler lingers, its cost is not saved: collections are noticed as before but not measured, until it is
  // gone.
  #rest(): void {
    if (this.#gap !== null) return;
    this.flush();
    this.#settle();
    if (this.#isObserving) this.#profiles.hurry();
    else this.#gap = performance.now();
  }

  #tellGap(): void {
    const now = performance.now();
    this.#listener.gap(this.#gap ?? now, now);
    this.#gap = now;
  }

  // A lingering profiler costs until the next mark-compact, so we wait for one, and trigger it if need be.
  #settle(): void {
    if (!this.#isObserving || this.#profiles.lingering > 0) return;
    this.#isObserving = false;
    this.#observer.disconnect();
  }
}

function collection(entry: GcEntry, profile: Profile | null, isLast: boolean): Collection {
  const { detail, duration, startTime } = entry;
  return {
    kind: detail.kind,
    flags: detail.flags,
    from: startTime,
    to: startTime + duration,
    // The observer's figure includes the profiler's writing.
    pause: profile ? profile.cost / 1000 : duration,
    profile,
    late: !profile && isLast && detail.kind === Kind.MarkCompact ? v8.getHeapStatistics() : null,
  };
}
