// A program to run as a subject: in its own folder, with its own cache, home and runtime folder, removed after the
// test.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { eager, hasty, packages, register } from './places';
import type { Release } from './releases';
import { PATIENCE_MS } from './waiting';

export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A test, or a whole file of tests: the owner that cleans up. */
export interface Owner {
  after(tidy: () => void | Promise<void>): void;
}

export interface RunOptions {
  /** Preload the plugin, as `hasten run` does; true by default. */
  plugin?: boolean;
  /**
   * Record the program at its first start, however small and whatever the cost; `hasty` also trusts the times of
   * brand-new files.
   */
  eager?: boolean | 'hasty';
  /** A file to preload before the plugin. */
  before?: string;
  /** Added to a small environment that has nothing of the caller's except PATH. */
  env?: Record<string, string | undefined>;
  /** Relative to the app's folder. */
  cwd?: string;
  input?: string;
}

export class App {
  /** The app's folder, without symlinks. */
  readonly folder: string;
  readonly cache: string;
  readonly runtime: string;
  readonly #home: string;
  readonly #children = new Set<ChildProcessWithoutNullStreams>();

  private constructor(scratch: string) {
    this.folder = path.join(scratch, 'app');
    this.cache = path.join(scratch, 'cache');
    this.runtime = path.join(scratch, 'runtime');
    this.#home = path.join(scratch, 'home');
    for (const folder of [this.folder, this.runtime, this.#home]) fs.mkdirSync(folder, { mode: 0o700 });
  }

  /** With these files; values other than text are written as JSON. */
  static create(t: Owner, files: Record<string, unknown>): App {
    const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'hasten-test-')));
    const app = new App(scratch);
    t.after(async () => {
      await app.#end();
      // Processes that they started may still write to it.
      fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
    });
    for (const [name, content] of Object.entries(files)) app.write(name, content);
    return app;
  }

  path(name: string): string {
    return path.join(this.folder, name);
  }

  write(name: string, content: unknown): void {
    fs.mkdirSync(path.dirname(this.path(name)), { recursive: true });
    fs.writeFileSync(this.path(name), typeof content === 'string' ? content : JSON.stringify(content));
  }

  /** A symlink to another file or folder of the app. */
  link(target: string, name: string): void {
    fs.mkdirSync(path.dirname(this.path(name)), { recursive: true });
    fs.symlinkSync(this.path(target), this.path(name));
  }

  /** Makes all packages of test/packages available to require, by a symlink. */
  usePackages(): this {
    fs.symlinkSync(packages, this.path('node_modules'));
    return this;
  }

  /** Runs `node ARGS…` in the app's folder to its end. */
  async run(release: Release, args: string[], options: RunOptions = {}): Promise<Outcome> {
    return this.exec(release, release.node, args, options);
  }

  /** Runs any program to its end; `node` on its PATH is the release. */
  async exec(release: Release, program: string, args: string[], options: RunOptions = {}): Promise<Outcome> {
    const child = this.spawn(release, program, args, options);
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (chunk: string) => (output[stream] += chunk));
    }
    child.stdin.on('error', () => {}).end(options.input ?? '');
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve({ code, signal, ...output }));
    });
  }

  /** Starts a program for the test to talk to; it does not outlive the test. */
  spawn(release: Release, program: string, args: string[], options: RunOptions = {}): ChildProcessWithoutNullStreams {
    const child = spawn(program, args, { cwd: this.path(options.cwd ?? '.'), env: this.#environment(release, options), stdio: 'pipe' });
    const overdue = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
    this.#children.add(child);
    const ended = (): void => {
      clearTimeout(overdue);
      this.#children.delete(child);
    };
    child.once('exit', ended).once('error', ended);
    return child;
  }

  async #end(): Promise<void> {
    for (const child of this.#children) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  }

  /** The plugin's statistics of the runs so far, one object for each process that ended. */
  stats(): Record<string, unknown>[] {
    if (!fs.existsSync(this.#stats)) return [];
    const lines = fs.readFileSync(this.#stats, 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  get #stats(): string {
    return path.join(this.#home, 'stats.jsonl');
  }

  #environment(release: Release, options: RunOptions): NodeJS.ProcessEnv {
    const own = options.env ?? {};
    const env: NodeJS.ProcessEnv = {
      PATH: [path.dirname(release.node), process.env['PATH']].join(':'),
      HOME: this.#home,
      TMPDIR: os.tmpdir(),
      HASTEN_CACHE_DIR: this.cache,
      HASTEN_RUNTIME_DIR: this.runtime,
      HASTEN_NODE_STATS: this.#stats,
      ...own,
    };
    const preload = options.eager ? path.join(options.eager === 'hasty' ? hasty : eager, 'register.js') : register;
    if (options.plugin ?? true) env['NODE_OPTIONS'] = [options.before && `--require ${options.before}`, `--require ${preload}`, own['NODE_OPTIONS']].filter(Boolean).join(' ');
    return env;
  }
}
