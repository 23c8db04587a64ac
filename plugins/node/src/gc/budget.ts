// How much of the program's CPU time the recorder takes for itself. That every collection is noticed is not at its discretion; how many are measured is.

// Of the CPU time of the process; 0.5 % is promised. The second is what measuring gets where noticing alone takes the first.
const SHARE = 0.003;
const LEAST_SHARE = 0.0005;
// Microseconds, see bench/recorder.mjs: to notice a collection and write its line; what one profile reports of it; to read that and start another profile.
const NOTICE_US = 45;
const REPORT_US = 30;
const READ_US = 60;
// A program that does next to nothing may be recorded, too: 0.01 % of a CPU.
const IDLE_US_PER_SECOND = 100;
// What a quiet time leaves for a busy one, and what is enough for a run of collections: only neighbours tell what was allocated between them.
const SAVED_US = 10_000;
const RUN_US = 2_000;

export class Budget {
  #left = 0;
  #noticed = 0;
  #cpu = 0;

  reset(): void {
    // A short recording has something to show, too.
    this.#left = RUN_US;
    this.#noticed = 0;
    this.#cpu = cpuTime();
  }

  /** Once a second. */
  refill(): void {
    const cpu = cpuTime();
    const spent = cpu - this.#cpu;
    const share = Math.max(spent * SHARE - this.#noticed * NOTICE_US, spent * LEAST_SHARE, IDLE_US_PER_SECOND);
    this.#cpu = cpu;
    this.#noticed = 0;
    this.#left = Math.min(this.#left + share, SAVED_US);
  }

  /** For these collections, each of which so many profiles reported. */
  spend(collections: number, profiles: number): void {
    this.#noticed += collections;
    if (profiles === 0) return;
    // A burst must not blind the recorder for long.
    this.#left = Math.max(this.#left - collections * (profiles * REPORT_US + READ_US), -SAVED_US);
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
