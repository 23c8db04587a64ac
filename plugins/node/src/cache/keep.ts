// Keeps the bytecode of the plugin's own files, for all programs of this user.
import fs = require('node:fs');
import type { Compiled } from '../own';
import { checksum } from './checksum';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants;

/** Writes what was compiled in this process into a folder known to be ours. */
export function keep(compiled: readonly Compiled[]): void {
  for (const { place, mark, script } of compiled) {
    const code = script.createCachedData();
    const bytes = Buffer.concat([Buffer.from(Uint32Array.of(...mark, checksum(code)).buffer), code]);
    const temporary = `${place}.tmp`;
    try {
      writeNew(temporary, bytes);
      fs.renameSync(temporary, place);
    } catch {
      // Another process is writing, or there is no space. Half a file left by a killed process goes with the least
      // recently used.
    }
  }
}

function writeNew(file: string, bytes: Uint8Array): void {
  const descriptor = fs.openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let done = 0; done < bytes.length; ) done += fs.writeSync(descriptor, bytes, done, bytes.length - done);
  } catch (error) {
    fs.unlinkSync(file);
    throw error;
  } finally {
    fs.closeSync(descriptor);
  }
}
