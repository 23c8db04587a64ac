// Node's CommonJS loader as the serving part found it, and whether it is still unmodified. The short name gives the
// module that the program sees, and may change.
import fs = require('fs');
import { loader, type Handler, type LoadedModule } from './loader';

/** The parts as Node made them. */
export const node = {
  js: loader._extensions['.js'] as Handler,
  json: loader._extensions['.json'] as Handler,
  resolveFilename: loader._resolveFilename,
  compile: loader.prototype._compile,
};

const { _findPath: findPath, _nodeModulePaths: nodeModulePaths, _resolveLookupPaths: resolveLookupPaths, wrap, wrapper } = loader;
const [head, tail] = [wrapper[0], wrapper[1]];
const { readFileSync, realpathSync } = fs;

let hooked = false;

/** Whether resolution is still Node's own: no part of it has been replaced. */
export function isResolutionPristine(): boolean {
  return (
    !hooked &&
    isSameUser() &&
    loader._findPath === findPath &&
    loader._resolveLookupPaths === resolveLookupPaths &&
    loader._nodeModulePaths === nodeModulePaths &&
    fs.realpathSync === realpathSync &&
    hasOnlyKnownExtensions()
  );
}

/** Whether reading and compiling this module is. */
export function isLoadingPristine(module: LoadedModule): boolean {
  return (
    module._compile === node.compile &&
    !hooked &&
    isSameUser() &&
    fs.readFileSync === readFileSync &&
    !isInspectorLoaded() &&
    loader.wrap === wrap &&
    loader.wrapper === wrapper &&
    wrapper[0] === head &&
    wrapper[1] === tail &&
    // With these enabled, Node keeps the source map of everything it compiles.
    (process as { sourceMapsEnabled?: boolean }).sourceMapsEnabled !== true
  );
}

// Files readable by one user may not be by another.
function isSameUser(): boolean {
  return geteuid?.() === user && getegid?.() === group;
}

const { getegid, geteuid } = process;
const [user, group] = [geteuid?.(), getegid?.()];

// A program that inspects itself (coverage, profiles) sees the compiled text, which must then be the file's.
function isInspectorLoaded(): boolean {
  const { moduleLoadList } = process as unknown as { moduleLoadList: string[] };
  for (; listed < moduleLoadList.length; listed++) inspected ||= moduleLoadList[listed] === 'NativeModule inspector';
  return inspected;
}

let listed = 0;
let inspected = false;

/** Whether a module looks for packages where Node told it to. */
export function hasOwnPaths(module: LoadedModule, directory: string): boolean {
  const paths = module.paths as unknown;
  if (!Array.isArray(paths)) return false;
  let expected = pathsOf.get(directory);
  if (!expected) pathsOf.set(directory, (expected = nodeModulePaths(directory)));
  if (paths.length !== expected.length) return false;
  for (let i = 0; i < expected.length; i++) if (paths[i] !== expected[i]) return false;
  return true;
}

const pathsOf = new Map<string, string[]>();

/** Disables serving as soon as someone asks Node for hooks that change what modules are. */
export function watchHooks(): void {
  for (const name of ['register', 'registerHooks'] as const) {
    const original = loader[name];
    if (typeof original !== 'function') continue;
    loader[name] = Object.defineProperties(function (this: unknown, ...given: unknown[]): unknown {
      hooked = true;
      return Reflect.apply(original, this, given);
    }, Object.getOwnPropertyDescriptors(original) as PropertyDescriptorMap);
  }
  loader.syncBuiltinESMExports();
}

// A compiler registered for other files (.ts) adds possible targets of a request.
function hasOnlyKnownExtensions(): boolean {
  let count = 0;
  for (const extension in loader._extensions) {
    if (extension !== KNOWN[count]) return false;
    count++;
  }
  return count === KNOWN.length;
}

const KNOWN = Object.keys(loader._extensions);

/** Marks a module as running, as Node does, so that one imported meanwhile is not run twice. */
export function markExecuting(module: LoadedModule, executing: boolean): void {
  if (executingSymbol) (module as unknown as Record<symbol, boolean>)[executingSymbol] = executing;
}

let executingSymbol: symbol | undefined;

/** Learns the mark from a running module: our own. */
export function learnMarks(running: NodeModule): void {
  executingSymbol = Object.getOwnPropertySymbols(running).find((symbol) => symbol.description === 'kIsExecuting');
}
