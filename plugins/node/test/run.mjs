// node run.mjs TESTS [FILE [NAME]]: runs the built tests, two files at a time, and reports as `cargo test` does.
import fs from 'node:fs';
import path from 'node:path';
import { run } from 'node:test';

const [folder, file = '', name] = process.argv.slice(2);
const files = fs
  .readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((found) => found.endsWith('.test.js') && found.includes(file))
  .sort()
  .map((found) => path.resolve(folder, found));
if (files.length === 0) throw new Error(`no file of tests has "${file}" in its name`);

const count = { ok: 0, FAILED: 0, ignored: 0 };
const failures = [];
const options = { files, concurrency: 2 };
if (name) options.testNamePatterns = [new RegExp(name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))];
run(options)
  .on('test:pass', (event) => report(event, event.skip === undefined ? 'ok' : 'ignored'))
  .on('test:fail', (event) => report(event, 'FAILED'))
  .on('test:stdout', ({ message }) => process.stdout.write(message))
  .on('end', finish)
  .resume();

function report(event, result) {
  // Suites repeat what their tests say; so do files, unless one could not even be run.
  const isFile = files.includes(path.resolve(event.name));
  const cause = event.details.error?.cause ?? event.details.error;
  if (name && result === 'ignored') return;
  if (event.details.type === 'suite' || (isFile && !(result === 'FAILED' && isOwnFailure(event.details.error)))) return;
  count[result] += 1;
  const label = isFile ? path.relative(folder, event.name) : event.name;
  console.log(`test ${label} ... ${result} <${(event.details.duration_ms / 1000).toFixed(3)}s>`);
  if (result === 'FAILED') failures.push(`---- ${label}\n${cause?.stack ?? cause}\n`);
}

function isOwnFailure(error) {
  return error?.failureType !== 'subtestsFailed';
}

function finish() {
  if (failures.length > 0) console.log(`\nfailures:\n\n${failures.join('\n')}`);
  console.log(`\ntest result: ${count.FAILED ? 'FAILED' : 'ok'}. ${count.ok} passed; ${count.FAILED} failed; ${count.ignored} ignored\n`);
  process.exitCode = count.FAILED ? 1 : 0;
}
