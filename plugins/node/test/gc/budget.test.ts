// What the recorder may spend, and what it does about profilers that keep costing.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Budget } from '../../src/gc/budget';
import { Profiles } from '../../src/gc/profiles';
import { type GcEntry, Kind } from '../../src/gc/v8';

/** A program represented only by its CPU time. */
function program(t: TestContext): { budget: Budget; second: (cpu: number) => void } {
  let spent = 0;
  t.mock.method(process, 'cpuUsage', () => ({ user: spent, system: 0 }));
  const budget = new Budget();
  budget.reset();
  return { budget, second: (cpu) => { spent += cpu; budget.refill(); } };
}

test('a debt for noticing is paid before anybody looks again', (t) => {
  const { budget, second } = program(t);
  budget.spend(20, 0);
  second(1_000_000);
  assert.equal(budget.isExhausted, false, 'a little may be owed');
  budget.spend(40, 0);
  second(1_000_000);
  assert.equal(budget.isExhausted, true);
  assert.equal(budget.allowsRun, false);
  let rests = 0;
  for (; budget.isExhausted && rests < 100; rests += 1) second(1_000_000);
  // 60 collections of 270 µs, of which 3500 µs are paid per second; two seconds have passed.
  assert.equal(rests, 3);
});

test('a debt that cannot be paid is forgotten after a minute', (t) => {
  const { budget, second } = program(t);
  budget.spend(4000, 0);
  let rests = 0;
  do second(0);
  while (budget.isExhausted && (rests += 1) < 1000);
  assert.ok(rests >= 59 && rests <= 62, `${rests}`);
});

test('measuring ends where its budget does, and begins when there is enough for a run', (t) => {
  const { budget, second } = program(t);
  assert.equal(budget.allowsRun, true, 'a short recording has something to show');
  for (let i = 0; i < 40; i += 1) budget.spend(1, 2);
  assert.equal(budget.isLeft, false);
  let rests = 0;
  for (; !budget.allowsRun && rests < 100; rests += 1) second(1_000_000);
  assert.ok(rests > 1 && rests < 20, `${rests}`);
});

/** The sizes of the buffers created from now on. */
function buffers(t: TestContext): number[] {
  const sizes: number[] = [];
  const original = globalThis.ArrayBuffer;
  globalThis.ArrayBuffer = class extends original {
    constructor(bytes: number) {
      super(0);
      sizes.push(bytes);
    }
  } as ArrayBufferConstructor;
  t.after(() => { globalThis.ArrayBuffer = original; });
  return sizes;
}

const entries = (kind: Kind, count: number): GcEntry[] =>
  Array.from({ length: count }, () => ({ detail: { kind, flags: 0 }, duration: 1, startTime: performance.now() }) as unknown as GcEntry);

/** With a profiler that has become old and been stopped. */
function lingering(): Profiles {
  const profiles = new Profiles();
  profiles.start();
  profiles.follow(entries(Kind.MarkCompact, 1));
  profiles.read([]);
  assert.equal(profiles.lingering, 1);
  return profiles;
}

test('where somebody waits for a profiler that lingers, V8 is made to mark after a thousand of its reports', (t) => {
  const profiles = lingering();
  const sizes = buffers(t);
  profiles.follow(entries(Kind.Scavenge, 1000));
  profiles.hurry();
  assert.deepEqual(sizes, []);
  profiles.follow(entries(Kind.Scavenge, 1));
  profiles.hurry();
  profiles.hurry();
  assert.deepEqual(sizes, [96 * 1024 * 1024]);
  // The next mark-compact takes it.
  profiles.follow(entries(Kind.MarkCompact, 1));
  assert.equal(profiles.lingering, 0);
});

test('where nobody waits, only after four thousand', (t) => {
  const profiles = lingering();
  const sizes = buffers(t);
  profiles.follow(entries(Kind.Scavenge, 4000));
  assert.deepEqual(sizes, []);
  profiles.follow(entries(Kind.Scavenge, 1));
  assert.equal(sizes.length, 1);
});
