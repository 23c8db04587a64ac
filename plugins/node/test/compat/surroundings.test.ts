// Where the start-up cache stands aside: every reason, on the releases that can have it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import type { TestContext } from 'node:test';
import { App } from '../support/app';
import { subject } from '../support/places';
import { onEach, type Range, type Release } from '../support/releases';

const FILES = {
  'main.js': '',
  'main.mjs': '',
  'hooks.mjs': '',
  'other.js': '',
  'my --inspect.js': '',
  'options.env': 'NODE_OPTIONS=--enable-source-maps\n',
  'policy.json': '{"resources":{},"dependencies":true,"onerror":"log"}',
  'plugin.js': "process.setSourceMapsEnabled(true);",
};

interface Case extends Range {
  args: string[];
  env?: Record<string, string>;
  input?: string;
  reason: string;
}

/** Preloads the probe like the plugin, and returns what it wrote. */
async function reasons(t: TestContext, release: Release, { args, env, input }: Omit<Case, 'reason'>): Promise<string> {
  const app = App.create(t, FILES);
  const file = app.path('reasons');
  const options = [`--require=${subject('compat/surroundings')}`, env?.['NODE_OPTIONS']].filter(Boolean).join(' ');
  await app.run(release, args, { plugin: false, input: input ?? '', env: { ...env, NODE_OPTIONS: options, HASTEN_TEST_REASONS: file } });
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  // Hooks live in a separate worker.
  return lines.filter((line) => line.startsWith('main')).join('\n');
}

function cases(name: string, list: Case[]): void {
  for (const one of list) {
    const env = Object.entries(one.env ?? {}).map(([key, value]) => `${key}=${value}`);
    const label = `${name}: ${[...env, 'node', ...one.args].join(' ')}`;
    onEach(label, async (release, t) => assert.equal(await reasons(t, release, one), `main: ${one.reason}`), one);
  }
}

cases('serves', [
  { args: ['main.js'], reason: 'null' },
  { args: ['main.mjs', '--inspect'], reason: 'null' },
  { args: ['-r', './other.js', '--max-old-space-size=100', 'my --inspect.js'], reason: 'null' },
  { args: ['--experimental-vm-modules', '--inspect-port=0', 'main.js'], reason: 'null' },
  { args: ['main.js'], env: { NODE_OPTIONS: '--stack-trace-limit=50', NODE_DEBUG: 'http', NODE_V8_COVERAGE: '' }, reason: 'null' },
]);

cases('debugger', [
  { args: ['--inspect=127.0.0.1:0', 'main.js'], reason: 'debugger' },
  { args: ['--inspect-port=0', '--inspect', 'main.js'], reason: 'debugger' },
  { args: ['main.js'], env: { NODE_OPTIONS: '"--inspect=127.0.0.1:0"' }, reason: 'debugger' },
  { args: ['main.js'], env: { VSCODE_INSPECTOR_OPTIONS: '{}' }, reason: 'debugger' },
]);

cases('measurement', [
  { args: ['main.js'], env: { NODE_V8_COVERAGE: 'coverage' }, reason: 'coverage' },
  { args: ['--cpu-prof', '--cpu-prof-dir=profiles', 'main.js'], reason: 'profiler' },
  { args: ['--heap-prof', 'main.js'], reason: 'profiler' },
  { args: ['--prof', '--no-logfile-per-isolate', 'main.js'], reason: 'profiler' },
  { args: ['--perf_basic_prof_only_functions', 'main.js'], reason: 'profiler' },
]);

cases('another loader', [
  { args: ['--import', './hooks.mjs', 'main.js'], reason: 'module hooks' },
  { args: ['main.js'], env: { NODE_OPTIONS: '--import=./hooks.mjs' }, reason: 'module hooks' },
  { args: ['--experimental-loader', './hooks.mjs', 'main.js'], reason: 'module hooks' },
  { args: ['--loader=./hooks.mjs', 'main.js'], reason: 'module hooks' },
  { args: ['--experimental-default-type=module', 'main.js'], reason: 'module hooks', from: 20, to: 22 },
  { args: ['--experimental-network-imports', 'main.js'], reason: 'unknown experiment', to: 20 },
  { args: ['--experimental-policy=policy.json', 'main.js'], reason: 'policy', to: 20 },
  { args: ['--frozen-intrinsics', 'main.js'], reason: 'frozen intrinsics' },
  { args: ['main.js'], env: { NODE_DEBUG: 'http,MODULE' }, reason: 'module debugging' },
]);

cases('source maps', [
  { args: ['--enable-source-maps', 'main.js'], reason: 'source maps' },
  { args: ['main.js'], env: { NODE_OPTIONS: '--enable-source-maps' }, reason: 'source maps' },
  { args: ['--experimental-transform-types', 'main.js'], reason: 'source maps', only: [22, 24] },
]);

cases('permissions', [
  { args: ['--experimental-permission', '--allow-fs-read=*', '--allow-fs-write=*', 'main.js'], reason: 'permission model', only: [20] },
  { args: ['--permission', '--allow-fs-read=*', '--allow-fs-write=*', 'main.js'], reason: 'permission model', from: 24 },
]);

cases('no script', [
  { args: ['-e', '1', 'main.js'], reason: 'no script' },
  { args: ['-p', '1', 'main.js'], reason: 'no script' },
  { args: ['--input-type=module', '--eval', '1'], reason: 'no script' },
  { args: [], input: '1', reason: 'no script' },
  { args: ['-', 'main.js'], input: '1', reason: 'no script' },
  { args: ['-i'], reason: 'no script' },
  { args: ['--check', 'main.js'], reason: 'no script' },
]);

onEach('a worker has the options of the process, whatever has become of its environment', async (release, t) => {
  const script = `delete process.env.NODE_OPTIONS; new (require('worker_threads').Worker)('./other.js')`;
  const app = App.create(t, { ...FILES, 'worker.js': script });
  for (const [option, reason] of [['--enable-source-maps', 'source maps'], ['', 'null']] as const) {
    const env = { NODE_OPTIONS: `--require=${subject('compat/surroundings')} ${option}`, HASTEN_TEST_REASONS: app.path('reasons') };
    fs.rmSync(env.HASTEN_TEST_REASONS, { force: true });
    await app.run(release, ['worker.js'], { plugin: false, env });
    assert.equal(fs.readFileSync(env.HASTEN_TEST_REASONS, 'utf8'), `main: ${reason}\nworker: ${reason}\n`);
  }
});

// Options in neither the command line nor a given variable: Node 18 does not reveal them.
for (const [name, option] of [['another preload', '--require=./plugin.js'], ['a file of variables', '--env-file=options.env']]) {
  onEach(`source maps that ${name} switched on`, async (release, t) => {
    const app = App.create(t, FILES);
    const env = { HASTEN_TEST_REASONS: app.path('reasons') };
    await app.run(release, [option ?? '', `--require=${subject('compat/surroundings')}`, 'main.js'], { plugin: false, env });
    assert.equal(fs.readFileSync(app.path('reasons'), 'utf8'), 'main: source maps\n');
  }, { from: 20 });
}

onEach('watch mode', async (release, t) => {
  const env = { WATCH_REPORT_DEPENDENCIES: '1' };
  assert.equal(await reasons(t, release, { args: ['main.js'], env }), 'main: watch mode');
});
