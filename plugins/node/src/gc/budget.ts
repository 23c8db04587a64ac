// How much of the program's CPU time the recorder takes for itself: by how many collections it measures, and, where even to notice them all costs too
// much, by how long it looks.

// Of the CPU time of the process; 0.5 % is promised. Noticing comes first, and leaves a little for measuring.
const SHARE = 0.004;
const LEAST_SHARE = 0.0005;
const NOTICE_SHARE = 0.0035;
// Microseconds: to notice a collection and write its line; what one profile reports of it; to read that and start another profile. In programs that do
// other things meanwhile, as a profile of their CPU time shows; that is four times and more what bench/recorder.mjs finds in a loop of collections.
const NOTICE_US = 270;
const REPORT_US = 40;
const READ_US = 80;
// A program that does next to nothing may be recorded, too: 0.01 % of a CPU.
const IDLE_US_PER_SECOND = 100;
// What a quiet time leaves for a busy one, and what is enough for a run of collections: only neighbours tell what was allocated between them.
const SAVED_US = 10_000;
const RUN_US = 2_000;
// So much may be owed for noticing before nobody looks any more, and for so many seconds a debt is remembered: a burst must not blind the recorder for long.
const OWED_US = 5_000;
const MEMORY_S = 60;

export class Budget {
  #left = 0;
  #owed = 0;
  // Since the last refill; and how many of those there were without any, while something was owed.
  #noticed = 0;
  #owing = 0;
  #isExhausted = false;
  #cpu = 0;

  reset(): void {
    // A short recording has something to show, too.
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

  /** For these collections, each of which so many profiles reported. */
  spend(collections: number, profiles: number): void {
    this.#noticed += collections;
    this.#owed += collections * NOTICE_US;
    if (profiles === 0) return;
    // Nor for long of the heap.
    this.#left = Math.max(this.#left - collections * (profiles * REPORT_US + READ_US), -SAVED_US);
  }

  /** Whether noticing has cost too much, and not been paid since. */
  get isExhausted(): boolean {
    return this.#isExhausted;
  }

  get isLeft(): boolean {
    return this.#left > 0;
  }

  /** Whether there is enough for several collections in a row. */
  get allowsRun(): boolean {
    return this.#left >= RUN_US && !this.#isExhausted;
  }
}

function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
