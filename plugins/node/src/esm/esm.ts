// Programs of ES modules: Node's own compile cache, in our folder and within our limit, and a shortcut to neighbouring
// modules.
import fs = require('node:fs');
import Module = require('node:module');
import path = require('node:path');
import { limit } from '../cache/limit';
import { isPrivateFolder, makeFolder } from '../cache/store';

export { goShort } from './short';

// 22.8 and later.
const { enableCompileCache } = Module as { enableCompileCache?: (folder: string) => { status: number } };
const ENABLED = 1;
const DAY_MILLISECONDS = 86_400_000;

/**
 * Uses Node's compile cache below `folder`. False if that is impossible, or if the user has decided about that cache:
 * Node itself obeys NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE.
 */
export function useCompileCache(folder: string): boolean {
  if (!enableCompileCache || process.env['NODE_COMPILE_CACHE']) return false;
  const place = path.join(folder, `compile-${process.version}`);
  try {
    makeFolder(place);
    // Node trusts what it finds there.
    if (![place, folder, path.dirname(folder)].every(isPrivateFolder)) return false;
    if (enableCompileCache(place).status !== ENABLED) return false;
    prune(folder, limit(process.env));
    return true;
  } catch {
    // No home, no rights, no space: as if there were no cache.
    return false;
  }
}

interface File {
  readonly path: string;
  readonly bytes: number;
  readonly used: number;
}

// Node never removes anything from its cache, so once a day we do: the most recently used files stay, up to half the
// limit.
function prune(folder: string, most: number): void {
  const stamp = path.join(folder, 'compile-checked');
  const last = fs.lstatSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (Math.abs(Date.now() - last) < DAY_MILLISECONDS) return;
  fs.rmSync(stamp, { force: true });
  fs.writeFileSync(stamp, '', { flag: 'wx', mode: 0o600 });
  const places = fs.readdirSync(folder).filter((name) => /^compile-v\d/.test(name));
  const files = places.flatMap((name) => filesBelow(path.join(folder, name))).sort((a, b) => b.used - a.used);
  let total = 0;
  for (const file of files) {
    total += file.bytes;
    if (total > most / 2) fs.rmSync(file.path, { force: true });
  }
}

// Node's folder for a release contains one folder per kind of build, with the files in it.
function filesBelow(folder: string): File[] {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const below = path.join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(below);
    const stats = entry.isFile() ? fs.lstatSync(below, { throwIfNoEntry: false }) : undefined;
    return stats ? [{ path: below, bytes: stats.size, used: Math.max(stats.atimeMs, stats.mtimeMs) }] : [];
  });
}
