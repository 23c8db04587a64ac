// node startup.mjs [OPTION…] [WORKLOAD…]: what a start costs in CPU time, plain and with the plugin, in turns.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');
const USAGE = `usage: node plugins/node/bench/startup.mjs [OPTION…] [WORKLOAD…]

  --nodes '20 22 24'   releases of .deps/nodes, or paths of programs
  --pairs 20           rounds; in each, every variant runs once, in random order
  --variants 'warm'    of: warm (a full cache), cold (none yet: it is recorded), compile-cache (Node's own, without the plugin)
  --packages DIR       another folder with packages in node_modules; may be repeated
  --plugin DIR         the built plugin (default: target/release/node)
  --json FILE          the figures, for docs/results; --markdown FILE prints such a file as a table
`;

// What a program is made of: the packages that it needs, files of its own, and how it is started.
const WORKLOADS = {
  empty: { packages: [], files: { 'main.js': '' }, args: ['main.js'] },
  faas: {
    packages: ['ali-oss', '@alicloud/fc2', 'alipay-sdk'],
    files: { 'main.js': "require('ali-oss'); require('@alicloud/fc2'); require('alipay-sdk');" },
    args: ['main.js'],
  },
  tsc: { packages: ['typescript'], files: {}, args: ['node_modules/typescript/bin/tsc', '--version'] },
  express: {
    packages: ['express'],
    files: { 'main.js': "const server = require('express')().listen(0, '127.0.0.1', () => server.close());" },
    args: ['main.js'],
  },
  fastify: {
    packages: ['fastify'],
    files: { 'main.js': "const app = require('fastify')(); app.listen({ host: '127.0.0.1', port: 0 }).then(() => app.close());" },
    args: ['main.js'],
  },
  'next-version': { packages: ['next'], files: {}, args: ['node_modules/next/dist/bin/next', '--version'] },
  'next-info': { packages: ['next'], files: {}, args: ['node_modules/next/dist/bin/next', 'info'] },
  nuxi: { packages: ['nuxi'], files: {}, args: ['node_modules/nuxi/bin/nuxi.mjs', '--version'] },
  eslint: {
    packages: ['eslint'],
    files: { 'eslint.config.mjs': 'export default [];', 'main.js': 'let a = 1;\n' },
    args: ['node_modules/eslint/bin/eslint.js', 'main.js'],
  },
  rollup: { packages: ['rollup'], files: { 'in.js': 'export default 1;' }, args: ['node_modules/rollup/dist/bin/rollup', 'in.js'] },
  vite: { packages: ['vite'], files: {}, args: ['node_modules/vite/bin/vite.js', '--version'] },
  'vite-import': { packages: ['vite'], files: { 'main.mjs': "import 'vite';" }, args: ['main.mjs'] },
  'lodash-es': { packages: ['lodash-es'], files: { 'main.mjs': "import 'lodash-es';" }, args: ['main.mjs'] },
  prettier: { packages: ['prettier'], files: { 'in.js': 'a( 1 )' }, args: ['node_modules/prettier/bin/prettier.cjs', 'in.js'] },
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', short: 'h' },
    json: { type: 'string' },
    markdown: { type: 'string' },
    nodes: { type: 'string', default: '20 22 24' },
    packages: { type: 'string', multiple: true, default: [] },
    pairs: { type: 'string', default: '20' },
    plugin: { type: 'string', default: path.join(root, 'target/release/node') },
    variants: { type: 'string', default: 'warm' },
  },
});
if (options.help) console.log(USAGE);
else if (options.markdown) console.log(table(JSON.parse(fs.readFileSync(options.markdown, 'utf8')).rows));
else main();

function main() {
  const register = path.join(path.resolve(options.plugin), 'register.js');
  if (!fs.existsSync(register)) throw new Error(`${register} is not there: build it with \`make build\`, or name its folder with --plugin`);
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'hasten-startup-'));
  const rows = [];
  try {
    for (const name of positionals.length > 0 ? positionals : Object.keys(WORKLOADS)) {
      const folder = prepare(name, scratch);
      if (!folder) continue;
      for (const node of options.nodes.split(' ').map(program)) rows.push(...measure({ name, folder, node, register, scratch }));
    }
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
  if (options.json) fs.writeFileSync(options.json, `${JSON.stringify({ cpu: os.cpus()[0].model, date: new Date().toISOString().slice(0, 10), rows }, null, 1)}\n`);
}

function program(node) {
  return /^\d+$/.test(node) ? path.join(root, `.deps/nodes/node_modules/node${node}/bin/node`) : node;
}

