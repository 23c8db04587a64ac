// The plugin must not be noticed: every program runs without it, with it and an empty cache, and with it and a full one.
import assert from 'node:assert/strict';
import type { App, Outcome, RunOptions } from './app';
import { eager, plugin } from './places';
import type { Release } from './releases';

export interface Comparison {
  readonly plain: Outcome;
  /** What the plugin said of each start with it: the first has no cache, the last is served from it. */
  readonly stats: Record<string, unknown>[];
}

export interface CompareOptions extends RunOptions {
  /** Another program than node. */
  program?: string;
  /** Starts with the plugin: what the first could not record within its budget, the next ones do. */
  starts?: number;
  /** Puts what differs from run to run (a time, a port) out of the way. */
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

// Which functions of the loader a stack trace shows is the only thing that the plugin changes in it.
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
