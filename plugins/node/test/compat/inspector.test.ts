// A debugger attached later: breakpoints match the file, although the code came from the cache.
import assert from 'node:assert/strict';
import { App, type RunOptions } from '../support/app';
import { onEach, releases, type Release } from '../support/releases';

const WORK = `// The first line.
exports.work = (n) => {
  const doubled = n * 2;
  return () => { const inner = doubled + 1; return inner; };
};
`;

const FILES = {
  'work.js': WORK,
  'main.js': `const { work } = require('./work');
globalThis.go = () => work(20)();
const open = () => { require('inspector').open(0, '127.0.0.1'); console.log(require('inspector').url()); };
if (process.argv[2] === 'signal') setInterval(() => { const url = process.argv[2] && require('inspector').url(); if (url) { console.log(url); process.argv[2] = ''; } }, 20);
else open();
setInterval(() => {}, 1000);
if (process.argv[2] === 'signal') console.log('ready');
`,
  // Runs in a release that has WebSocket.
  'client.js': `const socket = new WebSocket(process.argv[2]);
const waiting = new Map(); let id = 0; const scripts = new Map(); let paused;
const post = (method, params) => new Promise((resolve) => { waiting.set(++id, resolve); socket.send(JSON.stringify({ id, method, params })); });
const pauses = []; let wake;
const pause = () => pauses.length ? Promise.resolve(pauses.shift()) : new Promise((resolve) => { wake = resolve; });
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.id) waiting.get(message.id)(message.result ?? message.error);
  if (message.method === 'Debugger.scriptParsed') scripts.set(message.params.scriptId, message.params);
  if (message.method === 'Debugger.paused') wake ? (wake(message.params), wake = undefined) : pauses.push(message.params);
};
socket.onopen = async () => {
  await post('Runtime.enable');
  await post('Debugger.enable');
  const url = process.argv[3];
  for (const [lineNumber, columnNumber] of [[2, 0], [3, 17]]) {
    const set = await post('Debugger.setBreakpointByUrl', { url, lineNumber, columnNumber });
    console.log('set', set.locations.map((at) => [at.lineNumber, at.columnNumber]));
  }
  const result = post('Runtime.evaluate', { expression: 'go()', returnByValue: true });
  for (let hit = 0; hit < 2; hit += 1) {
    const { callFrames: [frame, caller], hitBreakpoints } = await pause();
    console.log('hit', hitBreakpoints.length, frame.functionName, frame.location.lineNumber, frame.location.columnNumber, frame.url === url);
    const value = await post('Debugger.evaluateOnCallFrame', { callFrameId: frame.callFrameId, expression: 'typeof n + typeof doubled + __filename' });
    console.log(value.result.value);
    await post('Debugger.resume');
  }
  console.log((await result).result.value);
  socket.close();
};
`,
};

/** What a debugger attached to the running program sees. */
async function debugged(app: App, release: Release, how: 'open' | 'signal', options: RunOptions): Promise<string> {
  const args = how === 'signal' ? ['--inspect-port=127.0.0.1:0', 'main.js', 'signal'] : ['main.js', 'open'];
  const child = app.spawn(release, release.node, args, options);
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.includes('ready\n') && !output.includes('ws://')) child.kill('SIGUSR1');
        const found = /(ws:\S+)\n/.exec(output);
        if (found) resolve(found[1]!);
      });
      child.once('exit', () => reject(new Error(`the program ended: ${output}`)));
    });
    const client = releases.find(({ major }) => major >= 22) ?? release;
    const seen = await app.run(client, ['client.js', url, `file://${app.path('work.js')}`], { plugin: false });
    assert.equal(seen.stderr, '');
    return seen.stdout;
  } finally {
    child.kill('SIGKILL');
  }
}

for (const how of ['open', 'signal'] as const) {
  onEach(`a debugger that comes by ${how === 'open' ? 'inspector.open()' : 'SIGUSR1'}`, async (release, t) => {
    const app = App.create(t, FILES);
    const args = how === 'signal' ? ['--inspect-port=127.0.0.1:0', 'main.js', 'signal'] : ['main.js', 'open'];
    // A program that never ends records once it has settled; here one with the same key and modules ends at once.
    const ending = { eager: true, env: { HASTEN_TEST_END: '1' } };
    app.write('main.js', `if (process.env.HASTEN_TEST_END) setImmediate(() => process.exit());\n${FILES['main.js']}`);
    for (let start = 0; start < 3; start += 1) await app.run(release, args, ending);
    const hits = app.stats().at(-1)?.['hits'];
    assert.ok(Number(hits) > 0, 'the cache is in use');
    const plain = await debugged(app, release, how, { plugin: false });
    assert.match(plain, /^set \[ \[ 2, \d+ \] \]\n/);
    assert.match(plain, /\n41\n$/);
    assert.equal(await debugged(app, release, how, { eager: true }), plain);
  });
}
