// `node -r hasten/register app.js`: what every process pays for. It decides, serves the start-up cache, and leaves everything else for later.
import type * as Esm from './esm/esm';
import type * as Gc from './gc/gc';
import { Catalog } from './cache/catalog';
import { digest, installation, keyText, mainScript } from './cache/key';
import { isPatched, learnMarks, watchHooks } from './cache/loader';
import { Recorder } from './cache/recorder';
import { install, Session } from './cache/serve';
import { disabled, limit, settings, type Settings } from './cache/settings';
import { open } from './cache/store';
import { report, type Facts } from './cache/stats';
import { isModule } from './esm/kind';
import { loadOwn } from './own';
import { allowsCompileCache, isWorker, standAside } from './surroundings';

if (!disabled(process.env)) start();

function start(): void {
  const began = process.hrtime();
  const facts: Facts = { aside: null, compileCache: false, shortImports: false, session: null, recorded: null, began };
  try {
    const set = settings(process.env);
    if (set.stats) report(set.stats, facts);
    startCache(set, facts);
    collectLater();
  } catch {
    // Whatever it was, the program starts as it always did.
    facts.aside ??= 'failed';
  }
  facts.spent = process.hrtime(began);
}

function startCache(set: Settings, facts: Facts): void {
  if (set.cache === 'off' || set.folder === null) {
    facts.aside = set.cache === 'off' ? 'switched off' : 'no folder';
    return;
  }
  const reason = standAside();
  facts.aside = reason ?? (isPatched(module) ? 'patched loader' : null);
  const main = mainScript();
  const modules = reason === null ? isModule(main) : allowsCompileCache(reason);
  if (modules && !isWorker()) startModules(set, facts);
  if (facts.aside === null) serve(set, facts, main);
}

function serve(set: Settings, facts: Facts, main: string): void {
  const key = keyText(main);
  const file = `${set.folder}/${digest(key)}.cache`;
  const session = new Session(catalogOf(file, key, main));
  facts.session = session;
  if (set.cache === 'record' && !isWorker()) facts.recorded = new Recorder(session, () => `${key}\n${installation(main)}`, file);
  if (session.catalog) {
    learnMarks(module);
    watchHooks();
  }
  install(session);
}

// Node's own compile cache is the better choice for ES modules.
function startModules(set: Settings, facts: Facts): void {
  const esm = loadOwn<typeof Esm>('esm');
  if (set.cache === 'record') facts.compileCache = esm.useCompileCache(set.folder!, limit(process.env));
  if (facts.aside === null) facts.shortImports = esm.goShort();
}

function catalogOf(file: string, key: string, main: string): Catalog | null {
  try {
    const stored = open(file);
    return stored && Catalog.of(stored, `${key}\n${installation(main)}`);
  } catch {
    return null;
  }
}

// Most programs end before the recorder of collections is of any use to anybody.
function collectLater(): void {
  const wish = process.env['HASTEN_NODE_GC'];
  if (wish === '0' || isWorker()) return;
  const collect = (): void => {
    try {
      loadOwn<typeof Gc>('gc').start();
    } catch {
      // A program without a recorder is as good as it was.
    }
  };
  if (wish === 'record') collect();
  else setTimeout(collect, 1000).unref();
}
