// The stacks of a CPU profile, as lines of a recording. V8 numbers functions and stacks anew in each of its profiles;
// here both keep their numbers, so that a long recording holds each of them once.
import { milliseconds } from './lines';

/** What V8's profiler knows of one stack; `node` is its innermost function's. */
interface Node {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number; readonly columnNumber: number };
  readonly children?: readonly number[];
}

/** What `Profiler.stop` returns; times in microseconds. */
export interface Profile {
  readonly nodes: readonly Node[];
  readonly startTime: number;
  readonly endTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

// The start of a profile walks the heap, which stops the thread for as long as that takes: it may happen once in this many
// times its own length.
export const RARELY = 400;
export const LEAST_MS = 10_000;

// Beyond these numbers the samples still count, as those of a function without its callers, or of OTHER.
const MOST_FUNCTIONS = 5000;
const MOST_NODES = 20_000;
const LONGEST_NAME = 200;
const LONGEST_URL = 400;
// Letters, which are three bytes at most: hasten reads lines up to 64 KiB.
const LONGEST_LINE = 16 * 1024;
const OTHER = ['(other functions)', '', 0, 0] as const;
const ROOT = 1;

export class Stacks {
  samples = 0;
  /** How many stacks were cut for lack of room. */
  cut = 0;
  readonly #functions = new Map<string, number>();
  readonly #nodes = new Map<number, number>();
  #newFunctions: (readonly [string, string, number, number])[] = [];
  #newNodes: number[] = [];
  #nodeCount = 0;
  readonly #whose: object;

  /** `whose` is in every line. */
  constructor(whose: object = {}) {
    this.#whose = whose;
  }

  /** The lines of a profile, without what V8 sampled before `begin`; `offset` is from V8's clock to milliseconds since the process started. */
  lines(profile: Profile, begin: number, offset: number): string[] {
    const numbers = this.#number(profile.nodes);
    const { from, runs } = this.#runs(profile, numbers, begin * 1000 - offset * 1000);
    const functions = pieces(this.#newFunctions, 1, (first, some) => ({ cpu: 'functions', ...this.#whose, first: this.#functions.size - this.#newFunctions.length + first, functions: some }));
    const nodes = pieces(this.#newNodes, 2, (first, some) => ({ cpu: 'nodes', ...this.#whose, first: ROOT + this.#nodeCount - this.#newNodes.length / 2 + first / 2, nodes: some }));
    this.#newFunctions = [];
    this.#newNodes = [];
    return [...functions, ...nodes, ...samples(runs, from / 1000 + offset, this.#whose)];
  }

  // V8 lists parents before their children.
  #number(nodes: readonly Node[]): Map<number, number> {
    const parents = new Map<number, number>();
    for (const { id, children } of nodes) for (const child of children ?? []) parents.set(child, id);
    const numbers = new Map<number, number>();
    for (const node of nodes) {
      const parent = parents.get(node.id);
      numbers.set(node.id, this.#node(parent === undefined ? 0 : (numbers.get(parent) ?? ROOT), this.#function(node.callFrame)));
    }
    return numbers;
  }

  #node(parent: number, named: number): number {
    const key = parent * (MOST_FUNCTIONS + 1) + named;
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    // The root's children have room beyond the limit: there are no more of them than functions.
    if (this.#nodeCount >= MOST_NODES && parent > ROOT) {
      this.cut += 1;
      return this.#node(ROOT, named);
    }
    this.#nodeCount += 1;
    this.#nodes.set(key, this.#nodeCount);
    this.#newNodes.push(parent, named);
    return this.#nodeCount;
  }

  #function({ functionName, url, lineNumber, columnNumber }: Node['callFrame']): number {
    const named = [functionName.slice(0, LONGEST_NAME), place(url), lineNumber + 1, columnNumber + 1] as const;
    const isFull = this.#functions.size >= MOST_FUNCTIONS;
    const key = named.join('\n');
    const known = this.#functions.get(key) ?? (isFull ? this.#functions.get(OTHER.join('\n')) : undefined);
    if (known !== undefined) return known;
    const added = isFull ? OTHER : named;
    const number = this.#functions.size;
    this.#functions.set(added.join('\n'), number);
    this.#newFunctions.push(added);
    return number;
  }

  // Consecutive samples of one stack are one run: its number, how many they are, and their time in microseconds. A sample is worth the time to the next.
  #runs({ startTime, endTime, samples, timeDeltas }: Profile, numbers: Map<number, number>, begin: number): { from: number; runs: number[] } {
    const runs: number[] = [];
    let at = startTime;
    let from = endTime;
    for (let i = 0; i < samples.length; i += 1) {
      at += timeDeltas[i] ?? 0;
      if (at < begin) continue;
      if (runs.length === 0) from = at;
      const length = Math.max((i + 1 < samples.length ? at + (timeDeltas[i + 1] ?? 0) : endTime) - at, 0);
      const number = numbers.get(samples[i] as number) ?? ROOT;
      const last = runs.length - 3;
      if (last >= 0 && runs[last] === number) {
        (runs[last + 1] as number) += 1;
        (runs[last + 2] as number) += length;
      } else runs.push(number, 1, length);
      this.samples += 1;
    }
    return { from, runs };
  }
}

// Names of functions and of scripts are all that leaves the process. The address of a script made from text contains the text, and a query may contain anything.
export function place(url: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme === 'data' || scheme === 'blob') return `${scheme}:`;
  const plain = scheme && url.includes('://') ? (url.split(/[?#]/, 1)[0] as string) : url;
  return plain.slice(0, LONGEST_URL);
}

function samples(runs: readonly number[], from: number, whose: object): string[] {
  let at = from;
  return pieces(runs, 3, (_, some) => {
    const begin = milliseconds(at);
    for (let i = 2; i < some.length; i += 3) at += (some[i] as number) / 1000;
    return { cpu: 'samples', ...whose, from_ms: begin, runs: some };
  });
}

// As many lines as it takes, each with a multiple of `step` items.
function pieces<T>(items: readonly T[], step: number, make: (first: number, some: readonly T[]) => object): string[] {
  const lines: string[] = [];
  let first = 0;
  let length = 0;
  for (let i = 0; i < items.length; i += step) {
    const size = JSON.stringify(items.slice(i, i + step)).length;
    if (length + size > LONGEST_LINE) {
      lines.push(`${JSON.stringify(make(first, items.slice(first, i)))}\n`);
      first = i;
      length = 0;
    }
    length += size;
  }
  if (first < items.length) lines.push(`${JSON.stringify(make(first, items.slice(first)))}\n`);
  return lines;
}
