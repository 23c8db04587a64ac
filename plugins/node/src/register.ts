// `node -r hasten/register app.js`: what every process pays for. It decides, and leaves everything else to files that
// are loaded on demand.
import fs = require('node:fs');
import type * as Record from './cache/recorder';
import type * as Serve from './cache/serve';
import type * as Stats from './cache/stats';
import type * as Esm from './esm/esm';
import type * as Gc from './gc/gc';
import { digest } from './cache/digest';
import { keyText, mainScript } from './cache/key';
import { isPatched, loader } from './cache/loader';
import { takeNotes } from './cache/notes';
import { Session } from './cache/session';
import { disabled, settings, type Settings } from './cache/settings';
import { isModule } from './esm/kind';
import { own } from './load';
import { allowsCompileCache, isForeign, isWorker, standAside } from './surroundings';

function start(): void {
  const facts: Stats.Facts = { aside: null, compileCache: false, shortImports: false, session: null, recorded: null };
  try {
    const set = settings(process.env);
    // Registered before anyone else registers for the end of the process.
    if (set.stats) own().load<typeof Stats>('stats').report(set.stats, facts);
    const began = set.stats ? process.hrtime() : undefined;
    startCache(set, facts);
    // If Node reports every file read while the program runs, it would report ours.
    if (facts.aside !== 'sync tracing') goOnLater(facts);
    if (began) facts.spent = process.hrtime(began);
  } catch {
    // Whatever the error, the program starts as it always did.
    facts.aside ??= 'failed';
  }
}

function startCache(set: Settings, facts: Stats.Facts): void {
  if (set.cache === 'off' || set.folder === null) {
    facts.aside = set.cache === 'off' ? 'switched off' : 'no folder';
    return;
  }
  const reason = standAside();
  facts.aside = reason ?? (isPatched(module) ? 'patched loader' : null);
  // When standing aside, no file is examined either: Node may report it.
  const main = reason === null ? mainScript() : '';
  const modules = reason === null ? isModule(main) : allowsCompileCache(reason);
  if (modules && !isWorker()) startModules(set, facts);
  if (facts.aside === null) useCache(set, facts, main);
}

function useCache(set: Settings, facts: Stats.Facts, main: string): void {
  const key = keyText(main);
  const file = `${set.folder}/${digest(key)}.cache`;
  const session = new Session();
  const records = set.cache === 'record' && !isWorker();
  facts.session = session;
  if (records) {
    session.seen = new Map();
    session.resolutions = [];
    session.onNews = () => {
      const { Recorder } = own().load<typeof Record>('recorder');
      facts.recorded = new Recorder(own(), session, key, main, file, facts.compileCache);
    };
    process.on('exit', () => {
      session.settle();
      facts.recorded?.finish();
    });
  }
  // Most programs have no cache.
  const served = fs.existsSync(file) && own().load<typeof Serve>('serve', set.folder!).serve(session, { file, key, main, module, require });
  if (records && !served) takeNotes(session);
}

// Node's own compile cache is the better choice for ES modules. Before Node 22 there is neither that nor any way to
// help.
function startModules(set: Settings, facts: Stats.Facts): void {
  if (parseInt(process.versions.node, 10) < 22) return;
  const esm = own().load<typeof Esm>('esm');
  if (set.cache === 'record') facts.compileCache = esm.useCompileCache(set.folder!);
  if (facts.aside === null) facts.shortImports = esm.goShort();
}

// Most programs end before this is of any use.
function goOnLater(facts: Stats.Facts): void {
  if (isWorker()) return;
  const wish = process.env['HASTEN_NODE_GC'];
  if (wish === 'record') collect();
  const waits = wish !== 'record' && wish !== '0';
  if (!waits && !facts.session?.onNews) return;
  setTimeout(() => {
    facts.session?.settle();
    facts.recorded?.watch();
    if (waits) collect();
  }, 1000).unref();
}

function collect(): void {
  try {
    own().load<typeof Gc>('gc').start();
  } catch {
    // Without a recorder, the program is as good as it was.
  }
}

// Code that scans require.cache (to reload modules, to count them) should not see this one. It can still be found by
// name.
function hide(): void {
  if (loader._cache[__filename] === module) Object.defineProperty(loader._cache, __filename, { enumerable: false });
}

// At the end, as V8 compiles functions in parentheses only where they stand (build.mjs).
if (!isForeign()) {
  hide();
  if (!disabled(process.env)) start();
}
