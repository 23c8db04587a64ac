// The start-up cache at work: answers for Node's loader where the catalog has one that still holds, and Node's own way everywhere else.
import fs = require('node:fs');
import path = require('node:path');
import vm = require('node:vm');
import type { Catalog, Code } from './catalog';
import { Flag } from './format';
import { hasOwnPaths, isLoadingPristine, isResolutionPristine, loader, markExecuting, node, type LoadedModule, type ResolveOptions } from './loader';
import { mayImport, WRAPPER_LENGTH, wrapped } from './text';

type Wrapper = (this: unknown, exports: unknown, require: NodeJS.Require, module: LoadedModule, filename: string, directory: string) => unknown;

/** A module that was compiled or read in this process, for the recorder. */
export interface Seen {
  readonly filename: string;
  /** The text as Node gave it to the compiler; undefined if it came from the catalog. */
  readonly content: string | undefined;
  /** What the file was before it was read. */
  readonly stats: fs.Stats | undefined;
  /** Its place in the catalog, if it was served from there. */
  readonly file: number | undefined;
  /** Kept where V8 had to compile: the bytecode is still to be had. */
  readonly script: vm.Script | undefined;
}

/** What happened so far. */
export class Session {
  hits = 0;
  misses = 0;
  resolved = 0;
  unresolved = 0;
  rejected = 0;
  /** For the recorder; null when nothing is recorded (any more). */
  seen: Seen[] | null = null;
  resolutions: [directory: string, request: string, filename: string][] | null = null;
  /** Called once, when there is something to record. */
  onNews: (() => void) | undefined;

  constructor(readonly catalog: Catalog | null) {}
}

let session: Session;

/** Puts the cache between programs and Node's loader. */
export function install(given: Session): void {
  session = given;
  loader._extensions['.js'] = loadScript;
  loader._extensions['.json'] = loadJson;
  loader._resolveFilename = resolveFilename;
}

function resolveFilename(this: unknown, request: string, parent: LoadedModule | undefined, isMain: boolean, options?: ResolveOptions): string {
  const from = parent?.filename;
  const plain =
    typeof from === 'string' &&
    typeof request === 'string' &&
    (options === undefined || (options !== null && options.paths === undefined && options.conditions === undefined)) &&
    !isBuiltin(request) &&
    isResolutionPristine();
  if (!plain) return node.resolveFilename.call(this, request, parent, isMain, options);
  const directory = path.dirname(from);
  const relative = isRelative(request);
  if (!relative && !hasOwnPaths(parent as LoadedModule, directory)) return node.resolveFilename.call(this, request, parent, isMain, options);
  const known = session.catalog?.resolve(directory, request, isLoaded);
  if (known !== undefined) {
    session.resolved++;
    return known;
  }
  const found = node.resolveFilename.call(this, request, parent, isMain, options);
  session.unresolved++;
  session.resolutions?.push([directory, request, found]);
  return found;
}

function isLoaded(filename: string): boolean {
  return loader._cache[filename] !== undefined;
}

function loadScript(this: unknown, module: LoadedModule, filename: string): void {
  if (!(filename.endsWith('.js') || filename.endsWith('.cjs')) || !isLoadingPristine(module)) {
    node.js.call(this, module, filename);
    return;
  }
  const { catalog } = session;
  const file = catalog?.find(filename);
  const code = file === undefined ? null : catalog!.load(file);
  if (code) {
    const script = compile(code, filename);
    if (script) {
      session.hits++;
      if (session.seen) note({ filename, content: undefined, stats: undefined, file, script: script.cachedDataRejected === false ? undefined : script });
      run(script, module, filename);
      return;
    }
  }
  session.misses++;
  if (session.seen) loadAndRecord.call(this, module, filename);
  else node.js.call(this, module, filename);
}

