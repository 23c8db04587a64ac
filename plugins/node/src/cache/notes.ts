// A start without a cache: Node does everything, and its work is noted for the recorder.
import { loader, type Handler, type LoadedModule, type ResolveOptions } from './loader';
import type { Session } from './session';

export function takeNotes(session: Session): void {
  const { _extensions: extensions, _resolveFilename: resolve } = loader;
  for (const extension of ['.js', '.json'] as const) extensions[extension] = noted(session, extensions[extension]!);
  loader._resolveFilename = function resolveFilename(this: unknown, request: string, parent: LoadedModule | undefined, isMain: boolean, options?: ResolveOptions): string {
    const found = resolve.call(this, request, parent, isMain, options);
    // Node's own modules have no path.
    if (parent && !isMain && found.startsWith('/')) {
      session.unresolved++;
      session.noteAnswer(parent, request, found);
    }
    return found;
  };
}

function noted(session: Session, load: Handler): Handler {
  return function (this: unknown, module, filename) {
    session.misses++;
    session.note(filename, undefined, undefined);
    load.call(this, module, filename);
    session.prove(filename);
  };
}
