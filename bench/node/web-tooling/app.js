// Tests of the Web Tooling Benchmark a fixed number of times, in the order of its list: the same work in every run.
// Its own runner stops by the clock, and its bundle is for shells that have no modules.
//
// `app.js` runs every test twice, `app.js short` the quicker half of them once.
'use strict';

const path = require('node:path');

const { targetList } = require('web-tooling-benchmark/src/cli-flags-helper');

const SLOW = ['babel', 'babel-minify', 'buble', 'lebab', 'prepack', 'prettier', 'terser', 'typescript', 'uglify-js'];

const short = process.argv[2] === 'short';
const names = [...targetList].filter((name) => !short || !SLOW.includes(name));

// The tests name their inputs from here.
process.chdir(path.dirname(require.resolve('web-tooling-benchmark/package.json')));
const tests = names.map((name) => require(`web-tooling-benchmark/src/${name}-benchmark`));
for (let round = short ? 1 : 2; round > 0; round--) {
  for (const test of tests) {
    test.fn();
  }
}
console.log(`ok ${tests.length}`);
