// Keeps a user's caches within their limit. The least recently used go first.
import fs = require('node:fs');
import path = require('node:path');

/** Removes the excess, but not `kept`, and leftovers that were half written. */
export function evict(folder: string, limit: number, kept: string): void {
  const caches = fs
    .readdirSync(folder)
    .filter((name) => /^[0-9a-f]{16}\.(?:credit|(?:cache|code)(?:\.tmp)?)$/.test(name))
    .flatMap((name) => {
      const file = path.join(folder, name);
      const stats = fs.lstatSync(file, { throwIfNoEntry: false });
      // Reading a file updates its access time, if only once a day on most systems.
      return stats?.isFile() ? [{ file, bytes: stats.size, used: Math.max(stats.atimeMs, stats.mtimeMs) }] : [];
    })
    .sort((a, b) => b.used - a.used);
  let total = 0;
  for (const { file, bytes, used } of caches) {
    const abandoned = file.endsWith('.tmp') && Date.now() - used > ABANDONED_MILLISECONDS;
    total += bytes;
    if (file !== kept && (abandoned || total > limit)) {
      fs.unlinkSync(file);
      total -= bytes;
    }
  }
}

const ABANDONED_MILLISECONDS = 3_600_000;