// Node decides what the file is and reads it; we look at what it is about to compile.
function loadAndRecord(this: unknown, module: LoadedModule, filename: string): void {
  // Before it is read: a change that comes between is seen next time.
  const stats = fs.statSync(filename, { throwIfNoEntry: false });
  module._compile = (content, name, format) => {
    delete (module as { _compile?: unknown })._compile;
    const script = format === 'module' || name !== filename ? null : compileNew(content, filename);
    const wrapper = script && functionOf(script, content);
    if (!wrapper) return node.compile.call(module, content, name, format);
    note({ filename, content, stats, file: undefined, script: script! });
    return call(wrapper, module, filename);
  };
  try {
    node.js.call(this, module, filename);
  } finally {
    if (Object.hasOwn(module, '_compile')) delete (module as { _compile?: unknown })._compile;
  }
}

function loadJson(this: unknown, module: LoadedModule, filename: string): void {
  const { catalog } = session;
  const file = isLoadingPristine(module) && filename.endsWith('.json') ? catalog?.find(filename) : undefined;
  const code = file === undefined || !(catalog!.flags(file) & Flag.Json) ? null : catalog!.load(file);
  if (code) {
    session.hits++;
    if (session.seen) note({ filename, content: undefined, stats: undefined, file, script: undefined });
    module.exports = JSON.parse(code.source);
    return;
  }
  node.json.call(this, module, filename);
  session.misses++;
  if (session.seen && isLoadingPristine(module) && filename.endsWith('.json')) {
    note({ filename, content: undefined, stats: undefined, file: undefined, script: undefined });
  }
}

function note(seen: Seen): void {
  session.seen!.push(seen);
  if (session.onNews && (seen.file === undefined || seen.script)) {
    session.onNews();
    session.onNews = undefined;
  }
}

const DEFAULT_LOADER = (vm as { constants?: { USE_MAIN_CONTEXT_DEFAULT_LOADER?: symbol } }).constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;

function compile(code: Code, filename: string): vm.Script | null {
  if (code.flags & Flag.Import && !allowImport()) return null;
  const script = newScript(code.source, filename, code.bytecode);
  if (script?.cachedDataRejected) session.rejected++;
  return script;
}

function compileNew(content: string, filename: string): vm.Script | null {
  if (mayImport(content) && !allowImport()) return null;
  return newScript(wrapped(content), filename, undefined);
}

// A text that is no CommonJS goes Node's way, which knows what to say about it or what else it may be.
function newScript(source: string, filename: string, cachedData: Buffer | undefined): vm.Script | null {
  try {
    return new vm.Script(source, { filename, lineOffset: -1, cachedData, importModuleDynamically: DEFAULT_LOADER } as vm.ScriptOptions);
  } catch {
    return null;
  }
}

function run(script: vm.Script, module: LoadedModule, filename: string): void {
  call(script.runInThisContext() as Wrapper, module, filename);
}

// `}); f(function () {` in a file would end our function and begin another one.
function functionOf(script: vm.Script, content: string): Wrapper | null {
  const wrapper: unknown = script.runInThisContext();
  const length = WRAPPER_LENGTH + content.length - '()'.length;
  return typeof wrapper === 'function' && Function.prototype.toString.call(wrapper).length === length ? (wrapper as Wrapper) : null;
}

function call(wrapper: Wrapper, module: LoadedModule, filename: string): unknown {
  const { exports } = module;
  const require = requireOf(module);
  markExecuting(module, true);
  const result = Reflect.apply(wrapper, exports, [exports, require, module, filename, path.dirname(filename)]);
  markExecuting(module, false);
  return result;
}

// As Node makes it.
function requireOf(module: LoadedModule): NodeJS.Require {
  function require(path: string): unknown {
    return module.require(path);
  }
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

const nativeRequire = require;

let importAllowed: boolean | undefined;

// The loader that Node offers for such scripts is its own, but it warns that offering it is an experiment. The program did not ask for it.
function allowImport(): boolean {
  if (importAllowed !== undefined) return importAllowed;
  importAllowed = DEFAULT_LOADER !== undefined;
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

function isBuiltin(request: string): boolean {
  return BUILTIN.has(request) || request.startsWith('node:');
}

const BUILTIN: ReadonlySet<string> = new Set((require('node:module') as { builtinModules: string[] }).builtinModules);

function isRelative(request: string): boolean {
  return request.charCodeAt(0) === 0x2e && (request.startsWith('./') || request.startsWith('../') || request === '.' || request === '..');
}
