// The releases of Node.js that the plugin is tested with.
import fs from 'node:fs';
import path from 'node:path';
import { test, type TestContext } from 'node:test';
import { root } from './places';

export interface Release {
  readonly major: number;
  /** The program. */
  readonly node: string;
}

const wanted = process.env['HASTEN_TEST_NODES']?.split(' ').map(Number);

// The oldest first.
function installed(place: string): Release[] {
  const folder = path.join(root, place, 'node_modules');
  return fs
    .readdirSync(folder)
    .flatMap((name) => (/^node\d+$/.test(name) ? [Number(name.slice(4))] : []))
    .sort((a, b) => a - b)
    .map((major) => ({ major, node: path.join(folder, `node${major}/bin/node`) }));
}

export const releases: readonly Release[] = installed('.deps/nodes').filter(({ major }) => !wanted || wanted.includes(major));

/** Releases older than the plugin supports. */
export const oldReleases: readonly Release[] = installed('.deps/old-nodes');

export interface Range {
  /** The first release that the test is about. */
  from?: number;
  /** The last one. */
  to?: number;
  /** Exactly these. */
  only?: number[];
}

export function inRange(range: Range): Release[] {
  return releases.filter(({ major }) => major >= (range.from ?? 0) && major <= (range.to ?? Infinity) && range.only?.includes(major) !== false);
}

// `make test` takes one for each test, by its name: together, the tests run on all of them.
function sampled(name: string, found: Release[]): Release[] {
  if (wanted || process.env['HASTEN_TEST_THOROUGH'] || process.env['HASTEN_TOOLS']) return found;
  const letters = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return found.filter((_, index) => index === letters % found.length);
}

/** A test for each release, "NAME (node 20)", or for one of them in `make test`. */
export function onEach(name: string, body: (release: Release, t: TestContext) => Promise<void> | void, range: Range = {}): void {
  for (const release of sampled(name, inRange(range))) test(`${name} (node ${release.major})`, async (t) => body(release, t));
}
