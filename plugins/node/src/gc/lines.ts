// The lines of a recording, "hasten-gc 1"; docs/gc-recorder.md describes them, and core/v8 reads them.
import v8 = require('node:v8');
import type { Collection } from './collector';
import { memoryLimit, semiSpaceMax } from './limits';
import { type Heap, Kind } from './v8';

/** Why a recording ended. */
export type End = 'asked' | 'disk' | 'exit' | 'size' | 'time';

export interface Counts {
  /** Lines of collections, and those among them with the heap before and after. */
  events: number;
  detailed: number;
  /** Collections known to have happened but missing from the file. */
  dropped: number;
  /** Milliseconds without observation. */
  unseen: number;
}

export function header(now: number): string {
  return line({
    hasten_gc: 1,
    pid: process.pid,
    node: process.version,
    v8: process.versions.v8,
    script: process.argv[1] ?? null,
    time: new Date().toISOString(),
    at_ms: milliseconds(now),
    semi_space_max: semiSpaceMax(),
    heap_limit: v8.getHeapStatistics().heap_size_limit,
    memory_limit: memoryLimit(),
  });
}

export function event(collection: Collection): string {
  const { kind, flags, pause, profile, late, to } = collection;
  const always = { gc: KINDS[kind] ?? `kind-${kind}`, at_ms: milliseconds(to), pause_ms: milliseconds(pause), flags: words(flags) };
  if (late) {
    const after = { used: late.used_heap_size, committed: late.total_heap_size, external: late.external_memory };
    return line({ ...always, after, late: true });
  }
  if (!profile) return line(always);
  const before = spaces(profile.beforeGC);
  return line({
    ...always,
    before: sizes(profile.beforeGC),
    after: sizes(profile.afterGC),
    new_before: before.new,
    spaces: spaces(profile.afterGC),
    spaces_before: before,
  });
}

export function gap(from_ms: number, at_ms: number): string {
  return line({ gap: true, from_ms, at_ms });
}

export function end(now: number, why: End, { events, detailed, dropped, unseen }: Counts): string {
  return line({ end: true, at_ms: milliseconds(now), events, detailed, dropped, unseen_ms: milliseconds(unseen), why });
}

const KINDS: Readonly<Partial<Record<number, string>>> = {
  [Kind.Scavenge]: 'scavenge',
  [Kind.MinorMarkSweep]: 'minor-mark-sweep',
  [Kind.MarkCompact]: 'mark-compact',
  [Kind.IncrementalMarking]: 'incremental-marking',
  [Kind.WeakCallbacks]: 'weak-callbacks',
};

// v8::GCCallbackFlags, from the second bit.
const FLAGS = ['construct', 'forced', 'synchronous', 'all-available', 'external', 'idle'];

function words(flags: number): string {
  return flags === 0 ? '' : FLAGS.filter((_, bit) => flags & (2 << bit)).join(',');
}

function sizes({ heapStatistics: { usedHeapSize, totalHeapSize, externalMemory } }: Heap) {
  return { used: usedHeapSize, committed: totalHeapSize, external: externalMemory };
}

type Space = 'new' | 'old' | 'code' | 'map' | 'large' | 'new_large' | 'read_only' | 'other';

// Releases differ in their other spaces: trusted, shared and code's own large objects.
const SPACES: Readonly<Partial<Record<string, Space>>> = {
  new_space: 'new',
  old_space: 'old',
  code_space: 'code',
  map_space: 'map',
  large_object_space: 'large',
  new_large_object_space: 'new_large',
  read_only_space: 'read_only',
};

function spaces({ heapSpaceStatistics }: Heap): Record<Space, number> {
  const sums = { new: 0, old: 0, code: 0, map: 0, large: 0, new_large: 0, read_only: 0, other: 0 };
  for (const { spaceName, spaceUsedSize } of heapSpaceStatistics) sums[SPACES[spaceName] ?? 'other'] += spaceUsedSize;
  return sums;
}

/** Rounded to the precision of times in the file. */
export function milliseconds(time: number): number {
  return Math.round(time * 1000) / 1000;
}

/** An object as a line. */
export function line(content: object): string {
  return `${JSON.stringify(content)}\n`;
}
