// Test suites contained in packages of the npm registry, file by file, with and without the plugin
// (scripts/node-tools.sh). Files that need something not installed, or whose output differs between two runs without
// the plugin, are not counted.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { onEach } from '../support/releases';
import { installation, project } from './project';
import { passes } from './series';

const SUITES = ['avvio', 'browserify', 'detective', 'fast-json-stringify', 'fastify', 'fastq', 'find-my-way', 'light-my-request', 'module-deps', 'pino', 'sonic-boom', 'thread-stream'];
/** Their tests use functions of node:test that Node 18 lacks. */
const NEWER = ['light-my-request'];

if (installation) {
  for (const name of SUITES) {
    onEach(`the suite of ${name}`, async (release, t) => {
      const folder = path.join(installation!, 'node_modules', name, 'test');
      const files = fs.readdirSync(folder).filter((file) => /\.m?js$/.test(file));
      let counted = 0;
      for (const file of files) if (await passes(project(t, installation!), release, path.join(folder, file))) counted++;
      console.log(`${counted} of ${files.length} files of ${name} on node ${release.major} are the same`);
      assert.ok(counted > 0, 'no file of it passes');
    }, NEWER.includes(name) ? { from: 20 } : {});
  }
}
