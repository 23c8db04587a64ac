// The runtime folder, in which one user's processes find each other: checked as strictly as an ssh key.
import fs = require('node:fs');
import path = require('node:path');

/** A folder inside the runtime folder, created if necessary; null if none can be trusted. */
export function openFolder(name: 'gc' | 'node'): string | null {
  const base = runtimeFolder();
  if (!base || !isSafeParent(path.dirname(base)) || !isPrivate(base)) return null;
  const folder = path.join(base, name);
  return isPrivate(folder) ? folder : null;
}

// cli/src/cmd/gc/record/runtime.rs looks for sockets in the same places.
function runtimeFolder(): string | null {
  const user = process.geteuid?.();
  if (user === undefined) return null;
  const { HASTEN_RUNTIME_DIR: own, XDG_RUNTIME_DIR: session } = process.env;
  if (own && path.isAbsolute(own)) return path.normalize(own);
  for (const folder of [session, `/run/user/${user}`]) {
    if (folder && path.isAbsolute(folder) && isOwn(folder, user)) return path.join(folder, 'hasten');
  }
  return `/tmp/hasten-${user}`;
}

function isOwn(folder: string, user: number): boolean {
  const stats = fs.statSync(folder, { throwIfNoEntry: false });
  return stats !== undefined && stats.isDirectory() && stats.uid === user;
}

// Nobody else must be able to replace our folder: the parent's owner could, as could anyone with write access to it,
// unless it is sticky.
function isSafeParent(folder: string): boolean {
  const stats = fs.statSync(folder);
  const STICKY = 0o1000;
  const isTrusted = stats.uid === 0 || stats.uid === process.geteuid?.();
  return stats.isDirectory() && isTrusted && ((stats.mode & 0o022) === 0 || (stats.mode & STICKY) !== 0);
}

function isPrivate(folder: string): boolean {
  try {
    fs.mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
  }
  const stats = fs.lstatSync(folder);
  return stats.isDirectory() && stats.uid === process.geteuid?.() && (stats.mode & 0o077) === 0;
}
