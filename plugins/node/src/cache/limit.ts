// How much space caches may take.

const MEBIBYTE = 1024 * 1024;

/** Bytes that all caches of this user may take together. */
export function limit(env: NodeJS.ProcessEnv): number {
  const text = env['HASTEN_NODE_CACHE_LIMIT'] ?? '';
  const given = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return (given >= 1 && given <= 65536 ? given : 256) * MEBIBYTE;
}
