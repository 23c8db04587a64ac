// What web-tooling-benchmark's postinstall script makes: the two minifiers as one file each, by themselves.
'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const build = path.join(path.dirname(require.resolve('web-tooling-benchmark/package.json')), 'build');
fs.mkdirSync(build, { recursive: true });
for (const [minifier, global] of [['terser', 'Terser'], ['uglify-js', 'UglifyJS']]) {
  const program = path.join(path.dirname(require.resolve(`${minifier}/package.json`)), 'bin', 'uglifyjs');
  const preamble = `preamble='const ${global} = module.exports = {};'`;
  const bundle = execFileSync(process.execPath, [program, '-b', preamble, '--self'], { maxBuffer: 64 << 20 });
  fs.writeFileSync(path.join(build, `${minifier}-bundled.js`), bundle);
}
