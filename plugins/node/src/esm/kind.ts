// Whether a program is made of ES modules.
import fs = require('node:fs');

/** Decides like Node for the script with this real path, but without looking into the script. */
export function isModule(script: string): boolean {
  const extension = script.slice(script.lastIndexOf('.'));
  if (extension === '.mjs' || extension === '.mts') return true;
  if (extension === '.cjs' || extension === '.cts' || extension === '.node' || extension === '.json') return false;
  return packageType(script.slice(0, script.lastIndexOf('/'))) === 'module';
}

/** The type in the nearest package.json; undefined if none has one, or it cannot be read. */
export function packageType(from: string): unknown {
  for (let folder = from === '/' ? '' : from; !folder.endsWith('/node_modules'); folder = folder.slice(0, folder.lastIndexOf('/'))) {
    const file = `${folder}/package.json`;
    try {
      // Cheaper than an error if it is missing, as in most folders.
      if (fs.existsSync(file)) return (JSON.parse(fs.readFileSync(file, 'utf8')) as { type?: unknown } | null)?.type;
    } catch {
      return undefined;
    }
    if (folder === '') break;
  }
  return undefined;
}
