// When to record: at exit, or once a server has started; and only if it is worthwhile. Code for it is loaded only then.
import fs = require('node:fs');
import { spend } from './credit';
import type * as Record from './record';
import type { Recorded } from './record';
import type { Session } from './session';
import type { Files } from '../own';

/** A program with fewer modules and less text starts no faster from a cache. */
const WORTH_MODULES = 8;
const WORTH_BYTES = 64 * 1024;
/** Where Node's own compile cache has the code, too, a cache needs at least this many modules. */
const WORTH_BESIDE = 48;
/** A complete cache is rewritten for changed files once it is older than this. */
const SETTLED_MILLISECONDS = 600_000;
/** Start-up is over when nothing has been loaded for this long. */
const QUIET_MILLISECONDS = 5_000;
const LONGEST_MILLISECONDS = 300_000;

/**
 * After this many consecutive recordings that added next to nothing, the cache is left alone until its files change.
 */
const FUTILE = 2;

export class Recorder {
  result: Recorded | null = null;
  /** Whether something has to wait for a later start to be recorded. */
  waits = false;
  /** CPU time spent on recording, in microseconds. */
  microseconds = 0;
  /** The CPU time of this process whose share has already been earned. */
  private earned = 0;
  private done = false;

  constructor(
    private readonly own: Files,
    private readonly session: Session,
    private readonly key: string,
    private readonly main: string,
    private readonly file: string,
    private readonly compileCache: boolean,
  ) {}

  /** For programs that do not end: records once their start-up is over. The timer keeps nothing alive. */
  watch(): void {
    if (!this.done) this.wait(0, QUIET_MILLISECONDS);
  }

  /** Records what there is, once. Before the end of the process, it may wait until more has been earned. */
  finish(isEnd = true): void {
    if (this.done) return;
    try {
      if (this.isWorthIt()) this.record(!isEnd);
    } catch {
      // The next start may succeed.
      this.waits = false;
    }
    if (!isEnd && this.waits && !this.result) return;
    this.done = true;
    this.session.forget();
  }

  // A server may spend what it earns by working.
  private wait(before: number, milliseconds: number): void {
    setTimeout(() => {
      const now = this.session.seen?.size ?? before;
      if (now === before) this.finish(false);
      if (!this.done) this.wait(now, now === before ? Math.min(milliseconds * 2, LONGEST_MILLISECONDS) : QUIET_MILLISECONDS);
    }, milliseconds).unref();
  }

  private isWorthIt(): boolean {
    const { catalog, user } = this.session;
    // Another user's process by now, while the cache belongs to the first.
    if (process.geteuid?.() !== user) return false;
    let news = [...(this.session.seen?.values() ?? [])].filter(({ file, script }) => file === undefined || script);
    // What twice could not be recorded will not be now, but changed files may be.
    if (catalog && catalog.futile >= FUTILE) {
      if (Math.abs(Date.now() - catalog.stored.modified) < SETTLED_MILLISECONDS) return false;
      news = news.filter(({ filename, file }) => file === undefined && catalog.find(filename) !== undefined);
    }
    if (this.compileCache && !catalog) return news.length >= WORTH_BESIDE;
    if (news.length >= WORTH_MODULES) return true;
    let bytes = 0;
    for (const { filename } of news) bytes += fs.statSync(filename, { throwIfNoEntry: false })?.size ?? 0;
    return bytes >= WORTH_BYTES;
  }

  private record(goesOn: boolean): void {
    const { own, session, key, main, file } = this;
    this.waits = true;
    const { earned, spent } = spend(session, file, this.earned, goesOn, (budget) => {
      const { record } = own.load<typeof Record>('record', file.slice(0, file.lastIndexOf('/')));
      this.result = record({ session, key, main, file, budget, worth: WORTH_MODULES, compiled: own.compiled });
      this.waits = this.result.left > 0;
      return this.result.need;
    });
    this.earned = earned;
    this.microseconds += spent;
  }
}
