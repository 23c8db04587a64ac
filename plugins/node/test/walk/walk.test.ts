// A random walk through what may happen to files, with starts in between: after each step, the same must be loaded as
// without the plugin. HASTEN_WALK_STEPS: the steps for each release. HASTEN_WALK_SEED: another walk, or the one that
// failed.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { App, type Outcome } from '../support/app';
import { onEach, type Release } from '../support/releases';
import { Chance } from './chance';
import { World } from './world';

const STEPS = Number(process.env['HASTEN_WALK_STEPS'] ?? 60);
const SEED = Number(process.env['HASTEN_WALK_SEED'] ?? 20261123);
/** Longer than the hasty plugin considers a time too young to count. */
const OLD_MILLISECONDS = 60;

onEach(`a walk of ${STEPS} steps, seed ${SEED}`, async (release, t) => {
  const chance = new Chance(SEED + release.major);
  let world: World | undefined;
  // Before its files are removed.
  t.after(() => world?.end());
  const app = App.create(t, {});
  world = new World(app, chance);
  for (let step = 0; step < STEPS; step++) {
    world.step();
    // Sometimes several things happen between two starts, or right before one.
    if (chance.happens(0.2)) continue;
    if (chance.happens(0.8)) await sleep(OLD_MILLISECONDS);
    await compare(app, release, chance.of([1, 1, 2, 3]), () => `seed ${SEED}, step ${step}:\n${world.history.slice(-12).join('\n')}`);
  }
  const hits = app.stats().reduce((sum, { hits }) => sum + Number(hits), 0);
  // There may be little left in such a world, but not nothing throughout.
  assert.ok(hits > STEPS / 10, `${hits} modules from the cache`);
});

async function compare(app: App, release: Release, starts: number, where: () => string): Promise<void> {
  const run = async (plugin: boolean): Promise<Outcome> => {
    const outcome = await app.run(release, ['main.js'], { eager: 'hasty', plugin });
    return { ...outcome, stderr: outcome.stderr.replace(/^\(node:\d+\)/gm, '(node)') };
  };
  const plain = await run(false);
  for (let start = 1; start <= starts; start++) assert.deepEqual(await run(true), plain, `start ${start}, ${where()}`);
}
