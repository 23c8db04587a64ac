// Waiting for what another process does.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Far more than anything needs on a busy machine. */
export const PATIENCE_MS = 120_000;

/** Waits until this is so. */
export async function until(condition: () => boolean): Promise<void> {
  for (const begin = Date.now(); !condition(); await sleep(10)) assert.ok(Date.now() - begin < PATIENCE_MS, `never: ${condition}`);
}
