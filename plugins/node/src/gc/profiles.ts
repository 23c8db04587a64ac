// Heap sizes before and after collections, from v8.GCProfiler. It keeps its data until it is stopped, so it must be
// replaced over and over. But a stopped profiler continues to write, 6 KB at each collection, until its own object is
// collected. It is therefore stopped after one scavenge, when its object is still young and the next scavenge takes it.
// One that has become old by a full collection, or by a second scavenge within one turn of the event loop, lingers
// until the next full collection. After the first such, old ones are used for longer.
import { performance } from 'node:perf_hooks';
import v8 = require('node:v8');
import { type GcEntry, isMoving, isOfKind, Kind, type Profile } from './v8';

// An old profiler is read after this many collections: one megabyte of JSON, about two milliseconds.
const LONG = 150;
// No collection waits longer than this for its profile: a dying program takes unwritten data with it.
const LONG_MS = 5000;
const MOST_LINGERING = 3;
// This many reports of lingering profilers are 24 MB.
const PATIENCE = 4000;
// This many cost more than the full collection that ends them: once observation is to stop, there is no wait for
// another.
const HASTE = 1000;
// The amount of external memory that makes V8 begin to mark, in every release; it is never touched, so it takes none of
// the system's.
const NUDGE_BYTES = 96 * 1024 * 1024;

interface Running {
  readonly profiler: { start(): void; stop(): { statistics: Profile[] } | undefined };
  /** performance.now() around its start. */
  readonly asked: number;
  readonly started: number;
}

const GCProfiler = (v8 as { GCProfiler?: new () => Running['profiler'] }).GCProfiler;

export class Profiles {
  #running: Running | null = null;
  // Collections since its start, and those that aged its object.
  #seen = 0;
  #moves = 0;
  #isOld = false;
  // Profiles whose events have not arrived yet; they began before this.
  #early: Profile[] = [];
  #earlyUntil = 0;
  #lingering = 0;
  #lingered = 0;
  #stopped = 0;

  start(): void {
    if (this.#running || !GCProfiler || this.#lingering >= MOST_LINGERING) return;
    const asked = performance.now();
    const profiler = new GCProfiler();
    profiler.start();
    this.#running = { profiler, asked, started: performance.now() };
    this.#seen = this.#moves = 0;
    this.#isOld = false;
  }

  /** Tracks the effect of collections on the profilers. */
  follow(entries: readonly GcEntry[]): void {
    for (const { detail, startTime } of entries) {
      this.#seen += 1;
      this.#lingered += this.#lingering;
      if (isMoving(detail.kind)) this.#moves += 1;
      if (detail.kind !== Kind.MarkCompact) continue;
      this.#isOld = this.#running !== null;
      if (startTime >= this.#stopped) this.#lingering = this.#lingered = 0;
    }
    this.#isOld ||= this.#moves > 1;
    if (this.#lingered > PATIENCE) this.#nudge();
  }

  /** Somebody is waiting for the lingering profilers. */
  hurry(): void {
    if (this.#lingered > HASTE) this.#nudge();
  }

  /** Whether stopping it now would gain nothing, or leave another one that lingers. */
  get isWorthKeeping(): boolean {
    if (!this.#running) return false;
    const isLong = this.#seen >= LONG || performance.now() - this.#running.started > LONG_MS;
    return this.#moves === 0 || (this.#isOld && this.#lingering > 0 && !isLong);
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** How many profilers write at a collection. */
  get writing(): number {
    // A young one has its predecessor beside it.
    return this.#lingering + (this.#running ? (this.#isOld ? 1 : 2) : 0);
  }

  get lingering(): number {
    return this.#lingering;
  }

  /** Collections seen by a profile without an event yet. */
  get unheard(): number {
    return this.#early.length;
  }

  /** Stops the profiler, and finds the profile of each event; `entries` are all events since the last call. */
  read(entries: readonly GcEntry[]): (Profile | null)[] {
    const early = { profiles: this.#early, until: this.#earlyUntil };
    const running = this.#running;
    const profiles = this.#stop();
    const found = entries.map((entry) => {
      if (early.profiles.length > 0 && entry.startTime < early.until) return take(early.profiles, entry);
      return running && entry.startTime >= running.started ? take(profiles, entry) : null;
    });
    // One that began while the profiler was being started may or may not be in it.
    const isDoubtful = running && entries.some(({ startTime }) => startTime >= running.asked && startTime < running.started);
    this.#early = isDoubtful ? [] : profiles;
    this.#earlyUntil = this.#stopped;
    return isDoubtful ? entries.map(() => null) : found;
  }

  #stop(): Profile[] {
    const running = this.#running;
    if (!running) return [];
    this.#running = null;
    this.#stopped = performance.now();
    const profiles = running.profiler.stop()?.statistics ?? [];
    const moves = profiles.filter((profile) => profile.gcType !== 'IncrementalMarking').length;
    if (this.#isOld || moves > 1 || profiles.some((profile) => profile.gcType === 'MarkSweepCompact')) this.#lingering += 1;
    return profiles;
  }

  #nudge(): void {
    this.#lingered = 0;
    new ArrayBuffer(NUDGE_BYTES);
  }
}

// The next profile; if it is not of this kind, events and profiles are out of step, and no more of these are trusted.
function take(profiles: Profile[], entry: GcEntry): Profile | null {
  const profile = profiles.shift();
  if (profile && isOfKind(profile, entry.detail.kind)) return profile;
  profiles.length = 0;
  return null;
}
