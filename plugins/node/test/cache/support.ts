// Programs whose caches are examined: small, and old enough for their file times to count.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { App, type Outcome, type RunOptions } from '../support/app';
import { inRange, onEach, type Range, type Release } from '../support/releases';

// Files younger than this when a program starts are compared by content instead.
export const OLD_MILLISECONDS = 2500;

// When the youngest of this file's apps was created.
let youngest = 0;

/**
 * One test for each release, with an app whose file times are old enough to be trusted: all tests of a file
 * wait together.
 */
export function onEachOld(name: string, files: Record<string, unknown>, body: (app: App, release: Release, t: TestContext) => Promise<void>, range: OldRange = {}): void {
  const apps = new Map<Release, App>();
  for (const release of inRange(range)) {
    const app = App.create({ after }, files);
    for (const [link, target] of Object.entries(range.links ?? {})) app.link(target, link);
    apps.set(release, app);
  }
  youngest = Date.now();
  onEach(name, async (release, t) => {
    await sleep(Math.max(0, youngest + OLD_MILLISECONDS - Date.now()));
    await body(apps.get(release)!, release, t);
  }, range);
}

export interface OldRange extends Range {
  /** Symlinks, and what they point to. */
  links?: Record<string, string>;
}

/** Starts the program until nothing is left to record, and returns the last outcome. */
export async function warm(app: App, release: Release, args: string[] = ['main.js'], options: RunOptions = {}): Promise<Outcome> {
  await app.run(release, args, { eager: true, ...options });
  return app.run(release, args, { eager: true, ...options });
}

/**
 * Runs it without and with the plugin: both must agree. Returns the output, and how many modules came from the cache.
 */
export async function agree(app: App, release: Release, args: string[] = ['main.js'], options: RunOptions = {}): Promise<{ stdout: string; hits: number }> {
  const plain = await app.run(release, args, { ...options, plugin: false });
  const served = await app.run(release, args, { eager: true, ...options });
  assert.deepEqual(served, plain);
  return { stdout: served.stdout, hits: Number(app.stats().at(-1)?.['hits']) };
}

/** The only cache file of an app. */
export function cacheFile(app: App): string {
  const folder = path.join(app.cache, 'node');
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.cache'));
  assert.equal(files.length, 1);
  return path.join(folder, files[0]!);
}
