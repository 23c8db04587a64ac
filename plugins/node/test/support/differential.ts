// The plugin must not be noticed: every program runs without it, with an empty cache, and with a full one.
import assert from 'node:assert/strict';
import type { App, Outcome, RunOptions } from './app';
import { eager, plugin } from './places';
import type { Release } from './releases';

export interface Comparison {
  readonly plain: Outcome;
  /** The plugin's statistics for each start with it: the first has no cache, the last is served from it. */
  readonly stats: Record<string, unknown>[];
}

export interface CompareOptions extends RunOptions {
  /** A program other than node. */
  program?: string;
  /** Starts with the plugin: the next ones record what the first could not within its budget. */
  starts?: number;
  /** Removes what differs from run to run (a time, a port). */
  normalize?: (text: string) => string;
  /** Fails if nothing came from the cache. */
  served?: boolean;
}

/** Fails unless output and exit code are the same in all runs. */
export async function sameAsPlain(app: App, release: Release, args: string[], options: CompareOptions = {}): Promise<Comparison> {
  const run = async (plugin: boolean): Promise<Outcome> => {
    const outcome = await app.exec(release, options.program ?? release.node, args, { eager: true, ...options, plugin });
    const normalize = options.normalize ?? ((text) => text);
    return { ...outcome, stdout: normalize(withoutLoader(outcome.stdout)), stderr: normalize(withoutPid(withoutLoader(outcome.stderr))) };
  };
  const plain = await run(false);
  const before = app.stats().length;
  for (let start = 1; start <= (options.starts ?? 2); start += 1) {
    assert.deepEqual(await run(true), plain, `start ${start} with the plugin is not as without it`);
  }
  const stats = app.stats().slice(before);
  if (options.served) assert.ok(stats.some(({ hits }) => Number(hits) > 0), 'nothing was served from the cache');
  return { plain, stats };
}

// The plugin changes a stack trace only in the loader functions that it shows.
export function withoutLoader(text: string): string {
  return text
    .split('\n')
    .filter((line) => !/^\s*at .*(?:node:internal\/|node:diagnostics_channel)/.test(line) && !(line.trimStart().startsWith('at ') && (line.includes(plugin) || line.includes(eager))))
    .join('\n')
    .replace(/^(\s+at .*) \{$/gm, '$1')
    .replace(/^\s*\{$/gm, '')
    .replace(/\.\.\. \d+ lines matching/g, '... lines matching');
}

// Node's warnings begin with it.
export function withoutPid(text: string): string {
  return text.replace(/^\(node:\d+\)/gm, '(node)');
}
