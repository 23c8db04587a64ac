// How much of the program's CPU time the recorder takes for itself: controlled by how many collections it measures and,
// where merely noticing them all costs too much, by how long it observes.

// A share of the process's CPU time; 0.5 % is promised. Noticing comes first, and leaves a little for measuring.
const SHARE = 0.004;
const LEAST_SHARE = 0.0005;
const NOTICE_SHARE = 0.0035;
// Microseconds: to notice a collection and write its line; for one profile's report of it; to read that and start
// another profile. Measured in programs that do other work meanwhile, by CPU profiles; that is at least four times what
// bench/recorder.mjs finds in a loop of collections.
const NOTICE_US = 270;
const REPORT_US = 40;
const READ_US = 80;
// A nearly idle program may be recorded, too: 0.01 % of a CPU.
const IDLE_US_PER_SECOND = 100;
// What a quiet time saves up for a busy one, and what suffices for a run of collections: only consecutive ones show
// what was allocated between them.
const SAVED_US = 10_000;
const RUN_US = 2_000;
// How much noticing may owe before observation stops, and for how many seconds a debt is remembered: a burst must not
// blind the recorder for long.
const OWED_US = 5_000;
const MEMORY_S = 60;

export class Budget {
  #left = 0;
  #owed = 0;
  // Since the last refill; and how many refills there were without any while something was owed.
  #noticed = 0;
  #owing = 0;
  #isExhausted = false;
  #cpu = 0;

  reset(): void {
    // Even a short recording has something to show.
    this.#left = RUN_US;
    this.#owed = this.#noticed = this.#owing = 0;
    this.#isExhausted = false;
    this.#cpu = cpuTime();
  }

  /** Once a second. */
  refill(): void {
    const cpu = cpuTime();
    const spent = cpu - this.#cpu;
    const paid = Math.min(this.#owed, Math.max(spent * NOTICE_SHARE, IDLE_US_PER_SECOND));
    const share = Math.max(spent * SHARE - paid, spent * LEAST_SHARE, IDLE_US_PER_SECOND);
    this.#cpu = cpu;
    this.#left = Math.min(this.#left + share, SAVED_US);
    this.#owing = this.#isExhausted && this.#noticed === 0 ? this.#owing + 1 : 0;
    this.#noticed = 0;
    this.#owed = this.#owing > MEMORY_S ? 0 : this.#owed - paid;
    this.#isExhausted = this.#isExhausted ? this.#owed > 0 : this.#owed > OWED_US;
  }

  /** Accounts for these collections, each reported by this many profiles. */
  spend(collections: number, profiles: number): void {
    this.#noticed += collections;
    this.#owed += collections * NOTICE_US;
    if (profiles === 0) return;
    // Not for long with heap sizes either.
    this.#left = Math.max(this.#left - collections * (profiles * REPORT_US + READ_US), -SAVED_US);
  }

  /** Whether noticing has cost too much, and the debt is still unpaid. */
  get isExhausted(): boolean {
    return this.#isExhausted;
  }

  get isLeft(): boolean {
    return this.#left > 0;
  }

  /** Whether there is enough for several consecutive collections. */
  get allowsRun(): boolean {
    return this.#left >= RUN_US && !this.#isExhausted;
  }
}

function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
