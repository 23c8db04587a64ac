// Node's CommonJS loader, and whether anybody was here before us. Everything here is public, if not all of it documented.

export type Handler = (module: LoadedModule, filename: string) => void;

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
  builtinModules: string[];
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
  syncBuiltinESMExports(): void;
  wrap: unknown;
  wrapper: ArrayLike<string>;
}

/** The class of all modules. Asking for `node:module` would cost a start up to 0.4 ms: it makes an ES module of it. */
export const loader = module.constructor as unknown as Loader;

/** Whether the loader is not as Node made it already; `own` is the module that asks. */
export function isPatched(own: NodeModule): boolean {
  if (isHooked(own)) return true;
  // Nobody else has run yet.
  for (const filename in loader._cache) if (filename !== own.filename) return isChanged();
  return false;
}

function isChanged(): boolean {
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
