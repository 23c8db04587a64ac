// Node's own options and variables, with a program of many modules.
import type { Range } from '../support/releases';

export interface Mode extends Range {
  readonly options?: string[];
  readonly env?: Record<string, string>;
  readonly code?: number;
  readonly preloads?: boolean;
  readonly loud?: boolean;
  readonly unserved?: boolean;
}

const plain = (...options: string[]): Mode => ({ options });
const aside = (...options: string[]): Mode => ({ options, unserved: true });

export const MODES: readonly Mode[] = [
  plain('--abort-on-uncaught-exception'),
  plain('--conditions=custom'),
  plain('--disable-proto=delete'),
  plain('--disallow-code-generation-from-strings'),
  plain('--dns-result-order=ipv4first'),
  plain('--expose-gc'),
  plain('--icu-data-dir=/nowhere', '--no-warnings'),
  plain('--insecure-http-parser'),
  plain('--jitless'),
  plain('--max-http-header-size=8192'),
  plain('--max-old-space-size=200'),
  plain('--max-semi-space-size=1'),
  plain('--no-addons'),
  plain('--no-deprecation'),
  plain('--no-opt'),
  plain('--no-warnings'),
  plain('--pending-deprecation'),
  plain('--predictable'),
  plain('--preserve-symlinks'),
  plain('--preserve-symlinks', '--preserve-symlinks-main'),
  plain('--stack-size=2000'),
  plain('--stack-trace-limit=100'),
  { options: ['--throw-deprecation'], code: 1 },
  plain('--title=other'),
  plain('--tls-min-v1.3'),
  plain('--trace-deprecation'),
  plain('--trace-exit'),
  plain('--trace-uncaught'),
  plain('--trace-warnings'),
  plain('--unhandled-rejections=strict'),
  plain('--unhandled-rejections=warn'),
  plain('--use-openssl-ca'),
  plain('--v8-pool-size=1'),
  plain('--verify-base-objects'),
  plain('--zero-fill-buffers'),
  plain('--experimental-vm-modules'),
  plain('--experimental-import-meta-resolve'),
  aside('--cpu-prof', '--cpu-prof-dir=home'),
  aside('--enable-source-maps'),
  aside('--frozen-intrinsics'),
  aside('--heap-prof', '--heap-prof-dir=home'),
  aside('--import', 'data:text/javascript,globalThis.early=1'),
  // The plugin's statistics, requested by the tests, are reported like all files.
  { options: ['--trace-sync-io'], env: { HASTEN_NODE_STATS: '' }, preloads: true, loud: true, unserved: true },
  aside('--inspect=127.0.0.1:0', '--inspect-publish-uid=http'),
  { options: ['--experimental-strip-types'], from: 22 },
  { options: ['--no-experimental-require-module'], from: 22 },
  { options: ['--no-experimental-detect-module'], from: 22 },
  { options: ['--env-file=variables.env'], from: 22 },
  { options: ['--permission', '--allow-fs-read=*', '--allow-fs-write=*', '--allow-worker', '--allow-child-process'], from: 24, unserved: true },
  { env: { NODE_DEBUG: 'module' }, unserved: true },
  { env: { NODE_ENV: 'production' } },
  { env: { NODE_NO_WARNINGS: '1' } },
  { env: { NODE_PATH: '/nowhere:src' } },
  { env: { NODE_PENDING_DEPRECATION: '1' } },
  { env: { NODE_PRESERVE_SYMLINKS: '1' } },
  { env: { NODE_COMPILE_CACHE: 'home/compiled' }, unserved: true },
  { env: { NODE_V8_COVERAGE: 'home/coverage' }, unserved: true },
  { env: { NODE_EXTRA_CA_CERTS: '/nowhere' } },
  { env: { UV_THREADPOOL_SIZE: '1' } },
];

/** Examines the loader from all sides, warns, and does the same in a thread, whose output comes in one piece. */
export const PROGRAM = `
const path = require('path');
const { Worker, isMainThread, parentPort } = require('worker_threads');
const lines = [];
const say = (...words) => lines.push(words.join(' '));
const names = ['express', 'ejs', 'commander', 'yargs', 'js-yaml', './src/square', './src/data.json', 'none', './src/untidy', 'koa', 'lodash/fp'];
for (const name of names) {
  try {
    const found = require(name);
    say(name, typeof found, Object.keys(found).length, path.relative(__dirname, require.resolve(name)));
  } catch (error) {
    say(name, error.code, error.message.split('\\n')[0], error.requireStack && error.requireStack.length);
  }
}
const at = Object.keys(require.cache);
say(at.length, at.every((file) => require.cache[file].loaded || file === __filename), module.children.length, module.paths[0], require.main === module);
try { require('./src/view.json').title.a.b(); } catch (error) { say(error.stack.split('\\n').slice(0, 2)); }
import('./src/other.mjs').then(async ({ twice }) => {
  say('imported', twice(2));
  if (!isMainThread) return parentPort.postMessage(lines);
  const { status, stdout, stderr } = require('child_process').spawnSync(process.execPath, ['src/index.js'], { encoding: 'utf8' });
  say('child', status, stdout, stderr);
  await new Promise((done) => new Worker(__filename).on('message', (text) => say('thread', ...text)).on('error', (error) => say('thread', error.message)).on('exit', done));
  console.log(lines.join('\\n'));
  process.exitCode = 3;
  process.emitWarning('old', 'DeprecationWarning', 'X1');
});
`;
