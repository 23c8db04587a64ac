// Waits for another process.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Far more than anything takes on a busy machine. */
export const PATIENCE_MS = 120_000;

/** Waits until the condition holds. */
export async function until(condition: () => boolean): Promise<void> {
  for (const begin = Date.now(); !condition(); await sleep(10)) assert.ok(Date.now() - begin < PATIENCE_MS, `never: ${condition}`);
}
