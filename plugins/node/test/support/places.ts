// Where things are: build.mjs puts these two into the bundle.
import path from 'node:path';

declare const HASTEN_ROOT: string;
declare const HASTEN_PLUGIN: string;

export const root = HASTEN_ROOT;

/** The folder with the built plugin. */
export const plugin = HASTEN_PLUGIN;

/** What `node -r` gets. */
export const register = path.join(plugin, 'register.js');

/** The packages of test/packages. */
export const packages = path.join(root, '.deps/node-test-packages/node_modules');
