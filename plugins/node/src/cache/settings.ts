// What the user set, read once. A wrong value is the default.

export interface Settings {
  /** `HASTEN_NODE_CACHE`: what may be done with caches. */
  readonly cache: 'off' | 'read' | 'record';
  /** Where the caches of programs are; null where there is no place for them. */
  readonly folder: string | null;
  /** A file that gets one JSON line at exit. */
  readonly stats: string | undefined;
}

export function settings(env: NodeJS.ProcessEnv): Settings {
  const mode = env['HASTEN_NODE_CACHE'];
  return {
    cache: mode === '0' ? 'off' : mode === 'read' ? 'read' : 'record',
    folder: folder(env),
    stats: env['HASTEN_NODE_STATS'] || undefined,
  };
}

/** Whether the kill switch is on: `HASTEN_DISABLE=node`, `all` or `1`, in any case, alone or in a list. */
export function disabled(env: NodeJS.ProcessEnv): boolean {
  const list = env['HASTEN_DISABLE'];
  return list ? /(?:^|[\s,])(?:node|all|1)(?:$|[\s,])/i.test(list) : false;
}

function folder(env: NodeJS.ProcessEnv): string | null {
  const own = env['HASTEN_CACHE_DIR'];
  if (own?.startsWith('/')) return `${own}/node`;
  const xdg = env['XDG_CACHE_HOME'];
  if (xdg?.startsWith('/')) return `${xdg}/hasten/node`;
  const home = env['HOME'];
  return home?.startsWith('/') ? `${home}/.cache/hasten/node` : null;
}
