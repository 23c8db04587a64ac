// One recording's file. It is written once a second; what does not fit ends it, with a last line that says so.
import fs = require('node:fs');
import { performance } from 'node:perf_hooks';
import path = require('node:path');
import type { Collection } from './collector';
import { type Counts, end, type End, event, gap, header, milliseconds } from './lines';

const MOST_BYTES = 64 * 1024 * 1024;
// Enough for the last line.
const RESERVE = 256;
// Beyond this number, older recordings are removed: the folder may be in memory.
const MOST_FILES = 16;

export interface Progress extends Counts {
  bytes: number;
}

export class Recording implements Progress {
  readonly file: string;
  events = 0;
  detailed = 0;
  dropped = 0;
  unseen = 0;
  /** Of the CPU profile; those of its last seconds are not counted yet. */
  samples = 0;
  bytes = 0;
  why: End | null = null;
  readonly #fd: number;
  readonly #from = performance.now();
  readonly #most: number;
  #lines: string[] = [];
  #size = 0;
  // The end of the file's contents, to make room for the last line on a full disk.
  #tail = '';

  /** Throws if no file can be made. */
  constructor(folder: string, most = MOST_BYTES) {
    removeOldest(folder);
    this.#most = most;
    [this.file, this.#fd] = create(folder);
    this.#push(header(this.#from));
    this.flush();
    if (this.why) throw new Error('no room');
  }

  /** Its duration so far, in milliseconds. */
  get lasted(): number {
    return milliseconds(performance.now() - this.#from);
  }

  add(collections: readonly Collection[]): void {
    // Others began earlier, or were awaited by another recording.
    const own = collections.filter((collection) => collection.from >= this.#from);
    for (const [index, collection] of own.entries()) {
      if (this.why) return;
      const line = event(collection);
      if (this.#size + line.length + RESERVE > this.#most) return this.end('size', own.length - index);
      this.#push(line);
      this.events += 1;
      if (collection.profile) this.detailed += 1;
    }
  }

  /** Lines of a CPU profile. */
  profile(lines: readonly string[]): void {
    for (const line of lines) {
      if (this.why) return;
      if (this.#size + Buffer.byteLength(line) + RESERVE > this.#most) return this.end('size');
      this.#push(line);
    }
  }

  /** Nothing was observed between these two times. */
  gap(from: number, to: number): void {
    if (this.why) return;
    const begin = milliseconds(Math.max(from, this.#from));
    const line = gap(begin, milliseconds(to));
    if (this.#size + line.length + RESERVE > this.#most) return this.end('size');
    this.#push(line);
    this.unseen += milliseconds(to) - begin;
  }

  flush(): void {
    if (this.why || this.#lines.length === 0) return;
    const lines = this.#lines;
    this.#lines = [];
    try {
      this.#write(lines.join(''));
    } catch {
      this.#giveUp(lines);
    }
  }

  /** Ends the file; `dropped` more collections are known to be missing from it. */
  end(why: End, dropped = 0): void {
    if (this.why) return;
    this.flush();
    if (this.why) return;
    this.why = why;
    this.dropped += dropped;
    try {
      this.#write(end(performance.now(), why, this));
    } catch {
      this.#endFull();
    }
    close(this.#fd);
  }

  remove(): void {
    fs.rmSync(this.file, { force: true });
  }

  #push(line: string): void {
    this.#lines.push(line);
    this.#size += Buffer.byteLength(line);
  }

  // Writes everything or, with an exception, nothing.
  #write(text: string): void {
    const bytes = Buffer.from(text);
    let written = 0;
    try {
      while (written < bytes.length) written += fs.writeSync(this.#fd, bytes, written, bytes.length - written, this.bytes + written);
    } catch (error) {
      fs.ftruncateSync(this.#fd, this.bytes);
      throw error;
    }
    this.bytes += bytes.length;
    this.#tail = (this.#tail + text).slice(-16 * RESERVE);
  }

  // Writes what still fits, line by line.
  #giveUp(lines: string[]): void {
    this.why = 'disk';
    let written = 0;
    try {
      for (; written < lines.length; written += 1) this.#write(lines[written] as string);
    } catch {
      this.#forget(lines.slice(written));
    }
    this.#endFull();
    close(this.#fd);
  }

  // The only room for the last line is that of the lines before it.
  #endFull(): void {
    this.why = 'disk';
    const lines = this.#tail.split('\n').slice(1, -1).map((line) => `${line}\n`);
    const removed: string[] = [];
    while (lines.length > 0 && removed.join('').length < RESERVE) removed.unshift(lines.pop() as string);
    this.#forget(removed);
    this.bytes -= Buffer.byteLength(removed.join(''));
    try {
      fs.ftruncateSync(this.#fd, this.bytes);
      this.#write(end(performance.now(), 'disk', this));
    } catch {
      // The file ends with a complete line, if not with the last.
    }
  }

  #forget(lines: readonly string[]): void {
    const events = lines.filter((line) => line.startsWith('{"gc"'));
    this.events -= events.length;
    this.dropped += events.length;
    this.detailed -= events.filter((line) => line.includes('"before"')).length;
  }
}

function create(folder: string): [string, number] {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants;
  const time = new Date().toISOString().replace(/[-:]/g, '');
  for (let attempt = 0; ; attempt += 1) {
    const file = path.join(folder, `${process.pid}-${time}${attempt > 0 ? `-${attempt}` : ''}.jsonl`);
    try {
      return [file, fs.openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || attempt > 8) throw error;
    }
  }
}

function removeOldest(folder: string): void {
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  const dated = files.map((name) => {
    const file = path.join(folder, name);
    return { file, time: fs.lstatSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0 };
  });
  dated.sort((a, b) => b.time - a.time);
  // The youngest may still be being written.
  for (const { file } of dated.slice(MOST_FILES - 1)) fs.rmSync(file, { force: true });
}

function close(fd: number): void {
  try {
    fs.closeSync(fd);
  } catch {
    // Everything to be written has been written.
  }
}
