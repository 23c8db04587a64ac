// Files that only this user can have written.
import fs = require('node:fs');

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants;
export const GROUP_OR_OTHERS_WRITE = 0o022;

/** Passes a file to `read` if it can be trusted; null if it cannot, or does not exist. */
export function reading<T>(path: string, read: (descriptor: number, stats: fs.Stats) => T | null): T | null {
  // An error costs a tenth of a millisecond.
  if (!fs.existsSync(path)) return null;
  let descriptor: number;
  try {
    descriptor = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    const stats = fs.fstatSync(descriptor);
    return isTrusted(stats) ? read(descriptor, stats) : null;
  } catch {
    return null;
  } finally {
    fs.closeSync(descriptor);
  }
}

// A second link would be a way to keep an old file, or to have one under a name that somebody else chose.
function isTrusted(stats: fs.Stats): boolean {
  const ours = stats.isFile() && stats.nlink === 1 && stats.uid === process.geteuid?.();
  return ours && (stats.mode & GROUP_OR_OTHERS_WRITE) === 0;
}

/** This many bytes from a position in a file; null if they are not there. */
export function exactly(descriptor: number, position: number, bytes: number): Buffer | null {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  return fill(descriptor, buffer, position, bytes) ? buffer : null;
}

/** The same, into the beginning of a buffer. */
export function fill(descriptor: number, buffer: Buffer, position: number, bytes: number): boolean {
  for (let done = 0; done < bytes; ) {
    const read = fs.readSync(descriptor, buffer, done, bytes - done, position + done);
    if (read === 0) return false;
    done += read;
  }
  return true;
}
