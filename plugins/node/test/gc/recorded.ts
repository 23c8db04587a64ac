// A program under the recorder, and what it recorded.
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { App, type RunOptions } from '../support/app';
import { plugin } from '../support/places';
import type { Release } from '../support/releases';
import { PATIENCE_MS, until } from '../support/waiting';

export type Line = Record<string, any>;

/** An app that starts the recorder at once, rather than after a second; optionally one that observes at any cost. */
export function withRecorder(app: App, from = plugin): App {
  app.write('recorder.js', `require(${JSON.stringify(path.join(from, 'gc.js'))}).start();`);
  return app;
}

/** The arguments that `node` gets before the script. */
export function preload(app: App): string[] {
  return ['--require', app.path('recorder.js')];
}

export const ALONE: RunOptions = { plugin: false };

export function recordings(app: App): string[] {
  const folder = path.join(app.runtime, 'gc');
  return fs.existsSync(folder) ? fs.readdirSync(folder).map((name) => path.join(folder, name)).sort() : [];
}

/** The only recording of an app. */
export function recorded(app: App): Line[] {
  const [file, ...others] = recordings(app);
  assert.ok(file && others.length === 0, `${others.length + 1} recordings`);
  return lines(fs.readFileSync(file, 'utf8'));
}

/** Every line of a text; each must be complete. */
export function lines(text: string): Line[] {
  assert.ok(text.endsWith('\n'));
  return text.trimEnd().split('\n').map((line) => JSON.parse(line) as Line);
}

const TRACE = /^\[\d+:0x[0-9a-f]+(?::\d+)?\]\s+(\d+) ms: (?:Scavenge|Mark-|Incremental Mark-).* MB, (?:pooled: [\d.]+ MB, )?([\d.]+) \//;

/** A collection in the output of `--trace-gc`, in milliseconds. */
export interface Traced {
  readonly at: number;
  readonly pause: number;
}

export function traced(output: string): Traced[] {
  return output.split('\n').flatMap((line) => {
    const [, at, pause] = TRACE.exec(line) ?? [];
    return at && pause ? [{ at: Number(at), pause: Number(pause) }] : [];
  });
}

export function isCollection(line: Line): boolean {
  return ['scavenge', 'minor-mark-sweep', 'mark-compact'].includes(line['gc']);
}

/** A running program with an open channel. */
export class Subject {
  output = '';
  readonly app: App;
  readonly child: ChildProcess;

  private constructor(app: App, child: ChildProcess) {
    this.app = app;
    this.child = child;
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
  }

  static async start(app: App, release: Release, script: string, options: RunOptions = {}): Promise<Subject> {
    app.write('main.js', script);
    const child = app.spawn(release, release.node, [...preload(app), 'main.js'], { ...ALONE, ...options });
    const subject = new Subject(app, child);
    await until(() => fs.existsSync(subject.socket) || child.exitCode !== null);
    assert.equal(child.exitCode, null, subject.output);
    return subject;
  }

  get socket(): string {
    return path.join(this.app.runtime, 'node', `${this.child.pid}.sock`);
  }

  async connect(): Promise<Client> {
    // Its name appears a moment before anyone listens.
    for (const begin = Date.now(); ; await sleep(10)) {
      const socket = net.connect(this.socket);
      const error = await Promise.race([once(socket, 'connect').then(() => null), once(socket, 'error')]).catch((caught: unknown) => caught);
      if (!error) return new Client(socket);
      assert.ok(Date.now() - begin < PATIENCE_MS, String(error));
    }
  }

  /** Lets the program end by itself, which it does once its standard input ends. */
  async end(): Promise<number | null> {
    this.child.stdin?.end();
    return this.exit();
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exit();
  }

  async exit(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
    return this.child.exitCode;
  }
}

/** One connection to a channel. */
export class Client {
  readonly #socket: net.Socket;
  #received = '';
  isClosed = false;

  constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8').on('data', (text: string) => (this.#received += text));
    socket.on('error', () => {}).on('close', () => (this.isClosed = true));
  }

  send(request: object | string): void {
    this.#socket.write(typeof request === 'string' ? request : `${JSON.stringify(request)}\n`);
  }

  async ask(request: object | string): Promise<Line> {
    this.send(request);
    return this.next();
  }

  get hasAnswer(): boolean {
    return this.#received.includes('\n');
  }

  async next(): Promise<Line> {
    await until(() => this.hasAnswer || this.isClosed);
    assert.ok(this.hasAnswer, 'the connection was closed');
    const end = this.#received.indexOf('\n');
    const line = JSON.parse(this.#received.slice(0, end)) as Line;
    this.#received = this.#received.slice(end + 1);
    return line;
  }

  /** The last answer about a recording. */
  async done(): Promise<Line> {
    for (;;) {
      const line = await this.next();
      if (line['done']) return line;
    }
  }

  vanish(): void {
    this.#socket.destroy();
  }
}
