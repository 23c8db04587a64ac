// node build.mjs MODULES OUT: bundles `summary.mjs` with the front end of Chrome DevTools, which is published as it was written.
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const [modules, outfile] = process.argv.slice(2).map((argument) => path.resolve(argument));
const { build } = createRequire(`${modules}/`)('esbuild');

// The build of DevTools itself writes this list of languages.
const LOCALES = `
export const LOCALES = ['en-US'], BUNDLED_LOCALES = ['en-US'], DEFAULT_LOCALE = 'en-US';
export const REMOTE_FETCH_PATTERN = '', LOCAL_FETCH_PATTERN = '';
`;
const locales = {
  name: 'locales',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^\.\/locales\.js$/ }, () => ({ path: 'locales', namespace: 'locales' }));
    onLoad({ filter: /./, namespace: 'locales' }, () => ({ contents: LOCALES }));
  },
};

await build({
  bundle: true,
  entryPoints: [path.join(path.dirname(fileURLToPath(import.meta.url)), 'summary.mjs')],
  format: 'esm',
  logLevel: 'warning',
  nodePaths: [modules],
  outfile,
  platform: 'node',
  plugins: [locales],
});
