// Stack traces: lines, columns and names match the files, including through source maps.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { packages } from '../support/places';
import { onEach } from '../support/releases';

const FILES = {
  'main.js': "const { fail } = require('./lib/fail'); require('./lib/' + process.argv[2]);",
  'lib/fail.js': "exports.fail = () => { throw new Error('first line'); }; exports.stack = new Error().stack;",
  'lib/first-line.js': "require('./fail').fail()",
  'lib/deep.js': "\n\n  class Deep {\n    static async run() {\n      await null;\n      require('./fail').fail();\n    }\n  }\n  Deep.run();\n",
  'lib/caught.js': "try { require('./fail').fail() } catch (error) { console.log(error.stack, require('./fail').stack) }\nconsole.trace('here');",
  'lib/syntax.js': "\nconst ok = 1;\n  const = 2;\n",
  'lib/json.js': "require('./broken.json')",
  'lib/broken.json': '{\n  "a": 1,\n  b\n}',
  'lib/typo.js': "\n\n  nothing.at.all();",
  'lib/evaluated.js': "eval('\\n\\n  nothing.at.all()')",
  'lib/evaluated-later.js': "'use strict';\nconst make = () =>\n  new Function('\\n\\n  nothing.at.all()'); make()();",
  'lib/cause.js': "try { require('./fail').fail() } catch (cause) { throw new TypeError('outer', { cause }) }",
  'lib/absent.js': "\n  require('./is-not-there')",
  'lib/rejected.js': "Promise.reject(new Error('nobody cares'))",
};

const cases = Object.keys(FILES).flatMap((name) => /^lib\/((?!fail).*)\.js$/.exec(name)?.[1] ?? []);

for (const name of cases) {
  onEach(`the stack of an error: ${name}`, async (release, t) => {
    const { plain } = await sameAsPlain(App.create(t, FILES), release, ['--stack-trace-limit=50', 'main.js', name], { served: true });
    assert.match(plain.stdout + plain.stderr, /lib\/(fail|syntax|broken|typo|evaluated|evaluated-later|absent|rejected)\.js/);
  }, { only: [18, 20, 24, 26] });
}

const TYPED = `
interface Wide { readonly one: number }

export function fail(wide: Wide): never {
  const text: string = 'from TypeScript';
  throw new Error(text + wide.one);
}
`;

/** A program compiled from TypeScript, with its maps. */
function compiled(): Record<string, string> {
  const esbuild = path.join(packages, '@esbuild/linux-x64/bin/esbuild');
  const options = ['--loader=ts', '--format=cjs', '--sourcemap=inline', '--sourcefile=fail.ts', '--minify'];
  return {
    'dist/fail.js': execFileSync(esbuild, options, { input: TYPED, encoding: 'utf8' }),
    'main.js': "require('./dist/fail').fail({ one: 1 })",
    'later.js': "process.setSourceMapsEnabled(true); require('./dist/fail').fail({ one: 1 })",
  };
}

const mapped = /dist\/fail\.ts:6:9/;

onEach('source maps by the package source-map-support', async (release, t) => {
  const app = App.create(t, compiled()).usePackages();
  const { plain } = await sameAsPlain(app, release, ['-r', 'source-map-support/register', '--stack-trace-limit=50', 'main.js']);
  assert.match(plain.stderr, mapped);
}, { only: [18, 22, 26] });

for (const [how, args] of [['an option', ['--enable-source-maps', 'main.js']], ['the program itself', ['later.js']]] as const) {
  onEach(`source maps by ${how}`, async (release, t) => {
    const app = App.create(t, compiled());
    // An earlier cache does not know about maps.
    await sameAsPlain(app, release, ['main.js']);
    assert.match((await sameAsPlain(app, release, [...args])).plain.stderr, mapped);
  });
}
