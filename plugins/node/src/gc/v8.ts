// Node's two ways of reporting a collection.
import type { PerformanceEntry } from 'node:perf_hooks';

/** Node's numbers for the kinds of collections. */
export const enum Kind {
  Scavenge = 1,
  MinorMarkSweep = 2,
  MarkCompact = 4,
  IncrementalMarking = 8,
  WeakCallbacks = 16,
}

/** An entry received by a PerformanceObserver. */
export interface GcEntry extends PerformanceEntry {
  readonly detail: { readonly kind: Kind; readonly flags: number };
}

/** One collection in what `GCProfiler.stop()` returns. */
export interface Profile {
  readonly gcType: string;
  /** The pause, in microseconds. */
  readonly cost: number;
  readonly beforeGC: Heap;
  readonly afterGC: Heap;
}

export interface Heap {
  readonly heapStatistics: { readonly usedHeapSize: number; readonly totalHeapSize: number; readonly externalMemory: number };
  readonly heapSpaceStatistics: readonly { readonly spaceName: string; readonly spaceUsedSize: number }[];
}

/** Whether the collection moves young objects towards the old generation. */
export function isMoving(kind: Kind): boolean {
  return kind === Kind.Scavenge || kind === Kind.MinorMarkSweep || kind === Kind.MarkCompact;
}

/** Whether a profile may be of a collection of this kind. */
export function isOfKind(profile: Profile, kind: Kind): boolean {
  const name = { [Kind.Scavenge]: 'Scavenge', [Kind.MarkCompact]: 'MarkSweepCompact', [Kind.IncrementalMarking]: 'IncrementalMarking' }[kind as 1 | 4 | 8];
  return name === undefined || profile.gcType === name;
}
