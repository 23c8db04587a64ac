// What recording may cost. Every start earns a share of its own CPU time and of what the cache has saved it, and
// recordings are paid for with that. A piece that costs more than one start earns waits for several.
import fs = require('node:fs');
import path = require('node:path');
import type { Session } from './session';
import { isPrivateFolder, makeFolder } from './store';
import { exactly, reading } from './trust';

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_TRUNC, O_WRONLY } = fs.constants;

/**
 * The share of all starts' CPU time that the plugin and its recordings may take together, and the plugin's share of
 * one.
 */
const SHARE = 0.05;
const PLUGIN = 1500;
/** What a start earns however short it was, in microseconds: otherwise hundreds of them would be needed. */
const EARNED = 1000;
/**
 * Loading the recorder and putting a file in its place, in microseconds. This much must be left for the pieces, or the
 * effort would be wasted.
 */
const FIXED = 6000;
const WORTH = 10_000;
/** Bytecode is worth more, and costs less: for this much of it, recording need not wait. */
const WORTH_CODE = 2500;
/** The cost of a bytecode, of a unit of its source if that is a separate file, and of a new module. */
const BYTECODE = 80;
const UNIT = 0.0015;
const MODULE = 250;
/** What a module and a resolution from the cache save at most, in microseconds. */
const SAVED_BY_HIT = 150;
const SAVED_BY_RESOLUTION = 50;
/** The most that a long run earns. */
const MOST = 400_000;
/** An account is a line of three numbers. */
const MOST_TEXT = 256;
/** What every start may spend in addition. */
const GIVEN = 0;

interface Account {
  /** Microseconds earned and not yet spent. */
  readonly credit: number;
  /** The time of a start without a cache; 0 if unknown. */
  readonly plain: number;
  /** The cost of the smallest piece that was too large last time; 0 if none was. */
  readonly need: number;
}

/**
 * Lets `record` spend what it may, in microseconds of CPU time, if that is worthwhile; `file` is the cache, and
 * `counted` the time that has already earned.
 * A continuing process may wait until that is enough for everything: it records only once. If that was too little for
 * anything, `record` returns what would be needed, else 0. Returns the time that has earned now, and what was spent.
 */
export function spend(session: Session, file: string, counted: number, goesOn: boolean, record: (budget: number) => number): { earned: number; spent: number } {
  const { user, system } = process.cpuUsage();
  const now = user + system;
  const place = `${file.slice(0, -'.cache'.length)}.credit`;
  const { credit: before, plain: known, need } = read(place);
  const isFirst = counted === 0;
  const plain = session.catalog || !isFirst ? known : known > 0 ? Math.min(known, now) : now;
  const start = isFirst ? Math.max(now * SHARE - PLUGIN, EARNED) + (session.catalog ? saved(session, plain - now) : 0) : 0;
  const credit = Math.min(before + start + (isFirst ? 0 : (now - counted) * SHARE), MOST) + GIVEN;
  const isEnough = credit >= FIXED + Math.max(needed(session, goesOn ? Infinity : WORTH), need);
  const rest = isEnough ? record(credit - FIXED) : need;
  const after = process.cpuUsage();
  const spent = isEnough ? after.user + after.system - now : 0;
  write(place, { credit: Math.max(credit - GIVEN - spent, -MOST), plain, need: rest });
  return { earned: now, spent };
}

function needed({ catalog, seen }: Session, worth: number): number {
  let [code, modules] = [0, 0];
  for (const { file, script } of seen?.values() ?? []) {
    if (file === undefined) modules += MODULE;
    else if (script) code += BYTECODE + catalog!.units(file) * UNIT;
  }
  return code >= WORTH_CODE && worth === WORTH ? code : Math.min(code + modules, worth);
}

// Another run of a program may have had less to do, regardless of the cache: hence both bounds.
function saved({ hits, resolved }: Session, difference: number): number {
  return Math.max(0, Math.min(difference, hits * SAVED_BY_HIT + resolved * SAVED_BY_RESOLUTION));
}

// Anything but three numbers counts as nothing.
function read(place: string): Account {
  const text = reading(place, (descriptor, { size }) => (size < MOST_TEXT ? exactly(descriptor, 0, size) : null))?.toString('latin1') ?? '';
  const [credit, plain, need] = text.split(' ', 3).map(Number);
  return { credit: bounded(credit), plain: Math.max(0, bounded(plain)), need: Math.max(0, bounded(need)) };
}

function bounded(number: number | undefined): number {
  return number !== undefined && Math.abs(number) <= Number.MAX_SAFE_INTEGER ? Math.round(number) : 0;
}

// Not atomic: at worst, recording starts a little earlier or later.
function write(place: string, { credit, plain, need }: Account): void {
  const folder = path.dirname(place);
  makeFolder(folder);
  if (!isPrivateFolder(folder)) return;
  // Opening a pipe for writing would wait for a reader.
  const descriptor = fs.openSync(place, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    if (fs.fstatSync(descriptor).isFile()) fs.writeSync(descriptor, `${Math.round(credit)} ${Math.round(plain)} ${Math.round(need)} `);
  } finally {
    fs.closeSync(descriptor);
  }
}
