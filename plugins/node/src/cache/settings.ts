// The user's settings, read once. An invalid value counts as the default.

export interface Settings {
  /** `HASTEN_NODE_CACHE`: what may be done with caches. */
  readonly cache: 'off' | 'read' | 'record';
  /** The caches' folder; null if there is no place for one. */
  readonly folder: string | null;
  /** A file to which one JSON line is appended at exit. */
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
