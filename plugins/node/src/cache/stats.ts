// The plugin's activity in a process, as one JSON line for tests and benchmarks (HASTEN_NODE_STATS).
import fs = require('node:fs');
import type { Recorder } from './recorder';
import type { Session } from './session';

export interface Facts {
  /** Why Node's own loader was left alone. */
  aside: string | null;
  compileCache: boolean;
  shortImports: boolean;
  session: Session | null;
  recorded: Recorder | null;
  /** The cost of starting the plugin. */
  spent?: [number, number];
}

/**
 * Appends the line when the process ends. Registered before anyone else's handler, but written after what is
 * recorded at exit.
 */
export function report(file: string, facts: Facts): void {
  process.on('exit', () => {
    facts.session?.settle();
    facts.recorded?.finish();
    try {
      append(file, `${JSON.stringify(line(facts))}\n`);
    } catch {
      // No place to write to.
    }
  });
}

function append(file: string, text: string): void {
  const descriptor = fs.openSync(file, 'a', 0o600);
  try {
    fs.writeSync(descriptor, text);
  } finally {
    fs.closeSync(descriptor);
  }
}

function line({ aside, compileCache, shortImports, session, recorded, spent }: Facts): Record<string, unknown> {
  return {
    pid: process.pid,
    node: process.version,
    aside,
    compile_cache: compileCache,
    short_imports: shortImports,
    hits: session?.hits ?? 0,
    misses: session?.misses ?? 0,
    resolved: session?.resolved ?? 0,
    unresolved: session?.unresolved ?? 0,
    rejected: session?.rejected ?? 0,
    recorded_bytes: recorded?.result?.bytes ?? 0,
    recorded_files: recorded?.result?.files ?? 0,
    left_files: recorded?.result?.left ?? 0,
    waiting: recorded?.waits ?? false,
    record_microseconds: recorded?.microseconds ?? 0,
    start_microseconds: spent ? Math.round(spent[0] * 1e6 + spent[1] / 1e3) : 0,
  };
}
