// Node's CommonJS loader as this plugin found it, and whether it still is what it was. Everything here is public, if not all of it documented.
import fs = require('node:fs');
import Module = require('node:module');

type Handler = (module: LoadedModule, filename: string) => void;

export interface ResolveOptions {
  readonly paths?: unknown;
  readonly conditions?: unknown;
}

/** What a module has beyond what its type admits. */
export interface LoadedModule extends NodeModule {
  _compile(content: string, filename: string, format?: string): unknown;
  load(filename: string): void;
}

interface Loader {
  _cache: Record<string, LoadedModule | undefined>;
  _extensions: Record<string, Handler | undefined>;
  _findPath: unknown;
  _load: unknown;
  _nodeModulePaths(directory: string): string[];
  _pathCache: Record<string, string>;
  _resolveFilename(request: string, parent: LoadedModule | undefined, isMain: boolean, options?: ResolveOptions): string;
  _resolveLookupPaths(request: string, parent: LoadedModule): string[] | null;
  globalPaths: string[];
  prototype: LoadedModule;
  register?: unknown;
  registerHooks?: unknown;
  wrap: unknown;
  wrapper: ArrayLike<string>;
}

export const loader = Module as unknown as Loader;

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

/** Whether resolving is Node's own business: nobody has put a part of it in place of what was there. */
export function isResolutionPristine(): boolean {
  return (
    !hooked &&
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
    fs.readFileSync === readFileSync &&
    !isInspectorLoaded() &&
    loader.wrap === wrap &&
    loader.wrapper === wrapper &&
    wrapper[0] === head &&
    wrapper[1] === tail &&
    // With these on, Node keeps the source map of everything it compiles.
    (process as { sourceMapsEnabled?: boolean }).sourceMapsEnabled !== true
  );
}

// A program that looks into itself (coverage, profiles) is shown the text that was compiled: it has to be the file's.
function isInspectorLoaded(): boolean {
  const { moduleLoadList } = process as unknown as { moduleLoadList: string[] };
  for (; listed < moduleLoadList.length; listed++) inspected ||= moduleLoadList[listed] === 'NativeModule inspector';
  return inspected;
}

let listed = 0;
let inspected = false;

/** Whether the loader is not as Node made it already; `own` is the module that asks. */
export function isPatched(own: NodeModule): boolean {
  if (isHooked(own)) return true;
  // Nobody else has run yet.
  if (Object.keys(loader._cache).every((filename) => filename === own.filename)) return false;
  const { load, require } = loader.prototype;
  const parts: [unknown, string][] = [
    [loader._load, 'relResolveCacheIdentifier'],
    [loader._resolveFilename, 'normalizeRequirableId'],
    [loader._resolveLookupPaths, 'normalizeRequirableId'],
    [loader._findPath, 'absoluteRequest'],
    [loader._nodeModulePaths, 'nmChars'],
    [loader._extensions['.js'], '_compile('],
    [loader._extensions['.json'], 'JSONParse'],
    [loader.prototype._compile, 'wrapSafe'],
    [load, 'findLongestRegisteredExtension'],
    [require, 'requireDepth'],
  ];
  return loader.wrapper[0] !== NODE_HEAD || !parts.every(([part, word]) => typeof part === 'function' && Function.prototype.toString.call(part).includes(word));
}

const NODE_HEAD = '(function (exports, require, module, __filename, __dirname) { ';

// Node notes the URL of a module only where hooks may ask for it.
function isHooked(own: NodeModule): boolean {
  return Object.getOwnPropertySymbols(own).some((symbol) => symbol.description === 'kURL' && (own as unknown as Record<symbol, unknown>)[symbol] !== undefined);
}

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

/** From now on nothing is done if somebody asks Node to let him change what modules are. */
export function watchHooks(): void {
  for (const name of ['register', 'registerHooks'] as const) {
    const original = loader[name];
    if (typeof original !== 'function') continue;
    loader[name] = Object.defineProperties(function (this: unknown, ...given: unknown[]): unknown {
      hooked = true;
      return Reflect.apply(original, this, given);
    }, Object.getOwnPropertyDescriptors(original) as PropertyDescriptorMap);
  }
  (Module as unknown as { syncBuiltinESMExports(): void }).syncBuiltinESMExports();
}

// A compiler that is registered for other files (.ts) adds what a request may lead to.
function hasOnlyKnownExtensions(): boolean {
  let count = 0;
  for (const extension in loader._extensions) {
    if (extension !== KNOWN[count]) return false;
    count++;
  }
  return count === KNOWN.length;
}

const KNOWN = Object.keys(loader._extensions);

/** Marks a module as Node does while it runs, so that one that is imported meanwhile is not run twice. */
export function markExecuting(module: LoadedModule, executing: boolean): void {
  if (executingSymbol) (module as unknown as Record<symbol, boolean>)[executingSymbol] = executing;
}

let executingSymbol: symbol | undefined;

/** Learns the mark from a module that is running: our own. */
export function learnMarks(running: NodeModule): void {
  executingSymbol = Object.getOwnPropertySymbols(running).find((symbol) => symbol.description === 'kIsExecuting');
}
