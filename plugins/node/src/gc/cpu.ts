// V8's sampling profile of this thread and of worker threads, through an inspector session of its own: other sessions, a debugger's or the
// program's, are not concerned. Nothing of it exists before a profile is asked for, and nothing remains behind one.
import type * as Inspector from 'node:inspector';
import { performance } from 'node:perf_hooks';
import { line, milliseconds } from './lines';
import { LEAST_MS, type Profile, RARELY, Stacks } from './stacks';
import { Workers } from './workers';

export const LEAST_INTERVAL_US = 100;
export const MOST_INTERVAL_US = 100_000;

// V8 keeps samples until the profile is stopped, so it is replaced before they become many.
const MOST_SAMPLES = 300_000;
// A tree of so many stacks takes tens of megabytes: the next profile is half as long.
const MANY_NODES = 50_000;
const LEAST_MOST_MS = 1000;
// How long the end of a recording waits for workers.
const PATIENCE_MS = 500;

/** Why a profile ended; `client` is gone. */
export type ProfileEnd = 'asked' | 'client' | 'disk' | 'exit' | 'failed' | 'size' | 'time';

export class CpuProfile {
  readonly interval: number;
  readonly #session: Inspector.Session;
  readonly #stacks = new Stacks();
  // From V8's clock, which is that of process.hrtime, to milliseconds since the process started.
  readonly #offset = performance.now() - Number(process.hrtime.bigint()) / 1e6;
  #workers: Workers | null = null;
  #began = 0;
  // How long this profile may be, and any at most.
  #longest = LEAST_MS;
  #most: number;
  #isOver = false;

  private constructor(session: Inspector.Session, interval: number) {
    this.#session = session;
    this.interval = interval;
    this.#most = (MOST_SAMPLES * interval) / 1000;
  }

  /** Starts to take a sample each `interval` microseconds; a text says why that is impossible. */
  static start(interval: number): CpuProfile | string {
    const reason = obstacle();
    if (reason) return reason;
    let session: Inspector.Session | undefined;
    try {
      const { Session } = require('node:inspector') as typeof Inspector;
      session = new Session();
      session.connect();
      const profile = new CpuProfile(session, interval);
      profile.#ask('Profiler.enable');
      profile.#ask('Profiler.setSamplingInterval', { interval });
      profile.#begin();
      profile.#workers = new Workers(session, interval, profile.#offset);
      return profile;
    } catch (error) {
      disconnect(session);
      return `V8's profiler cannot be used: ${(error as Error).message}`;
    }
  }

  get samples(): number {
    return this.#stacks.samples + (this.#workers?.samples ?? 0);
  }

  /** Asks workers for their last samples, and calls `then` when they are there, or have been waited for; false if it may end at once. */
  last(then: () => void): boolean {
    let isOver = false;
    const once = () => {
      if (!isOver) then();
      isOver = true;
    };
    if (!this.#workers?.last(once)) return false;
    setTimeout(once, PATIENCE_MS).unref();
    return true;
  }

  /** The first line of the profile. */
  header(): string {
    return line({ cpu: 'start', version: 1, at_ms: milliseconds(this.#began), interval_us: this.interval, thread: 'main' });
  }

  /** Once a second: lines that are ready. Throws if the profile cannot go on. */
  tick(): string[] {
    if (this.#isOver) return [];
    const workers = this.#workers?.tick() ?? [];
    if (performance.now() - this.#began < this.#longest) return workers;
    const asked = performance.now();
    const lines = this.#take();
    this.#begin();
    this.#spread(performance.now() - asked);
    return [...lines, ...workers];
  }

  /** Ends the profile, whatever happens, and returns its last lines. */
  end(why: ProfileEnd): string[] {
    if (this.#isOver) return [];
    this.#isOver = true;
    let lines: string[] = [];
    try {
      lines = this.#take();
      lines.push(...(this.#workers?.end(why) ?? []));
    } catch {
      why = 'failed';
    } finally {
      disconnect(this.#session);
    }
    const { cut, samples } = this.#stacks;
    const unsampled = this.#workers?.unsampled ?? 0;
    return [...lines, line({ cpu: 'end', at_ms: milliseconds(performance.now()), samples, cut, why, ...(unsampled && { unsampled }) })];
  }

  #begin(): void {
    const asked = performance.now();
    this.#ask('Profiler.start');
    this.#began = performance.now();
    this.#spread(this.#began - asked);
  }

  // How long the next profile may be: the longer, the more its start costs.
  #spread(cost: number): void {
    this.#longest = Math.min(Math.max(LEAST_MS, cost * RARELY), this.#most);
  }

  #take(): string[] {
    const { profile } = this.#ask('Profiler.stop') as { profile: Profile };
    if (profile.nodes.length > MANY_NODES) this.#most = Math.max(this.#longest / 2, LEAST_MOST_MS);
    // The first sample finds V8 still busy with the start, and would be worth all of that.
    return this.#stacks.lines(profile, this.#began + this.interval / 1000, this.#offset);
  }

  // On the session's own thread the answer is there at once.
  #ask(method: string, params: object = {}): unknown {
    let answer: unknown;
    let failure: Error | null = new Error(`${method} was not answered`);
    this.#session.post(method, params, (error, result) => {
      failure = error && new Error(error.message);
      answer = result;
    });
    if (failure) throw failure;
    return answer;
  }
}

// The end of any profile also ends the exact coverage of the whole thread, whoever asked for it.
function obstacle(): string | null {
  if (process.env['NODE_V8_COVERAGE']) return 'it collects coverage (NODE_V8_COVERAGE), which a profile would end';
  if (process.execArgv.includes('--experimental-test-coverage')) return 'it collects coverage, which a profile would end';
  return null;
}

// Also stops the profile, if it is still being taken.
function disconnect(session: Inspector.Session | undefined): void {
  try {
    session?.disconnect();
  } catch {
    // It was not connected.
  }
}
