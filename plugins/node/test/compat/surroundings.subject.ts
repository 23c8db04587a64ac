// Preloaded into a subject: writes standAside()'s answer to a file, because some subjects own their streams.
import fs = require('node:fs');
import { isWorker, standAside } from '../../src/surroundings';

const thread = isWorker() ? 'worker' : 'main';
fs.appendFileSync(process.env['HASTEN_TEST_REASONS'] ?? '/dev/stderr', `${thread}: ${standAside()}\n`);
