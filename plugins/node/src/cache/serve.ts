// The start-up cache at work: answers for Node's loader if the catalog has one that still holds, and Node's own way
// otherwise.
import path = require('node:path');
import vm = require('node:vm');
import { Catalog, type Code } from './catalog';
import { Flag } from './format';
import { installation } from './installation';
import { loader, type LoadedModule, type ResolveOptions } from './loader';
import { hasOwnPaths, isLoadingPristine, isResolutionPristine, learnMarks, markExecuting, node, watchHooks } from './pristine';
import type { Session } from './session';
import { open } from './store';
import { bodyOf, offsetOf } from './text';

type Wrapper = (this: unknown, exports: unknown, require: NodeJS.Require, module: LoadedModule, filename: string, directory: string) => unknown;

let session: Session;

/** Which cache, for which script, and what Node gave the requesting module. */
export interface Order {
  readonly file: string;
  readonly key: string;
  readonly main: string;
  readonly module: NodeModule;
  readonly require: NodeJS.Require;
}

/** Inserts a cache file between the program and Node's loader; false if it cannot be used. */
export function serve(given: Session, order: Order): boolean {
  const catalog = catalogOf(order.file, `${order.key}\n${installation(order.main)}`);
  if (!catalog) return false;
  session = given;
  session.catalog = catalog;
  learnMarks(order.module);
  nativeRequire = order.require;
  watchHooks();
  loader._extensions['.js'] = loadScript;
  loader._extensions['.json'] = loadJson;
  loader._resolveFilename = resolveFilename;
  return true;
}

function catalogOf(file: string, key: string): Catalog | null {
  try {
    const stored = open(file);
    return stored && Catalog.of(stored, key);
  } catch {
    return null;
  }
}

function resolveFilename(this: unknown, request: string, parent: LoadedModule | undefined, isMain: boolean, options?: ResolveOptions): string {
  if (BUILTIN.has(request)) return request;
  const { catalog } = session;
  if (catalog && parent && (options === undefined || isPlain(options)) && typeof request === 'string' && isResolutionPristine()) {
    const known = resolveKnown(catalog, request, parent);
    if (known !== undefined) return known;
  }
  const found = node.resolveFilename.call(this, request, parent, isMain, options);
  session.unresolved++;
  if (parent && !isMain) session.noteAnswer(parent, request, found);
  return found;
}

function resolveKnown(catalog: Catalog, request: string, parent: LoadedModule): string | undefined {
  const { filename } = parent;
  if (typeof filename !== 'string') return undefined;
  const directory = filename.slice(0, filename.lastIndexOf('/'));
  if (!isRelative(request) && (loader.globalPaths !== session.globalPaths || !hasOwnPaths(parent, directory))) return undefined;
  const known = catalog.resolve(directory, request, isLoaded);
  if (known !== undefined) session.resolved++;
  return known;
}

function isPlain(options: ResolveOptions | null): boolean {
  return options !== null && options.paths === undefined && options.conditions === undefined;
}

function isLoaded(filename: string): boolean {
  return loader._cache[filename] !== undefined;
}

function loadScript(this: unknown, module: LoadedModule, filename: string): void {
  const { catalog } = session;
  const file = catalog?.find(filename);
  const odd = file !== undefined && isNodes(catalog!.flags(file));
  const code = file !== undefined && !odd && isLoadingPristine(module) ? catalog!.load(file) : null;
  const script = code ? compile(code, filename) : null;
  const wrapper = script && wrapperOf(script, code!);
  if (!wrapper) {
    session.misses++;
    // A text that V8 rejected is not ours to keep.
    if (session.seen && (!code || odd)) session.note(filename, odd ? file : undefined, undefined);
    node.js.call(this, module, filename);
    session.prove(filename);
    return;
  }
  session.hits++;
  if (session.seen) session.note(filename, file, needsBytecode(script, code!) ? script : undefined);
  run(wrapper, module, filename);
}

function loadJson(this: unknown, module: LoadedModule, filename: string): void {
  const { catalog } = session;
  const file = catalog?.find(filename);
  const code = file !== undefined && isLoadingPristine(module) && catalog!.flags(file) & Flag.Json ? catalog!.load(file) : null;
  const value = code && parsed(code.source);
  if (value) {
    session.hits++;
    [module.exports] = value;
  } else {
    session.misses++;
    node.json.call(this, module, filename);
  }
  if (session.seen) session.note(filename, code ? file : undefined, undefined);
}

