// The stacks of several of V8's profiles in one: they keep their numbers, and are bounded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Profile, Stacks } from '../../src/gc/stacks';

type Frame = readonly [name: string, url: string, line: number];

/** A profile in which each stack has one sample of a millisecond, from this time on. */
function profile(startTime: number, stacks: readonly (readonly Frame[])[]): Profile {
  const nodes: { id: number; callFrame: Profile['nodes'][number]['callFrame']; children: number[] }[] = [];
  const add = ([functionName, url, lineNumber]: Frame): number => {
    nodes.push({ id: nodes.length + 101, callFrame: { functionName, url, lineNumber, columnNumber: lineNumber }, children: [] });
    return nodes.length - 1;
  };
  add(['(root)', '', -1]);
  const samples = stacks.map((stack) => {
    let at = 0;
    for (const frame of stack) {
      const child = add(frame);
      nodes[at]?.children.push(child + 101);
      at = child;
    }
    return at + 101;
  });
  return { nodes, startTime, endTime: startTime + (samples.length + 1) * 1000, samples, timeDeltas: samples.map(() => 1000) };
}

const parsed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line));

test('functions and stacks keep their numbers from one profile to the next', () => {
  const stacks = new Stacks();
  const [a, b]: Frame[] = [['a', 'file:///app.js?secret=1', 9], ['b', 'data:text/javascript,secret', 0]];
  const first = parsed(stacks.lines(profile(5_000_000, [[a!, b!], [a!], [a!]]), 0, 100));
  assert.deepEqual(first, [
    { cpu: 'functions', first: 0, functions: [['(root)', '', 0, 0], ['a', 'file:///app.js', 10, 10], ['b', 'data:', 1, 1]] },
    { cpu: 'nodes', first: 1, nodes: [0, 0, 1, 1, 2, 2] },
    { cpu: 'samples', from_ms: 5101, runs: [3, 1, 1000, 2, 2, 2000] },
  ]);
  const second = parsed(stacks.lines(profile(6_000_000, [[b!], [a!, b!]]), 6102, 100));
  assert.deepEqual(second, [
    { cpu: 'nodes', first: 4, nodes: [1, 2] },
    { cpu: 'samples', from_ms: 6102, runs: [3, 1, 1000] },
  ]);
  assert.deepEqual([stacks.samples, stacks.cut], [4, 0]);
});

test('too many functions and stacks still count', () => {
  const stacks = new Stacks();
  const frames: Frame[] = Array.from({ length: 6000 }, (_, at) => [`function ${at}`, 'file:///app.js', at]);
  const deep = frames.map((frame, at): Frame[] => [...frames.slice(at % 50, (at % 50) + 5), frame]);
  const found = [0, 1, 2].flatMap((round) => parsed(stacks.lines(profile(round * 1e7, deep), 0, 0)));
  const all = (kind: string, what: string): any[] => found.flatMap((line) => (line.cpu === kind ? line[what] : []));
  assert.equal(all('functions', 'functions').length, 5001);
  assert.ok(all('nodes', 'nodes').length / 2 <= 26_000);
  const runs = all('samples', 'runs');
  const sum = (offset: number) => runs.filter((_, at) => at % 3 === offset).reduce((total, value) => total + value, 0);
  assert.deepEqual([sum(1), sum(2)], [18_000, 18_000_000]);
  for (const line of found) assert.ok(JSON.stringify(line).length < 64 * 1024);
});
