// A program twice without the plugin, and then in a series of starts with it: the same each time, or the plugin is
// wrong.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import type { App, Outcome, RunOptions } from '../support/app';
import { withoutLoader, withoutPid } from '../support/differential';
import { plugin } from '../support/places';
import type { Release } from '../support/releases';
import { OWN } from './project';
import { Tree } from './tree';

interface Series {
  readonly eager: boolean;
  readonly starts: number;
}

const STARTS = Number(process.env['HASTEN_TOOLS_STARTS'] ?? 6);

/**
 * As installed, from the first start on, by the last of which large programs have their cache; and a version that
 * records everything at once.
 */
const SERIES: readonly Series[] = [
  { eager: false, starts: STARTS },
  { eager: true, starts: STARTS < 3 ? 2 : 3 },
];

export interface Trial {
  readonly args: string[];
  /** Its exit code; 0 by default. */
  readonly code?: number;
  readonly env?: Record<string, string>;
  /** Compared with starts that preload an empty file, which Node itself reports. */
  readonly preloads?: boolean;
  /** Its errors go to a file: Node drops its own messages if a pipe is full. */
  readonly loud?: boolean;
  /** Nothing comes from the cache: the plugin stands aside, or the program has ES modules only. */
  readonly unserved?: boolean;
}

interface Result {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly files: Record<string, string>;
}

/** Fails if a start with the plugin differs from those without; skipped if these differ from each other. */
export async function trial(t: TestContext, app: App, release: Release, { args, code = 0, env = {}, preloads, loud, unserved }: Trial): Promise<void> {
  const bench = new Bench(app, release, args, { env, plain: preloads ? { NODE_OPTIONS: `--require ${emptyPreload()}` } : {}, loud });
  const plain = await bench.start({ plugin: false }, '');
  assert.deepEqual([plain.code, plain.signal], [code, null], `without the plugin: ${plain.stdout.slice(-2000)}${plain.stderr.slice(-2000)}`);
  if (!same(plain, await bench.start({ plugin: false }, ''))) return t.skip('it is not the same twice without the plugin');
  for (const series of SERIES) await bench.compare(plain, series);
  assert.ok(unserved || app.stats().some(({ hits }) => Number(hits) > 0), 'nothing was served from the cache');
}

/**
 * One file of a suite: false if it fails without the plugin, or two runs differ. The parts of a test may end in any
 * order.
 */
export async function passes(app: App, release: Release, file: string): Promise<boolean> {
  const bench = new Bench(app, release, [file], { normal: sorted });
  const plain = await bench.start({ plugin: false }, '');
  if (plain.code !== 0 || !same(plain, await bench.start({ plugin: false }, ''))) return false;
  await bench.compare(plain, { eager: true, starts: 2 });
  return true;
}

/** How a program is started, and its output read. */
interface Setting {
  readonly env?: Record<string, string>;
  /** For starts without the plugin only. */
  readonly plain?: Record<string, string>;
  readonly loud?: boolean | undefined;
  readonly normal?: (output: string) => string;
}

class Bench {
  private readonly before: Tree;

  constructor(
    private readonly app: App,
    private readonly release: Release,
    private readonly args: string[],
    private readonly setting: Setting,
  ) {
    this.before = Tree.of(app.folder);
  }

  /** Runs the program, and restores its folder. */
  async start(options: RunOptions, cache: string): Promise<Result> {
    const { app, before } = this;
    const { normal = (output: string): string => output } = this.setting;
    const plain = options.plugin === false ? this.setting.plain : {};
    const own = { HOME: app.path(OWN[0]), TMPDIR: app.path(OWN[1]), HASTEN_CACHE_DIR: `${app.cache}/${cache}`, ...this.setting.env, ...plain };
    const { stdout, stderr, ...end } = await this.run({ ...options, env: own });
    const files = Object.entries(Tree.of(app.folder).since(before)).filter(([name]) => !isOwn(name));
    before.restore();
    return { ...end, stdout: normal(timeless(stdout)), stderr: timeless(stderr), files: Object.fromEntries(files.map(([name, text]) => [name, timeless(text)])) };
  }

  private async run(options: RunOptions): Promise<Outcome> {
    const { app, release, args } = this;
    if (!this.setting.loud) return app.run(release, args, options);
    const file = app.path(`${OWN[0]}/stderr`);
    const outcome = await app.exec(release, 'sh', ['-c', 'file=$1; shift; exec "$@" 2>"$file"', 'sh', file, release.node, ...args], options);
    return { ...outcome, stderr: fs.readFileSync(file, 'utf8') };
  }

  async compare(plain: Result, { eager, starts }: Series): Promise<void> {
    for (let n = 1; n <= starts; n++) {
      const what = `${this.args.join(' ')}: start ${n} with the plugin${eager ? ' that records at once' : ''} is not as without it`;
      assert.deepEqual(await this.start({ eager }, `${eager}`), plain, what);
    }
  }
}

// A test's output by line, without the numbers of its parts, some of which run side by side. Tests themselves stay in
// order.
function sorted(report: string): string {
  const tests = report.split(/^(?=(?:not )?ok )/m);
  return tests.map((test) => test.split('\n').map((line) => line.replace(/^(\s+(?:not )?ok) \d+/, '$1')).sort().join('\n')).join('');
}

// Beside the plugin, since Node looks at every folder on the way to a file; and, like the plugin, hidden from
// require.cache.
function emptyPreload(): string {
  const folder = path.join(path.dirname(plugin), 'empty');
  fs.mkdirSync(folder, { recursive: true });
  fs.copyFileSync(path.join(plugin, 'package.json'), path.join(folder, 'package.json'));
  fs.writeFileSync(path.join(folder, 'register.js'), 'Object.defineProperty(require.cache, __filename, { enumerable: false });\n');
  return path.join(folder, 'register.js');
}

function same(one: Result, other: Result): boolean {
  try {
    assert.deepEqual(one, other);
    return true;
  } catch {
    return false;
  }
}

// Tools' own files: caches that contain times, and processes' counts for a report, under made-up names.
function isOwn(name: string): boolean {
  return OWN.some((own) => name.startsWith(`${own}/`)) || /^(?:node_modules\/\.|\.nyc_output|coverage\/tmp)/.test(name);
}

// What differs from run to run: times and dates, durations, ports and process numbers.
function timeless(text: string): string {
  return withoutPid(withoutLoader(text))
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?/g, 'DATE')
    .replace(/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [\w ]{6,12}\d{4}/g, 'DATE')
    .replace(/\d{1,2}:\d\d:\d\d(\.\d+)?( [AP]M)?/g, 'TIME')
    .replace(/\b1\d{12}(\.\d+)?\b/g, 'MILLISECONDS')
    .replace(/(?<=\b|\x1b\[\d+m)\d+(\.\d+)?(e-\d+)? ?(ms|µs|μs|s|m|sec|secs|seconds?|milliseconds?|minutes?)\b/g, 'LONG')
    // Test runners print this only for slow tests.
    .replace(/ \(LONG\)/g, '')
    .replace(/((?:time|duration|duration_ms|elapsed|runtime)["']?[:= ]+)["']?\d[\d.e-]*["']?/gi, '$1LONG')
    .replace(/(pid["']?[:= ]+)\d+/gi, '$1PID')
    .replace(/((?:127\.0\.0\.1|localhost|\[::1?\]):)\d+/g, '$1PORT');
}
