// Reproducible randomness.

export class Chance {
  #state: number;

  constructor(readonly seed: number) {
    this.#state = seed >>> 0;
  }

  /** At least 0, less than 1. */
  number(): number {
    // Mulberry32.
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  }

  below(limit: number): number {
    return Math.floor(this.number() * limit);
  }

  happens(probability: number): boolean {
    return this.number() < probability;
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}
