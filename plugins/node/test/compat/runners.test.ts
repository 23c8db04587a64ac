// Test runners have their own loaders.
import assert from 'node:assert/strict';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

// A runner shows the duration of slow tests.
const times = (text: string): string => text.replace(/ *\(?[\d.]+ ?m?s\b.*/g, '').replace(/duration_ms:? [\d.]+/g, '');

onEach('mocha', async (release, t) => {
  const app = App.create(t, {
    'test/sum.spec.js': "const { sum } = require('../sum');\ndescribe('sum', () => { it('adds', () => require('assert').equal(sum(1, 2), 3)); it('fails', () => require('assert').equal(sum(1, 2), 4)); });\n",
    'sum.js': 'exports.sum = (a, b) => a + b;\n',
  }).usePackages();
  const { plain } = await sameAsPlain(app, release, ['node_modules/mocha/bin/mocha.js'], { normalize: times, starts: 2, served: true });
  assert.match(plain.stdout, /1 passing/);
  assert.match(plain.stdout, /sum\.spec\.js:2:/);
}, { only: [18, 22, 26] });

onEach('jest, with mocks, in its own workers', async (release, t) => {
  const app = App.create(t, {
    'package.json': { name: 'app', jest: { cacheDirectory: '<rootDir>/jest-cache', haste: { enableSymlinks: false } } },
    'sum.js': "exports.sum = (a, b) => a + require('./number')(b);\n",
    'number.js': 'module.exports = Number;\n',
    'a.test.js': "jest.mock('./number', () => (n) => n * 10);\ntest('mocked', () => expect(require('./sum').sum(1, 2)).toBe(21));\n",
    'b.test.js': "test('real', () => expect(require('./sum').sum(1, 2)).toBe(3));\ntest('fails', () => expect(require('./sum').sum(1, 2)).toBe(4));\n",
  }).usePackages();
  const args = ['node_modules/jest/bin/jest.js', '--ci', '--maxWorkers=2', '--rootDir', app.folder];
  // What jest prints only on a busy machine.
  const slow = /^A worker process has failed to exit gracefully|^Jest did not exit|^'This usually means/;
  const lines = (text: string): string[] => times(text).split('\n').map((line) => line.trimEnd());
  const sorted = (text: string): string => lines(text).filter((line) => line && !slow.test(line)).sort().join('\n');
  const { plain } = await sameAsPlain(app, release, args, { normalize: sorted, starts: 2 });
  assert.match(plain.stderr, /1 failed, 2 passed/);
}, { only: [20, 26] });

onEach("Node's own runner", async (release, t) => {
  const app = App.create(t, {
    'sum.test.js': "const test = require('node:test');\ntest('adds', () => require('assert').equal(require('./sum').sum(1, 2), 3));\ntest('fails', () => { throw new Error('as it should'); });\n",
    'sum.js': 'exports.sum = (a, b) => a + b;\n',
  });
  const { plain } = await sameAsPlain(app, release, ['--test', '--test-reporter=tap', 'sum.test.js'], { normalize: times, starts: 2 });
  assert.match(plain.stdout, /# pass 1/);
}, { only: [18, 22, 26] });