// Node reports what is wrong with a text, and where.
function parsed(source: string): [unknown] | null {
  try {
    return [parse(source)];
  } catch {
    return null;
  }
}

const { parse } = JSON;

function defaultLoader(): symbol | undefined {
  return (vm as unknown as { constants?: { USE_MAIN_CONTEXT_DEFAULT_LOADER?: symbol } }).constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
}

function needsBytecode(script: vm.Script, { bytecode }: Code): boolean {
  return !bytecode || script.cachedDataRejected === true;
}

// Modules that Node reads and compiles itself; only the way to them is worth recording. Without bytecode a module gains
// nothing.
function isNodes(flags: number): boolean {
  return (flags & Flag.Odd) !== 0 || ((flags & Flag.Import) !== 0 && !KEEPS_LOADER);
}

// Before 12.4, V8 forgets who may import for a script from bytecode.
const KEEPS_LOADER = parseInt(process.versions.node, 10) >= 22;

// A text that is not CommonJS is left to Node, which knows what to say about it or what else it may be.
function compile({ source, bytecode, flags }: Code, filename: string): vm.Script | null {
  if (flags & Flag.Import && !allowImport()) return null;
  try {
    if (flags & Flag.Unproven && !bytecode) vm.compileFunction(bodyOf(source), PARAMETERS);
    const options = { filename, ...offsetOf(source), cachedData: bytecode, importModuleDynamically: defaultLoader() };
    const script = new vm.Script(source, options as vm.ScriptOptions);
    if (script.cachedDataRejected) session.rejected++;
    return script;
  } catch {
    return null;
  }
}

const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];

// `}); f(function () {` in a file would end our function and begin another one. A text with bytecode is not like that:
// it has been here before. Nor is one that Node has run, or one that parses as a function's body; this is the second
// line of defence, as it checks after the text has run.
function wrapperOf(script: vm.Script, { source, bytecode }: Code): Wrapper | null {
  const wrapper: unknown = script.runInThisContext();
  if (bytecode) return wrapper as Wrapper;
  const isWhole = typeof wrapper === 'function' && Function.prototype.toString.call(wrapper).length === source.length - '()'.length;
  return isWhole ? (wrapper as Wrapper) : null;
}

function run(wrapper: Wrapper, module: LoadedModule, filename: string): void {
  const { exports } = module;
  const require = requireOf(module);
  markExecuting(module, true);
  Reflect.apply(wrapper, exports, [exports, require, module, filename, path.dirname(filename)]);
  markExecuting(module, false);
}

// The same as Node's.
function requireOf(module: LoadedModule): NodeJS.Require {
  // Named by its position: a bundler would rename a function of this name.
  const require = {
    require: function (path: string): unknown {
      return module.require(path);
    },
  }.require as Requiring;
  function resolve(request: string, options?: ResolveOptions): string {
    if (typeof request !== 'string') nativeRequire.resolve(request);
    return loader._resolveFilename(request, module, false, options);
  }
  function paths(request: string): string[] | null {
    if (typeof request !== 'string') nativeRequire.resolve.paths(request);
    return loader._resolveLookupPaths(request, module);
  }
  require.resolve = resolve;
  resolve.paths = paths;
  require.main = process.mainModule;
  require.extensions = loader._extensions;
  require.cache = loader._cache;
  return require as unknown as NodeJS.Require;
}

interface Requiring {
  (path: string): unknown;
  resolve: unknown;
  main: unknown;
  extensions: unknown;
  cache: unknown;
}

let nativeRequire: NodeJS.Require;

let importAllowed: boolean | undefined;

// Node's own loader for such scripts warns that it is experimental. The program did not ask for it.
function allowImport(): boolean {
  if (importAllowed !== undefined) return importAllowed;
  importAllowed = defaultLoader() !== undefined;
  if (!importAllowed) return false;
  const original = process.emitWarning;
  const filter = function emitWarning(this: unknown, ...given: unknown[]): void {
    const [warning, type] = given;
    const own = type === 'ExperimentalWarning' && typeof warning === 'string' && warning.startsWith('vm.USE_MAIN_CONTEXT_DEFAULT_LOADER ');
    if (!own) Reflect.apply(original, this, given);
    else if (process.emitWarning === filter) process.emitWarning = original;
  };
  process.emitWarning = filter as typeof process.emitWarning;
  return true;
}

const BUILTIN: ReadonlySet<string> = new Set(loader.builtinModules);

function isRelative(request: string): boolean {
  return request.charCodeAt(0) === 0x2e && (request.startsWith('./') || request.startsWith('../') || request === '.' || request === '..');
}
