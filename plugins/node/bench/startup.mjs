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
  --variants 'warm'    of: warm (a full cache), cold (none yet: the first start), recording (all starts from the first one until the cache is full),
                       compile-cache (Node's own, without the plugin)
  --packages DIR       another folder with packages in node_modules; may be repeated
  --plugin DIR         the built plugin (default: target/release/node)
  --json FILE          the figures, for docs/results; --markdown FILE prints such a file as a table
`;

// What a program is made of: the packages that it needs, files of its own, and how it is started; and how often, where one start is too short to measure.
const WORKLOADS = {
  empty: { packages: [], files: { 'main.js': '' }, args: ['main.js'], starts: 10 },
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

// Starts of a series until its cache is full, at most, and series.
const MOST_STARTS = 60;
const SERIES = 5;

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
  const variants = options.variants.split(' ').filter((variant) => variant !== 'recording');
  const subject = { node, folder, register, ...WORKLOADS[name] };
  const caches = fs.mkdtempSync(path.join(scratch, 'cache-'));
  const run = (variant, round) => cpu(subject, environment(variant, register, caches, round), variant === 'cold');
  if (variants.includes('warm')) record(subject, path.join(caches, 'warm'));
  for (let start = 0; start < 2; start += 1) for (const variant of ['plain', ...variants]) run(variant, `before-${start}`);
  const times = Object.fromEntries(['plain', ...variants].map((variant) => [variant, []]));
  for (let round = 0; round < Number(options.pairs); round += 1) {
    for (const variant of shuffled(Object.keys(times))) times[variant].push(run(variant, round));
  }
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
  const rows = variants.map((variant) => report({ workload: name, node: version, variant, ...compared(times.plain, times[variant]) }));
  const recording = options.variants.split(' ').includes('recording') ? [recordings(subject, caches, { workload: name, node: version })] : [];
  return [...rows, ...recording];
}

function environment(variant, register, caches, round) {
  if (variant === 'plain') return {};
  if (variant === 'compile-cache') return { NODE_COMPILE_CACHE: path.join(caches, 'compile') };
  return { HASTEN_CACHE_DIR: path.join(caches, variant === 'cold' ? `cold-${round}` : 'warm'), NODE_OPTIONS: `--require=${register}` };
}

/** Starts a program until its cache is full; what each start took with it, and plain beside it, in milliseconds. */
function record(subject, cache) {
  const statistics = `${cache}.statistics`;
  const env = { HASTEN_CACHE_DIR: cache, HASTEN_NODE_STATS: statistics, NODE_OPTIONS: `--require=${subject.register}` };
  const starts = [];
  for (let last = null; starts.length < MOST_STARTS && (!last || last.waiting || last.recorded_bytes > 0); ) {
    const one = { ...subject, starts: 1 };
    const plain = cpu(one, {});
    starts.push({ plain, cpu: cpu(one, env) });
    // A program may be several processes: the one that records most.
    const lines = fs.existsSync(statistics) ? fs.readFileSync(statistics, 'utf8').trim().split('\n').map((line) => JSON.parse(line)) : [{}];
    fs.rmSync(statistics, { force: true });
    last = { waiting: lines.some(({ waiting }) => waiting), recorded_bytes: Math.max(...lines.map(({ recorded_bytes: bytes }) => bytes ?? 0)) };
  }
  return starts;
}

/** What starts cost from the first one until nothing is left to record, in so many series. */
function recordings(subject, caches, row) {
  const series = Array.from({ length: SERIES }, (_, i) => record(subject, path.join(caches, `series-${i}`)));
  const sum = (starts, key) => starts.reduce((total, start) => total + start[key], 0);
  const median = (list) => Number(quantile(list, 0.5).toFixed(3));
  const nth = (n) => series.flatMap((starts) => (starts[n] ? [starts[n].cpu / starts[n].plain] : []));
  const result = {
    ...row,
    variant: 'recording',
    starts: median(series.map((starts) => starts.length - 1)),
    all: median(series.map((starts) => sum(starts, 'cpu') / sum(starts, 'plain'))),
    highest: median(series.map((starts) => Math.max(...starts.map(({ cpu, plain }) => cpu / plain)))),
    each: Array.from({ length: Math.max(...series.map(({ length }) => length)) }, (_, n) => median(nth(n))),
  };
  const each = result.each.map((ratio) => ratio.toFixed(2)).join(' ');
  console.log(`${row.workload.padEnd(13)} node ${row.node.padEnd(8)} recording      ratio of all ${result.all.toFixed(3)}, of each ${each}; full after ${result.starts}`);
  return result;
}

/** User and system time of a process and its children, in milliseconds; of several starts in a row, the mean. A fresh cache is another one for each. */
function cpu({ node, args, folder, starts = 1 }, env, fresh = false) {
  const start = 'if [[ $fresh ]]; then export HASTEN_CACHE_DIR=$fresh-$i; fi; "$@"';
  const script = `TIMEFORMAT="%3U %3S"; { time for ((i = 0; i < ${starts}; i++)); do ${start} >/dev/null 2>/dev/null </dev/null; done; } 2>&1`;
  const base = { PATH: `${path.dirname(node)}:${process.env.PATH}`, HOME: folder, NEXT_TELEMETRY_DISABLED: '1' };
  const all = { ...base, ...env, ...(fresh ? { fresh: env.HASTEN_CACHE_DIR } : {}) };
  const output = execFileSync('bash', ['-c', `${script}; true`, 'bash', node, ...args], { cwd: folder, env: all, encoding: 'utf8' });
  const [user, system] = output.trim().split(' ').map(Number);
  return ((user + system) * 1000) / starts;
}

function shuffled(list) {
  return list.map((item) => [Math.random(), item]).sort(([a], [b]) => a - b).map(([, item]) => item);
}

function compared(plain, other) {
  const ratios = plain.map((time, round) => other[round] / time);
  return {
    pairs: ratios.length,
    ratio: rounded({ q1: quantile(ratios, 0.25), median: quantile(ratios, 0.5), q3: quantile(ratios, 0.75), min: Math.min(...other) / Math.min(...plain) }, 3),
    plain_ms: rounded({ min: Math.min(...plain), median: quantile(plain, 0.5) }, 2),
    cpu_ms: rounded({ min: Math.min(...other), median: quantile(other, 0.5) }, 2),
    // What it takes more, in each round beside the other.
    more_ms: rounded({ median: quantile(plain.map((time, round) => other[round] - time), 0.5) }, 2),
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
  const { workload, node, variant, ratio, plain_ms: plain, cpu_ms: other, more_ms: more } = row;
  console.log(
    `${workload.padEnd(13)} node ${node.padEnd(8)} ${variant.padEnd(14)} ratio ${ratio.median.toFixed(3)} [${ratio.q1.toFixed(3)}, ${ratio.q3.toFixed(3)}]` +
      `  of minima ${ratio.min.toFixed(3)}  ${plain.median} -> ${other.median} ms (${more.median > 0 ? '+' : ''}${more.median})`,
  );
  return row;
}

function table(rows) {
  const line = ({ workload, node, variant, ratio, plain_ms: plain, cpu_ms: other, more_ms: more }) =>
    `| ${workload} | ${node} | ${variant} | ${plain.median.toFixed(1)} | ${other.median.toFixed(1)} | ${more.median.toFixed(1)} | **${ratio.median.toFixed(2)}** [${ratio.q1.toFixed(2)}, ${ratio.q3.toFixed(2)}] | ${ratio.min.toFixed(2)} |`;
  const heads = ['| program | Node.js | cache | plain, ms | ms | more, ms | ratio, median [quartiles] | ratio of minima |', '|---|---|---|---:|---:|---:|---:|---:|'];
  const starts = ({ workload, node, starts: count, all, highest, each }) =>
    `| ${workload} | ${node} | ${count} | **${all.toFixed(2)}** | ${highest.toFixed(2)} | ${each.map((ratio) => ratio.toFixed(2)).join(' ')} |`;
  const recordings = rows.filter(({ variant }) => variant === 'recording').map(starts);
  const more = ['', '| program | Node.js | full after starts | ratio of all these | the highest | of each, median |', '|---|---|---:|---:|---:|---|', ...recordings];
  return [...heads, ...rows.filter(({ ratio }) => ratio).map(line), ...(recordings.length > 0 ? more : [])].join('\n');
}
