// Well-known programs of the npm registry: command-line tools, test runners, servers, libraries. Each runs in the
// project's folder.
import type { Range } from '../support/releases';
import type { Trial } from './series';

export interface Program extends Omit<Trial, 'args'>, Range {
  /** The command: a package's file and its arguments, in words. */
  readonly run: string;
}

const TOOLS: readonly Program[] = [
  // Compilers and bundlers.
  { run: 'typescript/bin/tsc --outDir out --target es2020 --lib es2020,dom --types --module commonjs src/shapes.ts' },
  { run: 'typescript/bin/tsc --noEmit --lib es2020 --pretty false src/broken.ts', code: 2 },
  { run: '@babel/cli/bin/babel.js src/modern.js --out-dir out --source-maps' },
  { run: 'coffeescript/bin/coffee --compile --map --output out src/cubes.coffee' },
  { run: 'webpack/bin/webpack.js --mode production --entry ./src/index.js --output-path out --devtool source-map' },
  { run: 'rollup/dist/bin/rollup src/module.mjs --dir out --format cjs --sourcemap', unserved: true },
  { run: 'vite/bin/vite.js build --ssr src/module.mjs --outDir out --emptyOutDir', unserved: true },
  { run: 'esbuild/bin/esbuild src/index.js --bundle --minify --outfile=out/bundle.js', unserved: true },
  { run: 'browserify/bin/cmd.js src/index.js --debug --outfile bundle.js' },
  { run: '@vercel/ncc/dist/ncc/cli.js build src/index.js --out out --no-cache' },
  { run: 'terser/bin/terser src/modern.js --compress --mangle --source-map --output terser.js' },
  { run: 'uglify-js/bin/uglifyjs src/index.js --compress --mangle' },
  { run: 'less/bin/lessc --source-map src/style.less style.css' },
  { run: 'sass/sass.js src/style.scss out.css' },
  { run: 'stylus/bin/stylus --print src/style.styl' },
  { run: 'postcss-cli/index.js src/style.css --use autoprefixer --output out.css', unserved: true },
  { run: 'clean-css-cli/bin/cleancss -O2 src/style.css' },
  { run: 'svgo/bin/svgo.js src/picture.svg --output out.svg', unserved: true },
  { run: 'html-minifier-terser/cli.js --collapse-whitespace --remove-comments src/page.html', unserved: true },
  { run: 'handlebars/bin/handlebars src/view.hbs --commonjs handlebars' },
  { run: 'mustache/bin/mustache src/view.json src/view.mustache' },
  { run: 'ejs/bin/cli.js --data-file src/view.json src/view.ejs' },
  { run: 'nunjucks/bin/precompile --name view src/view.njk' },
  { run: 'marked/bin/marked.js --gfm --input src/text.md', unserved: true },
  { run: 'markdown-it/bin/markdown-it.mjs src/text.md' },
  { run: 'showdown/bin/showdown.js makehtml --input src/text.md --output text.html' },
  { run: 'js-yaml/bin/js-yaml.js src/data.yaml' },
  { run: 'json5/lib/cli.js src/data.json' },
  { run: 'jsonlint/lib/cli.js src/data.json --sort-keys' },
  { run: 'acorn/bin/acorn --ecma2024 --module src/modern.js' },
  { run: 'escodegen/bin/esgenerate.js src/tree.json' },
  { run: 'jsdoc/jsdoc.js --destination out src/square.js' },
  // Tools that look at sources.
  { run: 'eslint/bin/eslint.js src', code: 1 },
  { run: 'eslint/bin/eslint.js --fix src/square.js' },
  { run: 'prettier/bin/prettier.cjs --write src/untidy.js src/style.css src/text.md src/data.yaml src/page.html' },
  { run: 'jshint/bin/jshint src/untidy.js', code: 2 },
  { run: 'stylelint/bin/stylelint.mjs src/style.css', code: 2 },
  { run: 'htmlhint/bin/htmlhint src/page.html', code: 1 },
  { run: 'markdownlint-cli/markdownlint.js src/text.md', code: 1, from: 20, unserved: true },
  { run: 'js-beautify/js/bin/js-beautify.js src/untidy.js' },
  { run: 'depcheck/bin/depcheck.js . --ignore-dirs node_modules', code: 255 },
  { run: 'dependency-cruiser/bin/dependency-cruise.mjs --no-config --output-type text src', unserved: true },
  { run: 'ajv-cli/dist/index.js validate -s src/schema.json -d src/data.json' },
  { run: 'semver/bin/semver.js 1.2.3 1.10.0 2.0.0-rc.1 --range >=1.2.3' },
  // Programs that start others.
  { run: 'gulp/bin/gulp.js' },
  { run: 'grunt/bin/grunt' },
  { run: 'jake/bin/cli.js' },
  { run: 'npm-run-all2/bin/npm-run-all/index.js say:*' },
  { run: 'concurrently/dist/bin/concurrently.js --group npm:say:one' },
  { run: 'cross-env/src/bin/cross-env.js A=b node src/index.js' },
  { run: 'shx/lib/cli.js cat src/data.yaml' },
  { run: 'rimraf/dist/esm/bin.mjs src/style.less', unserved: true },
  { run: 'glob/dist/esm/bin.mjs src/**/*.js', unserved: true },
  { run: 'yarn/bin/yarn.js run --offline hello' },
  { run: 'pnpm/bin/pnpm.cjs run hello' },
  { run: 'ts-node/dist/bin.js --compiler-options {"module":"commonjs","moduleResolution":"node"} --transpile-only src/shapes.ts' },
  { run: 'ts-node/dist/bin.js src/broken.ts', code: 1 },
  { run: 'tsx/dist/cli.mjs src/shapes.ts', unserved: true },
  // Test runners.
  { run: 'mocha/bin/mocha.js tests/mocha.js', code: 1 },
  { run: 'mocha/bin/mocha.js tests/sinon.js' },
  { run: 'jest/bin/jest.js --rootDir . --testRegex jest.js$ --coverage' },
  { run: 'jest/bin/jest.js --rootDir . --testRegex jest.js$ --runInBand --no-cache --verbose' },
  { run: 'ava/entrypoints/cli.mjs tests/ava.mjs', unserved: true },
  { run: 'tap/bin/run.js --no-coverage --reporter tap tests/tap.js' },
  { run: 'tape/bin/tape tests/tape.js', code: 1 },
  { run: 'jasmine/bin/jasmine.js --random=false tests/spec.js' },
  { run: 'qunit/bin/qunit.js tests/qunit.js' },
  { run: 'uvu/bin.js tests uvu.js$' },
  { run: 'vitest/vitest.mjs run --root . --reporter tap square.vitest', unserved: true },
  { run: '@cucumber/cucumber/bin/cucumber.js --require features/steps.js --format progress' },
  { run: 'nyc/bin/nyc.js --reporter text node src/index.js' },
  { run: 'nyc/bin/nyc.js --reporter lcov node node_modules/mocha/bin/mocha.js tests/sinon.js' },
  // Node.js 26 no longer reads its yargs.
  { run: 'c8/bin/c8.js --reporter text node src/index.js', to: 24 },
  { run: 'c8/bin/c8.js node node_modules/tape/bin/tape tests/tape.js', code: 1, to: 24 },
];

export const PROGRAMS: readonly Program[] = TOOLS.map((program) => ({ ...program, run: `node_modules/${program.run}` }));
