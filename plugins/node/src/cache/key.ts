// Which cache a process uses: one per program, and per combination of everything that affects what its modules are or
// how they are compiled.
import fs = require('node:fs');
import { loader } from './loader';

/** Raised whenever the meaning of a cache file changes: files of another version are never read. */
export const VERSION = 5;

/**
 * The text identifying what a cache is for. It is also stored in the file: a digest collision costs a cache, not
 * correctness.
 */
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

/** The script with which the process was started; in a worker, too. */
export function mainScript(): string {
  const main = process.argv[1] ?? commandLine();
  try {
    // A link such as /srv/current refers to another program after a deployment.
    return fs.realpathSync.native(main);
  } catch {
    // `node app` for app.js: Node finds it, and the same command will tomorrow.
    return main;
  }
}

// A worker learns its own script later, and that of the process never.
function commandLine(): string {
  try {
    const words = fs.readFileSync('/proc/self/cmdline', 'utf8').split('\0');
    const script = words[1 + process.execArgv.length];
    return !script || script.startsWith('/') ? (script ?? '') : `${process.cwd()}/${script}`;
  } catch {
    return '';
  }
}
