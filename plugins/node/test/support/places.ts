// The locations of things: build.mjs inserts these into the bundle.
import path from 'node:path';

declare const HASTEN_ROOT: string;
declare const HASTEN_PLUGIN: string;
declare const HASTEN_TESTS: string;

export const root = HASTEN_ROOT;

/** The folder with the built plugin. */
export const plugin = HASTEN_PLUGIN;

/** The argument of `node -r`. */
export const register = path.join(plugin, 'register.js');

/** The same, in a version that records every program at once. */
export const eager = path.join(path.dirname(plugin), 'eager');

/** The same, in a version that trusts the times of brand-new files. */
export const hasty = path.join(path.dirname(plugin), 'hasty');

/** The packages of test/packages. */
export const packages = path.join(root, '.deps/node-test-packages/node_modules');

/** A built `test/NAME.subject.ts`: code that runs inside a subject. */
export function subject(name: string): string {
  return path.join(HASTEN_TESTS, `${name}.subject.js`);
}
