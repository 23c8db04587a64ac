// Which cache a process uses: one for each program, and for everything that changes what its modules are or how they are compiled.
import fs = require('node:fs');
import path = require('node:path');
import { loader } from './loader';

/** Raised whenever the meaning of a cache file changes: files of another version are never read. */
export const VERSION = 4;

/** The text that a cache is for. It stands in the file as well: a digest that collides costs a cache, not correctness. */
export function keyText(main: string): string {
  const { env } = process;
  return [
    `hasten ${VERSION}`,
    main,
    process.version,
    process.arch,
    process.execPath,
    process.execArgv.join(' '),
    env['NODE_OPTIONS'] ?? '',
    env['NODE_ENV'] ?? '',
    env['NODE_PRESERVE_SYMLINKS'] ?? '',
    env['NODE_PRESERVE_SYMLINKS_MAIN'] ?? '',
    // NODE_PATH, the places in the home directory and those beside the executable.
    loader.globalPaths.join(':'),
    String(process.geteuid?.()),
  ].join('\n');
}

/** A name for a file: 64 bits of the text, by arithmetic alone, because node:crypto takes milliseconds to load. */
export function digest(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x5bd1e995) ^ (b >>> 15);
  }
  return (a >>> 0).toString(16).padStart(8, '0') + (b >>> 0).toString(16).padStart(8, '0');
}

/** The script that the process was started with; in a worker, too. */
export function mainScript(): string {
  const main = process.argv[1] ?? commandLine();
  try {
    // A link such as /srv/current names another program after a deployment.
    return fs.realpathSync.native(main);
  } catch {
    // `node app` for app.js: Node finds it, and so does the same command tomorrow.
    return main;
  }
}

// A worker learns its own script later, and that of the process not at all.
function commandLine(): string {
  try {
    const words = fs.readFileSync('/proc/self/cmdline', 'utf8').split('\0');
    const script = words[1 + process.execArgv.length];
    return script ? path.resolve(script) : '';
  } catch {
    return '';
  }
}
