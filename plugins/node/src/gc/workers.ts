// CPU profiles of worker threads, through the inspector session of the main thread: nothing is loaded in a worker, and
// one that is busy answers as well. Their answers come at any moment, within the program's own functions too, so they
// are only kept then, and read later.
import type * as Inspector from 'node:inspector';
import { performance } from 'node:perf_hooks';
import { line, milliseconds } from './lines';
import { LEAST_MS, place, type Profile, RARELY, Stacks } from './stacks';

// Each has its own thread of V8 that takes samples.
const MOST_WORKERS = 32;
const MOST_NAME = 100;
// Of each, before its profile is replaced.
const MOST_SAMPLES = 100_000;

interface Attached {
  readonly sessionId: string;
  readonly workerInfo: { readonly workerId: string; readonly title: string; readonly url: string };
}

export class Workers {
  /** How many were not sampled, because there were too many. */
  unsampled = 0;
  readonly #session: Inspector.Session;
  readonly #interval: number;
  readonly #offset: number;
  readonly #threads = new Map<string, Thread>();
  // Those that ended, and have something to tell.
  readonly #gone: Thread[] = [];
  #whenLast: (() => void) | null = null;

  /** `offset` is from V8's clock to milliseconds since the process started. */
  constructor(session: Inspector.Session, interval: number, offset: number) {
    this.#session = session;
    this.#interval = interval;
    this.#offset = offset;
    const on = (event: string, handle: (params: never) => void) =>
      session.on(event, ({ params }: { params: never }) => {
        try {
          handle(params);
        } catch {
          // The program must not see this error.
        }
      });
    on('NodeWorker.attachedToWorker', (attached: Attached) => this.#attach(attached));
    on('NodeWorker.detachedFromWorker', ({ sessionId }: Attached) => this.#detach(sessionId));
    on('NodeWorker.receivedMessageFromWorker', ({ sessionId, message }: { sessionId: string; message: string }) => this.#threads.get(sessionId)?.keep(message));
    // Without an answer to wait for: workers that are there announce themselves.
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  }

  get samples(): number {
    return this.#all().reduce((sum, thread) => sum + thread.samples, 0);
  }

  /** Once a second: lines that are ready. */
  tick(): string[] {
    for (const thread of this.#threads.values()) thread.turn();
    return this.#lines();
  }

  /** Asks for what is left, and calls `then` when all have answered; false if there is nothing to wait for. */
  last(then: () => void): boolean {
    if (this.#threads.size === 0) return false;
    this.#whenLast = then;
    for (const thread of this.#threads.values()) thread.stop();
    return true;
  }

  /** The last lines of all. */
  end(why: string): string[] {
    this.#whenLast = null;
    return [...this.#lines(), ...this.#all().flatMap((thread) => thread.end(why))];
  }

  #all(): Thread[] {
    return [...this.#gone, ...this.#threads.values()];
  }

  #lines(): string[] {
    const lines = this.#all().flatMap((thread) => thread.lines());
    for (const thread of this.#gone.splice(0)) lines.push(...thread.end('exit'));
    return lines;
  }

  #attach({ sessionId, workerInfo }: Attached): void {
    if (this.#threads.size >= MOST_WORKERS) {
      this.unsampled += 1;
      return;
    }
    const post = (id: number, method: string, params: object = {}) => {
      this.#session.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id, method, params }) });
    };
    const thread = new Thread(workerInfo, this.#interval, this.#offset, post, () => this.#settle());
    this.#threads.set(sessionId, thread);
    thread.begin();
  }

  #detach(sessionId: string): void {
    const thread = this.#threads.get(sessionId);
    if (!thread) return;
    this.#threads.delete(sessionId);
    this.#gone.push(thread);
    this.#settle();
  }

  #settle(): void {
    if (!this.#whenLast || [...this.#threads.values()].some((thread) => thread.isAwaited)) return;
    const then = this.#whenLast;
    this.#whenLast = null;
    // Not within whatever the program is doing.
    setTimeout(then, 0).unref();
  }
}

class Thread {
  readonly #stacks: Stacks;
  readonly #whose: { readonly worker: number };
  readonly #told: object;
  readonly #interval: number;
  readonly #offset: number;
  readonly #post: (id: number, method: string, params?: object) => void;
  readonly #settle: () => void;
  #answers: string[] = [];
  #began = 0;
  #longest = LEAST_MS;
  // Profiles that were asked for, and are not here yet.
  #pending = 0;
  #hasHeader = false;

  constructor(
    { workerId, title, url }: Attached['workerInfo'],
    interval: number,
    offset: number,
    post: (id: number, method: string, params?: object) => void,
    settle: () => void,
  ) {
    // `[worker 3] its name`: the number that the program knows it by.
    const [, id, name] = /^\[worker (\d+)\] ?(.*)$/s.exec(title) ?? [null, workerId, ''];
    this.#whose = { worker: Number(id) };
    this.#told = { name: (name as string).slice(0, MOST_NAME), script: place(url) };
    this.#stacks = new Stacks(this.#whose);
    this.#interval = interval;
    this.#offset = offset;
    this.#post = post;
    this.#settle = settle;
  }

  get samples(): number {
    return this.#stacks.samples;
  }

  get isAwaited(): boolean {
    return this.#pending > 0;
  }

  begin(): void {
    this.#post(OTHER_ID, 'Profiler.enable');
    this.#post(OTHER_ID, 'Profiler.setSamplingInterval', { interval: this.#interval });
    this.#start();
  }

  /** Begins a new profile if this one is long enough. */
  turn(): void {
    if (this.isAwaited || performance.now() - this.#began < Math.min(this.#longest, (MOST_SAMPLES * this.#interval) / 1000)) return;
    this.stop();
    this.#start();
  }

  stop(): void {
    this.#pending += 1;
    this.#post(STOP_ID, 'Profiler.stop');
  }

  keep(message: string): void {
    // The start walks the heap: the longer that takes, the longer is the profile.
    if (isAnswer(message, START_ID)) this.#longest = Math.max(LEAST_MS, (performance.now() - this.#began) * RARELY);
    // A profile, or an error. It is read later.
    if (!isAnswer(message, STOP_ID)) return;
    this.#answers.push(message);
    this.#pending -= 1;
    this.#settle();
  }

  lines(): string[] {
    const answers = this.#answers;
    this.#answers = [];
    return answers.flatMap((answer) => {
      const profile = (JSON.parse(answer) as { result?: { profile?: Profile } }).result?.profile;
      return profile ? [...this.#header(profile), ...this.#of(profile)] : [];
    });
  }

  end(why: string): string[] {
    const { cut, samples } = this.#stacks;
    return this.#hasHeader ? [line({ cpu: 'end', ...this.#whose, at_ms: milliseconds(performance.now()), samples, cut, why })] : [];
  }

  #start(): void {
    this.#began = performance.now();
    this.#post(START_ID, 'Profiler.start');
  }

  #header({ startTime }: Profile): string[] {
    if (this.#hasHeader) return [];
    this.#hasHeader = true;
    const at_ms = milliseconds(startTime / 1000 + this.#offset);
    return [line({ cpu: 'start', ...this.#whose, version: 1, at_ms, interval_us: this.#interval, thread: 'worker', ...this.#told })];
  }

  // The first sample finds V8 still busy with the start.
  #of(profile: Profile): string[] {
    const first = profile.startTime + (profile.timeDeltas[0] ?? 0);
    return this.#stacks.lines(profile, (first + 1) / 1000 + this.#offset, this.#offset);
  }
}

const OTHER_ID = 1;
const STOP_ID = 2;
const START_ID = 3;

// Without reading it: errors have their number at the end.
function isAnswer(message: string, id: number): boolean {
  return message.startsWith(`{"id":${id},`) || message.endsWith(`,"id":${id}}`);
}
