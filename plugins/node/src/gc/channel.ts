// The control channel: a socket in the runtime folder, on which `hasten gc record` asks for a recording. One JSON object in each line.
import fs = require('node:fs');
import net = require('node:net');
import path = require('node:path');
import { performance } from 'node:perf_hooks';
import { LEAST_INTERVAL_US, MOST_INTERVAL_US } from './cpu';
import { milliseconds } from './lines';
import type { Recorder } from './recorder';
import type { Recording } from './recording';

const MOST_CLIENTS = 8;
const LONGEST_REQUEST = 4096;
/** The most bytes that may wait for a client to read them. */
const MOST_UNREAD = 64 * 1024;
const LONGEST_RECORDING_S = 24 * 3600;
// Within this time a client has asked, or it is not one.
const PATIENCE_MS = 10_000;
// The size of sun_path, minus the terminating zero; libuv truncates longer paths.
const LONGEST_PATH = 107;
const SOCKET = /^(\d+)\.sock$/;

export class Channel {
  readonly #recorder: Recorder;
  readonly #folder: string;
  readonly #path: string;

  constructor(recorder: Recorder, folder: string) {
    this.#recorder = recorder;
    this.#folder = folder;
    this.#path = path.join(folder, `${process.pid}.sock`);
  }

  open(): void {
    if (Buffer.byteLength(this.#path) > LONGEST_PATH) return;
    this.#removeStale();
    this.#listen(() => {
      // Left behind by another process that had our number, unless somebody answers.
      ifDead(this.#path, () => {
        remove(this.#path);
        this.#listen(() => {});
      });
    });
  }

  #listen(inUse: () => void): void {
    const server = net.createServer((socket) => this.#serve(socket));
    server.maxConnections = MOST_CLIENTS;
    server.on('error', (error: NodeJS.ErrnoException) => error.code === 'EADDRINUSE' && inUse());
    server.on('listening', () => this.#guard());
    // Exclusive: in a cluster's worker it would otherwise be the primary's socket.
    server.listen({ path: this.#path, exclusive: true });
    server.unref();
  }

  #guard(): void {
    try {
      fs.chmodSync(this.#path, 0o600);
      const { ino } = fs.lstatSync(this.#path);
      process.on('exit', () => remove(this.#path, ino));
    } catch {
      // Somebody has removed it.
    }
  }

  #removeStale(): void {
    for (const name of fs.readdirSync(this.#folder)) {
      const pid = Number(SOCKET.exec(name)?.[1] ?? process.pid);
      if (pid === process.pid || isAlive(pid)) continue;
      const file = path.join(this.#folder, name);
      // The process may exist in another namespace, with another number.
      ifDead(file, () => remove(file));
    }
  }

  #serve(socket: net.Socket): void {
    const client = new Client(this.#recorder, socket);
    let request = '';
    socket.unref();
    socket.setEncoding('utf8');
    socket.setTimeout(PATIENCE_MS, () => client.isWatching || socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => client.leave());
    socket.on('data', (text: string) => {
      request += text;
      const lines = request.split('\n');
      request = lines.pop() as string;
      if ([...lines, request].some((line) => line.length > LONGEST_REQUEST)) return client.refuse('the request is too long');
      for (const line of lines) client.answer(line);
    });
  }
}

class Client {
  readonly #recorder: Recorder;
  readonly #socket: net.Socket;
  #recording: Recording | null = null;
  readonly #follow = () => this.#report();

  constructor(recorder: Recorder, socket: net.Socket) {
    this.#recorder = recorder;
    this.#socket = socket;
  }

  get isWatching(): boolean {
    return this.#recording !== null;
  }

  answer(line: string): void {
    try {
      const request = JSON.parse(line) as { op?: unknown; seconds?: unknown; cpu_interval_us?: unknown } | null;
      if (request?.op === 'info') this.#inform();
      else if (request?.op === 'record') this.#record(request.seconds, request.cpu_interval_us);
      else if (request?.op === 'stop') this.#stop();
      else this.refuse('no such request');
    } catch {
      this.refuse('not a request');
    }
  }

  refuse(error: string): void {
    this.#send({ ok: false, error });
    this.#socket.end();
    // A client that keeps talking is ignored.
    this.#socket.pause();
    this.#socket.removeAllListeners('data');
    this.#socket.resume();
  }

  /** A recording continues to its end without the client that requested it, except for a CPU profile, which costs more. */
  leave(): void {
    this.#recorder.unfollow(this.#follow);
    try {
      if (this.#recording) this.#recorder.endProfile(this.#recording, 'client');
    } catch {
      // The program must not see this error.
    }
  }

  #inform(): void {
    const script = process.argv[1] ?? null;
    this.#send({ ok: true, pid: process.pid, node: process.version, script, recording: this.#recorder.isRecording, at_ms: performance.now() });
  }

  #record(seconds: unknown, interval: unknown): void {
    if (this.#recording) return this.#send({ ok: false, error: 'this connection has a recording' });
    if (typeof seconds !== 'number' || !(seconds >= 1 && seconds <= LONGEST_RECORDING_S)) {
      return this.#send({ ok: false, error: `seconds must be a number from 1 to ${LONGEST_RECORDING_S}` });
    }
    if (interval !== undefined && !isInterval(interval)) {
      return this.#send({ ok: false, error: `cpu_interval_us must be a whole number from ${LEAST_INTERVAL_US} to ${MOST_INTERVAL_US}` });
    }
    const recording = this.#recorder.record(seconds);
    if (typeof recording === 'string') return this.#send({ ok: false, error: recording });
    const reason = interval === undefined ? null : this.#recorder.profile(recording, interval);
    if (reason !== null) {
      this.#recorder.discard(recording);
      return this.#send({ ok: false, error: reason, cpu: false });
    }
    this.#recording = recording;
    this.#send({ ok: true, file: recording.file, seconds, ...(interval !== undefined && { cpu_interval_us: interval }) });
    this.#recorder.follow(this.#follow);
  }

  #stop(): void {
    if (this.#recording) this.#recorder.stop(this.#recording, 'asked');
    else this.#send({ ok: false, error: 'this connection has no recording' });
  }

  #report(): void {
    const recording = this.#recording;
    if (!recording) return;
    const { bytes, dropped, events, file, lasted, samples, unseen, why } = recording;
    if (why) {
      this.#recording = null;
      this.#recorder.unfollow(this.#follow);
      return this.#send({ done: true, why, file, events, dropped, bytes, lasted_ms: lasted, unseen_ms: milliseconds(unseen), samples, at_ms: performance.now() });
    }
    // A client that does not read gets only the final message.
    if (this.#socket.writableLength === 0) this.#send({ events: events + this.#recorder.waiting, bytes, at_ms: performance.now() });
  }

  #send(answer: object): void {
    // A client that requests and does not read the answers.
    if (this.#socket.writableLength > MOST_UNREAD) return void this.#socket.destroy();
    if (this.#socket.writable) this.#socket.write(`${JSON.stringify(answer)}\n`);
  }
}

function isInterval(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= LEAST_INTERVAL_US && (value as number) <= MOST_INTERVAL_US;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

// Only a connection attempt shows whether anybody listens on a socket.
function ifDead(file: string, then: () => void): void {
  const socket = net.connect({ path: file });
  socket.unref();
  socket.on('connect', () => socket.destroy());
  socket.on('error', (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED' && then());
}

// Removes only this very file, if its inode number is given.
function remove(file: string, ino?: number): void {
  try {
    if (ino === undefined || fs.lstatSync(file).ino === ino) fs.unlinkSync(file);
  } catch {
    // Another process was faster, or this process has changed its user.
  }
}
