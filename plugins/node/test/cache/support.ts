// Programs whose caches are looked at: small, and old enough for their times to mean something.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { App, type Outcome, type RunOptions } from '../support/app';
import type { Release } from '../support/releases';

// What is younger when a program starts is compared by content instead.
const OLD_MILLISECONDS = 2500;

/** An app whose files are old enough to be believed by their times. */
export async function oldApp(t: TestContext, files: Record<string, unknown>): Promise<App> {
  const app = App.create(t, files);
  await grownOld();
  return app;
}

export async function grownOld(): Promise<void> {
  await sleep(OLD_MILLISECONDS);
}

/** Starts the program until nothing is left to record, and gives the last outcome. */
export async function warm(app: App, release: Release, args: string[] = ['main.js'], options: RunOptions = {}): Promise<Outcome> {
  let outcome: Outcome | undefined;
  for (let start = 0; start < 4; start++) outcome = await app.run(release, args, { eager: true, ...options });
  return outcome!;
}

/** Runs it plain and with the plugin: both must agree. Gives the output, and how many modules came from the cache. */
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
