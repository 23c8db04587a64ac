// Where the start-up cache must stay out of the way. Every start pays for this file: it loads nothing, and avoids
// regular expressions, whose first use takes 100 µs.
import fs = require('node:fs');

/** Why Node's own loader is left alone. */
export type Reason =
  | 'coverage'
  | 'debugger'
  | 'frozen intrinsics'
  | 'module debugging'
  | 'module hooks'
  | 'no script'
  | 'permission model'
  | 'policy'
  | 'profiler'
  | 'setuid'
  | 'single executable'
  | 'snapshot'
  | 'source maps'
  | 'sync tracing'
  | 'unknown experiment'
  | 'watch mode';

/** Why the start-up cache must not be used in this process; null if it may be. */
export function standAside(): Reason | null {
  return packed() ?? privileged() ?? environment() ?? options() ?? script();
}

/** Whether Node's own compile cache may be used although the start-up cache stands aside. */
export function allowsCompileCache(reason: Reason): boolean {
  return reason === 'module hooks' || reason === 'source maps' || reason === 'watch mode';
}

/** Whether this is a worker thread. worker_threads would tell, but takes 1.5 ms to load. */
export function isWorker(): boolean {
  return (process.chdir as { disabled?: boolean }).disabled === true;
}

const OLDEST = 18;

/**
 * Whether this is another runtime that only resembles Node, or a release older than the plugin supports: nothing is
 * done there.
 */
export function isForeign(): boolean {
  const { bun, deno, electron, node, nw } = process.versions;
  return Boolean(bun || deno || electron || nw) || process.platform !== 'linux' || parseInt(node || '0', 10) < OLDEST;
}

// Programs that contain a Node with its own files.
function packed(): Reason | null {
  const { pkg } = process as { pkg?: unknown };
  return pkg !== undefined || process.argv[1] === process.execPath ? 'single executable' : null;
}

// The cache belongs to one user; a process that acts for two must not mix them.
function privileged(): Reason | null {
  const { getuid, geteuid, getgid, getegid } = process;
  return getuid?.() === geteuid?.() && getgid?.() === getegid?.() ? null : 'setuid';
}

function environment(): Reason | null {
  const { env } = process;
  if (env['NODE_V8_COVERAGE']) return 'coverage';
  if (env['WATCH_REPORT_DEPENDENCIES']) return 'watch mode';
  // Visual Studio Code opens the inspector from its own preload.
  if (env['VSCODE_INSPECTOR_OPTIONS']) return 'debugger';
  const debug = env['NODE_DEBUG']?.toLowerCase();
  return debug && ['module', 'esm', '*'].some((section) => debug.includes(section)) ? 'module debugging' : null;
}

function options(): Reason | null {
  // Not always an option: 20.7 and later report here what was enabled, by any means.
  if ((process as { sourceMapsEnabled?: boolean }).sourceMapsEnabled) return 'source maps';
  if ((process as { permission?: unknown }).permission !== undefined) return 'permission model';
  const reason = firstMeaning(process.execArgv) ?? firstMeaning(words(process.env['NODE_OPTIONS']));
  // A worker may have been given any environment, but it has the process's options. If Node reports every file, this
  // one is not read.
  return reason ?? (isWorker() ? firstMeaning(words(initialOptions())) : null);
}

function words(text = ''): string[] {
  return text.replaceAll('"', '').split(' ');
}

function initialOptions(): string | undefined {
  try {
    const initial = fs.readFileSync('/proc/self/environ', 'latin1').split('\0');
    return initial.find((line) => line.startsWith('NODE_OPTIONS='))?.slice('NODE_OPTIONS='.length);
  } catch {
    return undefined;
  }
}

function firstMeaning(options: readonly string[]): Reason | null {
  for (const option of options) {
    const reason = isPlain(option) ? null : meaning(option);
    if (reason) return reason;
  }
  return null;
}

// Not an option, or the one that loaded us.
function isPlain(option: string): boolean {
  return !option.startsWith('-') || option.startsWith('--require') || option === '-r';
}

// The value of another option may be taken for an option: then we stand aside unnecessarily.
function meaning(option: string): Reason | null {
  const end = option.indexOf('=');
  const name = (end < 0 ? option : option.slice(0, end)).replaceAll('_', '-');
  const known = MEANINGS.find(([, names]) => names.includes(` ${name} `));
  if (known) return known[0];
  // The port alone starts nothing.
  if (name.startsWith('--inspect') && name !== '--inspect-port') return 'debugger';
  if (name.startsWith('--allow-')) return 'permission model';
  if (name.startsWith('--perf-') || name.startsWith('--log-')) return 'profiler';
  if (name.startsWith('--vfs-')) return 'module hooks';
  if (name.startsWith('--experimental-')) return HARMLESS.includes(` ${name.slice('--experimental-'.length)} `) ? null : 'unknown experiment';
  return null;
}

// As text, which V8 skips faster than tables.
const MEANINGS: readonly (readonly [Reason, string])[] = [
  ['no script', ' -c -i --bench --build-sea --check --interactive --run --test '],
  ['snapshot', ' --build-snapshot --build-snapshot-config --snapshot-blob '],
  ['profiler', ' --cpu-prof --heap-prof --interpreted-frames-native-stack --ll-prof --prof '],
  ['source maps', ' --enable-source-maps --experimental-transform-types '],
  ['sync tracing', ' --trace-sync-io '],
  ['module hooks', ' --entry-url --experimental-default-type --experimental-loader --import --loader --no-global-search-paths '],
  ['permission model', ' --experimental-permission --permission --permission-audit '],
  ['policy', ' --experimental-policy --policy-integrity '],
  ['coverage', ' --experimental-test-coverage '],
  ['frozen intrinsics', ' --frozen-intrinsics '],
];

// Experiments that do not affect how CommonJS is found, read or compiled. Future ones are assumed to.
const HARMLESS =
  ' abortcontroller async-context-frame detect-module eventsource fetch ffi global-customevent global-navigator global-webcrypto import-meta-resolve' +
  ' json-modules network-inspection print-required-tla repl-await report require-module shadow-realm sqlite stream-iter strip-types test-isolation' +
  ' top-level-await vm-modules wasm-modules websocket webstorage worker ';

function script(): Reason | null {
  // A worker's script is not in argv before it runs.
  if (isWorker()) return null;
  const main = process.argv[1];
  const evaluated = (process as { _eval?: string })._eval !== undefined;
  if (main === undefined || main === '-' || evaluated) return 'no script';
  return main === 'inspect' || main === 'debug' ? 'debugger' : null;
}
