// A shortcut to neighbouring modules: an import of './x.js' is resolved with one system call instead of Node's many.
// Nothing is remembered from run to run, so nothing can be stale. Anything less plain is left to Node.
import fs = require('node:fs');
import Module = require('node:module');
import path = require('node:path');
import { packageType } from './kind';

interface Context {
  readonly conditions: readonly string[];
  readonly importAttributes?: Record<string, string>;
  readonly parentURL?: string;
}

interface Resolved {
  readonly url: string;
  readonly format?: string | null;
  readonly shortCircuit?: boolean;
}

interface Hooks {
  resolve(specifier: string, context: Context, next: (specifier: string, context: Context) => Resolved): Resolved;
}

interface WithHooks {
  // 22.15 and later.
  registerHooks?: (hooks: Hooks) => { deregister(): void };
  register?: (...given: unknown[]) => unknown;
}

const { lstatSync } = fs;
const realpathSync = fs.realpathSync.native;

/** Whether this release has the necessary hooks, and they are installed. */
export function goShort(): boolean {
  const module = Module as unknown as WithHooks;
  if (!module.registerHooks || preservesSymlinks()) return false;
  let credit = CREDIT;
  const hooks = module.registerHooks({
    resolve(specifier, context, next) {
      const found = resolve(specifier, context);
      credit += found ? GAIN : -COST;
      if (credit < 0) deregister();
      return found ?? next(specifier, context);
    },
  });
  const deregister = (): void => {
    credit = Infinity;
    hooks.deregister();
  };
  giveWay(module, deregister);
  return true;
}

// The hook's cost for each request that does not concern it, above all those of CommonJS, and its gain for each that
// does. A program for which it does not pay off soon drops it.
const COST = 1;
const GAIN = 3;
const CREDIT = 16;

// Hooks of the older kind live in a separate thread and are asked after ours, but they must see every import.
function giveWay(module: WithHooks, deregister: () => void): void {
  const { register } = module;
  if (!register) return;
  module.register = Object.defineProperties(function (this: unknown, ...given: unknown[]): unknown {
    deregister();
    return Reflect.apply(register, this, given);
  }, Object.getOwnPropertyDescriptors(register));
  Module.syncBuiltinESMExports();
}

function preservesSymlinks(): boolean {
  const { env, execArgv } = process;
  return Boolean(env['NODE_PRESERVE_SYMLINKS']) || [...execArgv, env['NODE_OPTIONS'] ?? ''].some((option) => /preserve[-_]symlinks/.test(option));
}

const PLAIN = /^\.\.?\/(?!.*\/\/)[\w./@+-]+\.m?js$/;
const PLAIN_URL = /^file:\/\/\/[\w./@+-]+$/;
const SCHEME = 'file://';

function resolve(specifier: string, context: Context): Resolved | null {
  const { parentURL } = context;
  if (parentURL === undefined || !PLAIN.test(specifier) || !PLAIN_URL.test(parentURL) || !isPlainImport(context)) return null;
  const file = path.join(path.dirname(parentURL.slice(SCHEME.length)), specifier);
  const folder = path.dirname(file);
  if (!isReal(folder) || !(file.endsWith('.mjs') || isModuleFolder(folder))) return null;
  // A symlink has a different URL, and Node words the error for a missing file.
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return null;
  return { url: SCHEME + file, format: 'module', shortCircuit: true };
}

function isPlainImport({ conditions, importAttributes }: Context): boolean {
  for (const _ in importAttributes) return false;
  return conditions.includes('import');
}

// Node also asks for each folder only once in the life of a process.
const real = new Map<string, boolean>();
const moduleFolders = new Map<string, boolean>();

function isReal(folder: string): boolean {
  let answer = real.get(folder);
  if (answer === undefined) real.set(folder, (answer = realPath(folder) === folder));
  return answer;
}

function realPath(folder: string): string | null {
  try {
    return realpathSync(folder);
  } catch {
    return null;
  }
}

function isModuleFolder(folder: string): boolean {
  let answer = moduleFolders.get(folder);
  if (answer === undefined) moduleFolders.set(folder, (answer = packageType(folder) === 'module'));
  return answer;
}
