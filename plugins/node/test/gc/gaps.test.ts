// If merely noticing collections costs more than the recorder may take, it pauses now and then, and says so.
import assert from 'node:assert/strict';
import { App } from '../support/app';
import { onEach } from '../support/releases';
import { ALONE, isCollection, type Line, preload, recorded, traced, withRecorder } from './recorded';

// A collection per this many milliseconds of CPU time, occasionally a full one, until its own recording has this many
// gaps, or for this many collections.
const work = (milliseconds: number, gaps: number, most: number): string => `
const fs = require('fs');
const folder = process.env.HASTEN_RUNTIME_DIR + '/gc/';
const gaps = () => fs.readFileSync(folder + fs.readdirSync(folder)[0], 'utf8').split('{"gap"').length - 1;
const spent = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
let sum = 0;
let left = ${most};
const turn = () => {
  const begin = spent();
  // Next to nothing is allocated here.
  while (spent() - begin < ${milliseconds}) for (let i = 0; i < 200000; i += 1) sum = (sum + i) | 0;
  if (left % 40 === 0) globalThis.gc();
  else globalThis.gc({ type: 'minor' });
  if (--left > 0 && (left % 20 > 0 || gaps() < ${gaps})) setImmediate(turn);
};
turn();
`;

const lengths = (gaps: Line[]): number => gaps.reduce((sum, gap) => sum + gap['at_ms'] - gap['from_ms'], 0);

onEach('a program that collects very often is looked at now and then', async (release, t) => {
  const app = withRecorder(App.create(t, { 'main.js': work(10, 2, 6000) }));
  const args = ['--expose-gc', '--trace-gc', ...preload(app), 'main.js'];
  const { code, stderr, stdout } = await app.run(release, args, { ...ALONE, env: { HASTEN_NODE_GC: 'record' } });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  const lines = recorded(app);
  const gaps = lines.filter((line) => line['gap']);
  const last = lines.at(-1);
  assert.ok(gaps.length >= 2, JSON.stringify(last));
  assert.ok(Math.abs(lengths(gaps) - last?.['unseen_ms']) < 0.01);
  // In order of time: nothing is reported inside a gap, and its two sides are there.
  const times = lines.slice(1).flatMap((line) => [line['from_ms'] ?? line['at_ms'], line['at_ms']] as number[]);
  assert.deepEqual(times, times.slice().sort((a, b) => a - b));
  assert.ok(lines.findIndex(isCollection) < lines.indexOf(gaps[0] as Line));
  // What is observed is complete, except for collections at the edges of the gaps.
  const begin = lines[0]?.['at_ms'] as number;
  const isSeen = (at: number): boolean => at > begin && !gaps.some((gap) => at > gap['from_ms'] && at < gap['at_ms']);
  const expected = traced(stdout).filter(({ at }) => isSeen(at)).length;
  const found = lines.filter(isCollection).length;
  assert.ok(Math.abs(found - expected) <= 3 + 3 * gaps.length + expected / 20, `${found} of ${expected}`);
  assert.ok(traced(stdout).length > expected + 20, 'many happened in the gaps');
  assert.ok(last?.['detailed'] > 5, JSON.stringify(last));
}, { only: [20, 22] });

onEach('a program that collects seldom is looked at all the time', async (release, t) => {
  const app = withRecorder(App.create(t, { 'main.js': work(150, 1, 30) }));
  await app.run(release, ['--expose-gc', ...preload(app), 'main.js'], { ...ALONE, env: { HASTEN_NODE_GC: 'record' } });
  const lines = recorded(app);
  assert.equal(lines.filter((line) => line['gap']).length, 0);
  assert.equal(lines.at(-1)?.['unseen_ms'], 0);
  assert.ok(lines.filter(isCollection).length >= 29);
}, { only: [22] });
