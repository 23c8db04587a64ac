// All recordings of this process: there may be several, for several clients, and the collections are followed once for
// all of them.
import { Collector } from './collector';
import { CpuProfile, type ProfileEnd } from './cpu';
import type { End } from './lines';
import { Recording } from './recording';
import { openFolder } from './runtime';

const MOST_RECORDINGS = 4;

export class Recorder {
  readonly #collector = new Collector({
    add: (collections) => this.#recordings.forEach((_, recording) => recording.add(collections)),
    gap: (from, to) => this.#recordings.forEach((_, recording) => recording.gap(from, to)),
  });
  // Each with the timer that ends it.
  readonly #recordings = new Map<Recording, NodeJS.Timeout | null>();
  readonly #followers = new Set<() => void>();
  // One at a time: each costs the program on its own.
  #profiled: { readonly recording: Recording; readonly profile: CpuProfile; isLast: boolean } | null = null;
  #clock: NodeJS.Timeout | null = null;

  constructor() {
    process.on('exit', () => this.#endAll('exit'));
  }

  get isRecording(): boolean {
    return this.#recordings.size > 0;
  }

  /** Collections not in the files yet. */
  get waiting(): number {
    return this.#collector.waiting;
  }

  /**
   * Starts a recording of this many seconds, or of the whole life of the process; a text says why that is impossible.
   */
  record(seconds: number | null): Recording | string {
    if (this.#recordings.size >= MOST_RECORDINGS) return `${MOST_RECORDINGS} recordings are under way`;
    const folder = openFolder('gc');
    if (!folder) return 'its runtime folder cannot be used';
    try {
      const recording = new Recording(folder);
      const overdue = seconds === null ? null : setTimeout(() => this.stop(recording, 'time'), seconds * 1000).unref();
      this.#recordings.set(recording, overdue);
      this.#collector.start();
      this.#clock ??= setInterval(() => this.#tick(), 1000).unref();
      return recording;
    } catch (error) {
      return `it cannot write to ${folder}: ${(error as Error).message}`;
    }
  }

  /** Adds a CPU profile with a sample each `interval` microseconds; a text says why that is impossible. */
  profile(recording: Recording, interval: number): string | null {
    if (this.#profiled) return 'a CPU profile of it is under way';
    const profile = CpuProfile.start(interval);
    if (typeof profile === 'string') return profile;
    this.#profiled = { recording, profile, isLast: false };
    recording.profile([profile.header()]);
    return null;
  }

  /** Ends the CPU profile of this recording, which goes on without it. */
  endProfile(recording: Recording, why: ProfileEnd): void {
    const profiled = this.#profiled;
    if (profiled?.recording !== recording) return;
    this.#profiled = null;
    const lines = profiled.profile.end(why);
    recording.samples = profiled.profile.samples;
    recording.profile(lines);
  }

  /** Ends a recording that nobody will read, and removes its file. */
  discard(recording: Recording): void {
    this.stop(recording, 'asked');
    recording.remove();
  }

  /** Ends a recording; one with a CPU profile of worker threads, as soon as they have handed over theirs. */
  stop(recording: Recording, why: End): void {
    if (why === 'exit' || !this.#waits(recording, why)) this.#stop(recording, why);
  }

  #waits(recording: Recording, why: End): boolean {
    const profiled = this.#profiled;
    if (profiled?.recording !== recording) return false;
    if (profiled.isLast) return true;
    try {
      profiled.isLast = profiled.profile.last(() => this.#stop(recording, why));
    } catch {
      // It ends without.
    }
    return profiled.isLast;
  }

  #stop(recording: Recording, why: End): void {
    try {
      this.endProfile(recording, why);
    } catch {
      // As below.
    }
    try {
      if (this.#recordings.size > 1) this.#collector.flush();
      else if (this.#recordings.has(recording)) recording.dropped += this.#collector.stop();
      recording.end(why);
    } catch {
      // The program must not see this error.
    }
    this.#forget(recording);
  }

  /** Calls `follower` about once a second while anything is recorded, and when a recording has ended. */
  follow(follower: () => void): void {
    this.#followers.add(follower);
  }

  unfollow(follower: () => void): void {
    this.#followers.delete(follower);
  }

  #tick(): void {
    try {
      this.#collector.tick();
      this.#tickProfile();
      for (const recording of this.#recordings.keys()) {
        recording.flush();
        if (!recording.why) continue;
        this.endProfile(recording, recording.why);
        this.#forget(recording);
      }
      this.#tell();
    } catch {
      // Nor this one.
      this.#endAll('asked');
    }
  }

  #tickProfile(): void {
    if (!this.#profiled) return;
    const { recording, profile } = this.#profiled;
    try {
      const lines = profile.tick();
      recording.samples = profile.samples;
      recording.profile(lines);
    } catch {
      this.endProfile(recording, 'failed');
    }
  }

  #forget(recording: Recording): void {
    const overdue = this.#recordings.get(recording);
    if (overdue === undefined) return;
    if (overdue) clearTimeout(overdue);
    this.#recordings.delete(recording);
    if (this.#recordings.size === 0) {
      this.#collector.stop();
      if (this.#clock) clearInterval(this.#clock);
      this.#clock = null;
    }
    this.#tell();
  }

  #tell(): void {
    for (const follower of this.#followers) follower();
  }

  #endAll(why: End): void {
    for (const recording of this.#recordings.keys()) this.stop(recording, why);
  }
}
