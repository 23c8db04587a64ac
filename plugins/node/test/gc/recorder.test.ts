// The recording matches V8's own account, in every release.
import assert from 'node:assert/strict';
import { App, type Owner } from '../support/app';
import { eager } from '../support/places';
import { onEach, type Release } from '../support/releases';
import { ALONE, isCollection, type Line, preload, recorded, traced, withRecorder } from './recorded';

// Allocates for a while after the start and before the end of the program, in milliseconds. Some of it lives long.
const work = (behind: number, before: number): string => `
const kept = [];
const turn = (n) => {
  const rows = [];
  for (let i = 0; i < 40000; i += 1) rows.push({ id: i, name: 'row ' + i, tags: [n, i] });
  kept[n % 8] = rows;
  if (n < 60) setImmediate(turn, n + 1);
  else setTimeout(() => {}, ${before});
};
setTimeout(turn, ${behind}, 0);
`;

async function run(release: Release, t: Owner, script: string, options: string[] = []): Promise<{ output: string; lines: Line[] }> {
  const app = withRecorder(App.create(t, { 'main.js': script }), eager);
  const args = [...options, ...preload(app), 'main.js'];
  const { code, stderr, stdout } = await app.run(release, args, { ...ALONE, env: { HASTEN_NODE_GC: 'record' } });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  return { output: stdout, lines: recorded(app) };
}

const total = (pauses: number[]): number => pauses.reduce((sum, pause) => sum + pause, 0);

// The difference between the pauses of a typical pair. A busy machine occasionally interrupts the program where only
// one of the two measures; an error in the measurement itself shows in most pairs.
function difference(found: number[], expected: number[]): number {
  const pairs = found.map((pause, index) => Math.abs(pause / (expected[index] ?? 0) - 1));
  return pairs.sort((a, b) => a - b)[pairs.length >> 1] ?? 1;
}

onEach('as many collections and as long as V8 traces', async (release, t) => {
  // The program is quiet after the recording's beginning and before its end, so there is no doubt which collections
  // belong to it.
  const { lines, output } = await run(release, t, work(500, 1000), ['--trace-gc']);
  const last = lines.at(-1);
  const begin = lines[0]?.['at_ms'] as number;
  const end = (last?.['at_ms'] as number) - 500;
  const all = traced(output).filter(({ at }) => at > begin);
  const expected = all.filter(({ at }) => at < end);
  const collections = lines.filter(isCollection);
  const found = collections.filter((line) => line['at_ms'] < end);
  assert.ok(expected.length > 10, output);
  assert.equal(found.length, expected.length, output);
  // One that happens while the program ends is counted, but its event does not arrive; V8 may make another when nobody
  // can count any more.
  const heard = collections.length + last?.['dropped'];
  assert.ok(heard >= expected.length && heard <= all.length, `${heard} of ${all.length}\n${output}`);
  assert.equal(last?.['events'], lines.length - 2);
  const off = difference(found.map((line) => line['pause_ms']), expected.map(({ pause }) => pause));
  assert.ok(off <= 0.1, `half of the pauses differ by ${off} or more`);
});

onEach('the heap before and after is the sum of its spaces', async (release, t) => {
  // V8 reads the sum and its parts one after another. Its threads would sweep meanwhile; without them a marking step
  // may still intervene.
  const { lines } = await run(release, t, work(0, 100), ['--single-threaded-gc']);
  const measured = lines.filter((line) => line['before']);
  const last = lines.at(-1);
  assert.ok(measured.length > 3);
  assert.equal(measured.length, last?.['detailed']);
  let exact = 0;
  for (const line of measured) {
    for (const [spaces, { used }] of [[line['spaces_before'], line['before']], [line['spaces'], line['after']]]) {
      const sum = total(Object.values(spaces as Record<string, number>));
      if (sum === used) exact++;
      assert.ok(Math.abs(sum - used) <= used / 10, `${sum} in spaces, ${used} in all`);
    }
    assert.equal(line['new_before'], line['spaces_before'].new);
    assert.ok(line['before'].committed >= line['before'].used);
  }
  assert.ok(exact > measured.length, `${exact} of ${2 * measured.length} are exact`);
  const times = lines.filter((line) => line['gc']).map((line) => line['at_ms'] as number);
  assert.deepEqual(times, times.slice().sort((a, b) => a - b));
  // Neighbours match: what was young after a collection is there before the next.
  const collections = lines.filter(isCollection);
  for (const [index, line] of collections.slice(1).entries()) {
    const young = collections[index]?.['spaces']?.new ?? 0;
    assert.ok(!line['before'] || line['new_before'] >= young, `${young} in ${JSON.stringify(line)}`);
  }
});

onEach('the first line says what was recorded', async (release, t) => {
  const { lines } = await run(release, t, 'globalThis.gc({ type: "major" });', ['--expose-gc', '--max-semi-space-size=8']);
  const [head, ...rest] = lines as [Line, ...Line[]];
  assert.equal(head['hasten_gc'], 1);
  assert.match(head['node'], new RegExp(`^v${release.major}\\.`));
  assert.match(head['script'], /\/main\.js$/);
  assert.equal(head['semi_space_max'], 8 * 1024 * 1024);
  assert.ok(head['heap_limit'] > 1e8 && Number.isInteger(head['pid']) && typeof head['v8'] === 'string');
  assert.ok(Math.abs(Date.parse(head['time']) - Date.now()) < 3_600_000);
  assert.deepEqual([rest.at(-1)?.['end'], rest.at(-1)?.['why']], [true, 'exit']);
});

onEach('a collection that was asked for says so', async (release, t) => {
  const { lines } = await run(release, t, 'globalThis.gc(); setTimeout(() => {}, 100);', ['--expose-gc']);
  const full = lines.find((line) => line['gc'] === 'mark-compact');
  assert.ok(full?.['flags'].split(',').includes('forced'), JSON.stringify(lines));
}, { only: [18, 26] });

// A stopped profiler writes 6 KB at each collection until a full one comes, and here none comes by itself. Without a
// bound the first of these programs would grow by gigabytes: every second scavenge would leave one more.
for (const [name, perTurn] of [['one scavenge', 1], ['several scavenges', 5]] as const) {
  onEach(`the recorder's own memory is bounded with ${name} in each turn`, async (release, t) => {
    const script = `
      let left = 9000;
      const turn = () => {
        for (let i = 0; i < ${perTurn}; i += 1) globalThis.gc({ type: 'minor' });
        if ((left -= ${perTurn}) > 0) setImmediate(turn);
        else console.log(process.memoryUsage().rss >> 20);
      };
      turn();`;
    const { lines, output } = await run(release, t, script, ['--expose-gc']);
    assert.ok(lines.length > 9000);
    assert.ok(lines.at(-1)?.['detailed'] > 10);
    assert.ok(Number(output) < 250, `${output} MB`);
  }, { only: [20, 24] });
}
