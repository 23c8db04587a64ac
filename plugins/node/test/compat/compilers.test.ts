// TypeScript programs, compiled on loading by loader hooks.
import assert from 'node:assert/strict';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

const FILES = {
  'tsconfig.json': { compilerOptions: { target: 'es2022', module: 'commonjs', esModuleInterop: true, strict: true, types: [] } },
  'package.json': { name: 'app', version: '1.0.0' },
  'main.ts': "import { area } from './shape';\nimport plain = require('./plain.js');\nconsole.log(area({ width: 2, height: 3 }), plain.name);\n",
  'shape.ts': 'interface Shape { width: number; height: number }\n\nexport const area = (shape: Shape): number => shape.width * shape.height;\nif (area({ width: 1, height: 1 }) !== 1) throw new Error();\n',
  'plain.js': "exports.name = 'plain';\n",
  'plain.d.ts': 'export const name: string;\n',
  'fails.ts': "interface A { a: number }\n\n\nconst a: A = { a: 1 };\nthrow new Error('line five' + a.a);\n",
};

const HOOKS: Record<string, string[]> = {
  'ts-node': ['-r', 'ts-node/register/transpile-only'],
  'esbuild-register': ['-r', 'esbuild-register'],
  'tsx': ['-r', 'tsx/cjs'],
};

for (const [name, options] of Object.entries(HOOKS)) {
  onEach(`${name} as a preload`, async (release, t) => {
    const app = App.create(t, FILES).usePackages();
    const { plain } = await sameAsPlain(app, release, [...options, 'main.ts'], { starts: 2 });
    assert.equal(plain.stdout, '6 plain\n');
    assert.match((await sameAsPlain(app, release, [...options, 'fails.ts'], { starts: 2 })).plain.stderr, /fails\.ts:5/);
  }, { only: name === 'tsx' ? [18, 20, 24] : [20, 26] });
}

onEach('tsx as a command', async (release, t) => {
  const app = App.create(t, FILES).usePackages();
  const { plain } = await sameAsPlain(app, release, ['node_modules/tsx/dist/cli.mjs', 'main.ts'], { starts: 2 });
  assert.equal(plain.stdout, '6 plain\n');
}, { only: [20, 24] });

onEach('ts-node as a command, with its checks', async (release, t) => {
  const app = App.create(t, { ...FILES, 'wrong.ts': "export const n: number = 'text';\n" }).usePackages();
  assert.equal((await sameAsPlain(app, release, ['node_modules/.bin/ts-node', 'main.ts'], { starts: 2 })).plain.stdout, '6 plain\n');
  assert.match((await sameAsPlain(app, release, ['node_modules/.bin/ts-node', 'wrong.ts'], { starts: 1 })).plain.stderr, /TS2322/);
}, { only: [22] });

onEach("Node's own removal of types", async (release, t) => {
  const app = App.create(t, {
    'main.ts': "const { area } = require('./shape.ts');\nconsole.log(area({ width: 2, height: 3 }), require('./plain.js').name);\n",
    'shape.ts': FILES['shape.ts'].replace('export const area =', 'exports.area =').replace('if (area', 'if (exports.area'),
    'plain.js': FILES['plain.js'],
  });
  const { plain } = await sameAsPlain(app, release, ['--no-warnings', 'main.ts']);
  assert.equal(plain.stdout, '6 plain\n');
}, { from: 22 });
