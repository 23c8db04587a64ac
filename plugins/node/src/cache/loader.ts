// Node's CommonJS loader, and whether anyone has modified it before us. Everything here is public, if not all
// documented.

export type Handler = (module: LoadedModule, filename: string) => void;

export interface ResolveOptions {
  readonly paths?: unknown;
  readonly conditions?: unknown;
}

/** A module's properties beyond those of its type. */
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

/** The class of all modules. Requiring `node:module` would cost a start up to 0.4 ms: it creates an ES module. */
export const loader = module.constructor as unknown as Loader;

/** Whether the loader has already been modified; `own` is the module that asks. */
export function isPatched(own: NodeModule): boolean {
  if (isHooked(own)) return true;
  // No other code has run yet.
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

// Node records a module's URL only if hooks may ask for it.
function isHooked(own: NodeModule): boolean {
  return Object.getOwnPropertySymbols(own).some((symbol) => symbol.description === 'kURL' && (own as unknown as Record<symbol, unknown>)[symbol] !== undefined);
}
