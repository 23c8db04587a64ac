// Which cache a process uses: one for each program, and for everything that changes what its modules are or how they are compiled.
import fs = require('node:fs');
import { loader } from './loader';

/** Raised whenever the meaning of a cache file changes: files of another version are never read. */
export const VERSION = 5;

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
    return !script || script.startsWith('/') ? (script ?? '') : `${process.cwd()}/${script}`;
  } catch {
    return '';
  }
}