/** The folder of the program, ready to be started; undefined if its packages are not installed. */
function prepare(name, scratch) {
  const workload = WORKLOADS[name];
  if (!workload) throw new Error(`there is no workload "${name}": choose from ${Object.keys(WORKLOADS).join(', ')}`);
  const folders = [...options.packages, path.join(root, '.deps/node-test-packages')].map((folder) => path.join(path.resolve(folder), 'node_modules'));
  const modules = folders.find((folder) => workload.packages.every((needed) => fs.existsSync(path.join(folder, needed))));
  if (!modules) {
    console.error(`${name}: skipped, because ${workload.packages.join(', ')} are not installed; name their folder with --packages`);
    return undefined;
  }
  const folder = path.join(scratch, name);
  fs.mkdirSync(folder);
  fs.symlinkSync(modules, path.join(folder, 'node_modules'));
  for (const [file, content] of Object.entries(workload.files)) fs.writeFileSync(path.join(folder, file), content);
  return folder;
}

function measure({ name, folder, node, register, scratch }) {
  const variants = options.variants.split(' ');
  const caches = fs.mkdtempSync(path.join(scratch, 'cache-'));
  let fresh = 0;
  const environment = (variant) => {
    const cache = { HASTEN_CACHE_DIR: path.join(caches, variant === 'cold' ? `cold-${(fresh += 1)}` : 'warm') };
    if (variant === 'plain') return {};
    if (variant === 'compile-cache') return { NODE_COMPILE_CACHE: path.join(caches, 'compile') };
    return { ...cache, NODE_OPTIONS: `--require=${register}` };
  };
  const run = (variant) => cpu(node, WORKLOADS[name].args, folder, environment(variant));
  // What one start has no budget to record, the next ones do.
  for (let start = 0; start < 5; start += 1) for (const variant of ['plain', ...variants]) run(variant);
  const times = Object.fromEntries(['plain', ...variants].map((variant) => [variant, []]));
  for (let round = 0; round < Number(options.pairs); round += 1) {
    for (const variant of shuffled(Object.keys(times))) times[variant].push(run(variant));
  }
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
  return variants.map((variant) => report({ workload: name, node: version, variant, ...compared(times.plain, times[variant]) }));
}

/** User and system time of a process and its children, in milliseconds. */
function cpu(node, args, cwd, env) {
  const script = 'TIMEFORMAT="%3U %3S"; { time "$@" >/dev/null 2>/dev/null </dev/null; } 2>&1';
  const base = { PATH: `${path.dirname(node)}:${process.env.PATH}`, HOME: cwd, NEXT_TELEMETRY_DISABLED: '1' };
  const output = execFileSync('bash', ['-c', `${script}; true`, 'bash', node, ...args], { cwd, env: { ...base, ...env }, encoding: 'utf8' });
  const [user, system] = output.trim().split(' ').map(Number);
  return (user + system) * 1000;
}

function shuffled(list) {
  return list.map((item) => [Math.random(), item]).sort(([a], [b]) => a - b).map(([, item]) => item);
}

function compared(plain, other) {
  const ratios = plain.map((time, round) => other[round] / time);
  return {
    pairs: ratios.length,
    ratio: rounded({ q1: quantile(ratios, 0.25), median: quantile(ratios, 0.5), q3: quantile(ratios, 0.75), min: Math.min(...other) / Math.min(...plain) }, 3),
    plain_ms: rounded({ min: Math.min(...plain), median: quantile(plain, 0.5) }, 1),
    cpu_ms: rounded({ min: Math.min(...other), median: quantile(other, 0.5) }, 1),
  };
}

function quantile(list, q) {
  const sorted = [...list].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}

function rounded(object, digits) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, Number(value.toFixed(digits))]));
}

function report(row) {
  const { workload, node, variant, ratio, plain_ms: plain, cpu_ms: other } = row;
  console.log(
    `${workload.padEnd(13)} node ${node.padEnd(8)} ${variant.padEnd(14)} ratio ${ratio.median.toFixed(3)} [${ratio.q1.toFixed(3)}, ${ratio.q3.toFixed(3)}]` +
      `  of minima ${ratio.min.toFixed(3)}  ${plain.median} -> ${other.median} ms`,
  );
  return row;
}

function table(rows) {
  const line = ({ workload, node, variant, ratio, plain_ms: plain, cpu_ms: other }) =>
    `| ${workload} | ${node} | ${variant} | ${plain.median} | ${other.median} | **${ratio.median.toFixed(2)}** [${ratio.q1.toFixed(2)}, ${ratio.q3.toFixed(2)}] | ${ratio.min.toFixed(2)} |`;
  return ['| program | Node.js | cache | plain, ms | ms | ratio, median [quartiles] | ratio of minima |', '|---|---|---|---:|---:|---:|---:|', ...rows.map(line)].join('\n');
}
