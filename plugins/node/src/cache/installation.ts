// The packages installed for a script.
import fs = require('node:fs');
import path = require('node:path');

// Of npm, Yarn, pnpm and Bun.
const LOCKS = ['package-lock.json', 'npm-shrinkwrap.json', 'yarn.lock', 'pnpm-lock.yaml', 'bun.lock', 'bun.lockb'];

/**
 * Identifies what was installed for a script, by the nearest package.json and the nearest lock file above it.
 * Every file of a cache is verified individually; after another installation none of it is worth checking.
 */
export function installation(main: string): string {
  let [manifest, lock] = ['', ''];
  for (let folder = path.dirname(main); manifest === '' || lock === ''; folder = path.dirname(folder)) {
    manifest ||= state(folder, 'package.json');
    for (const name of LOCKS) lock ||= state(folder, name);
    if (folder === '/' || folder === '.') break;
  }
  return `${manifest}\n${lock}`;
}

function state(folder: string, name: string): string {
  const stats = fs.statSync(path.join(folder, name), { throwIfNoEntry: false });
  return stats ? `${name} ${stats.dev} ${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}` : '';
}
