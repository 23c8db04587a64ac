// How much of the program's CPU time the recorder may take for itself.

// Of the CPU time of the process; 0.5 % is promised, and the figures below are means.
const SHARE = 0.004;
// Microseconds, measured by bench/recorder.mjs: an event of the observer and its line; one profile's two reports; reading a profile and starting another.
const EVENT_US = 40;
const REPORT_US = 30;
const READ_US = 25;
// A program that does next to nothing may still be recorded: 0.05 % of a CPU.
const IDLE_US_PER_SECOND = 500;
const SECOND_US = 1e6;
// What a quiet time leaves for a busy one, and what is enough for a run of collections: only neighbours tell what was allocated between them.
const SAVED_US = 20_000;
const RUN_US = 2_000;

export class Budget {
  #left = 0;
  #cpu = 0;

  reset(): void {
    this.#left = SAVED_US / 2;
    this.#cpu = cpuTime();
  }

  /** Once a second. */
  refill(): void {
    const cpu = cpuTime();
    const share = Math.max((cpu - this.#cpu) * SHARE, IDLE_US_PER_SECOND);
    this.#cpu = cpu;
    this.#left = Math.min(this.#left + share, SAVED_US);
  }

  /** For these events, each of which that many profiles reported. */
  spend(events: number, profiles: number): void {
    const each = EVENT_US + profiles * REPORT_US + (profiles > 0 ? READ_US : 0);
    // A debt of more than a second is forgiven, or a burst would blind the recorder for long.
    this.#left = Math.max(this.#left - events * each, -SHARE * SECOND_US);
  }

  get isLeft(): boolean {
    return this.#left > 0;
  }

  /** Whether there is enough for several collections in a row. */
  get allowsRun(): boolean {
    return this.#left >= RUN_US;
  }
}

function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
