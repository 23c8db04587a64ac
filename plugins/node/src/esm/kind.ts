// Whether a program is made of ES modules.
import fs = require('node:fs');
import path = require('node:path');

/** As Node decides it for the script with this real path, but without a look into the script. */
export function isModule(script: string): boolean {
  const extension = path.extname(script);
  if (extension === '.mjs' || extension === '.mts') return true;
  if (extension === '.cjs' || extension === '.cts' || extension === '.node' || extension === '.json') return false;
  return packageType(path.dirname(script)) === 'module';
}

/** What the nearest package.json says; undefined if none says anything, or it cannot be read. */
export function packageType(from: string): unknown {
  for (let folder = from; !folder.endsWith('/node_modules'); folder = path.dirname(folder)) {
    const file = `${folder === '/' ? '' : folder}/package.json`;
    try {
      // Cheaper than an error where there is none, as in most folders.
      if (fs.existsSync(file)) return (JSON.parse(fs.readFileSync(file, 'utf8')) as { type?: unknown } | null)?.type;
    } catch {
      return undefined;
    }
    if (folder === '/') break;
  }
  return undefined;
}
