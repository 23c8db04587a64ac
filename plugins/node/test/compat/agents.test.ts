// Monitoring agents: they wrap what is loaded, by loader hooks installed before or after ours.
import assert from 'node:assert/strict';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { register } from '../support/places';
import { onEach } from '../support/releases';

const SERVER = `
const http = require('http');
const express = require('express');
const app = express();
app.get('/hello/:name', (req, res) => res.json({ hello: req.params.name }));
const server = app.listen(0, '127.0.0.1', () => {
  http.get({ port: server.address().port, path: '/hello/world' }, (res) => res.resume().on('end', () => server.close()));
});
`;

const AGENTS: Record<string, string> = {
  'require-in-the-middle': `
    const { Hook } = require('require-in-the-middle');
    new Hook(['express', 'http'], { internals: true }, (exports, name, basedir) => { console.log('hooked', name, Boolean(basedir)); return exports; });`,
  'shimmer, as newrelic uses it': `
    const shimmer = require('shimmer'); const Module = require('module');
    shimmer.wrap(Module, '_load', (original) => function (name) { if (name === 'express') console.log('load', name); return original.apply(this, arguments); });
    shimmer.wrap(Module, '_resolveFilename', (original) => function (name) { const file = original.apply(this, arguments); if (name === 'express') console.log('resolve', name); return file; });
    shimmer.wrap(require('http'), 'get', (original) => function () { console.log('get'); return original.apply(this, arguments); });`,
  'a compiler for every file': `
    const Module = require('module'); const original = Module.prototype._compile;
    Module.prototype._compile = function (source, file) { if (file.endsWith('express.js')) console.log('compile', file.slice(-15)); return original.call(this, source, file); };`,
  'OpenTelemetry': `
    const { NodeTracerProvider, SimpleSpanProcessor, InMemorySpanExporter } = require('@opentelemetry/sdk-trace-node');
    const { registerInstrumentations } = require('@opentelemetry/instrumentation');
    const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
    const { ExpressInstrumentation } = require('@opentelemetry/instrumentation-express');
    const exporter = new InMemorySpanExporter();
    const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    provider.register();
    registerInstrumentations({ instrumentations: [new HttpInstrumentation(), new ExpressInstrumentation()] });
    process.on('exit', () => console.log(exporter.getFinishedSpans().map((span) => [span.instrumentationScope.name, span.name, span.kind].join(' ')).sort().join('\\n')));`,
};

for (const [name, agent] of Object.entries(AGENTS)) {
  onEach(`an agent by ${name}`, async (release, t) => {
    const app = App.create(t, { 'main.js': SERVER, 'agent.js': agent }).usePackages();
    // A cache from before the agent's arrival.
    await sameAsPlain(app, release, ['main.js'], { starts: 2, served: true });
    const { plain } = await sameAsPlain(app, release, ['-r', './agent.js', 'main.js'], { starts: 2 });
    assert.match(plain.stdout, /express/);
    // The reverse order: the agent is there before the plugin.
    for (let start = 1; start <= 2; start += 1) {
      const outcome = await app.run(release, ['-r', './agent.js', '-r', register, 'main.js'], { plugin: false });
      assert.deepEqual(outcome, plain, `start ${start} after the agent`);
    }
  }, { only: name === 'OpenTelemetry' ? [18, 20, 24] : [18, 22, 26] });
}

onEach('import-in-the-middle', async (release, t) => {
  const app = App.create(t, {
    'agent.mjs': `import { register } from 'node:module';
      register('import-in-the-middle/hook.mjs', import.meta.url);
      const { Hook } = await import('import-in-the-middle');
      new Hook(['express', './own.mjs'], (exports, name) => { console.log('hooked', name); });`,
    'main.mjs': "import express from 'express'; import { own } from './own.mjs'; console.log(typeof express, own);",
    'own.mjs': "export const own = 'own';",
  }).usePackages();
  const { plain } = await sameAsPlain(app, release, ['--import', './agent.mjs', 'main.mjs'], { starts: 2 });
  assert.match(plain.stdout, /hooked express/);
}, { only: [20, 24] });

onEach('proxyquire replaces a dependency', async (release, t) => {
  const app = App.create(t, {
    'main.js': "const proxyquire = require('proxyquire');\nconsole.log(require('./asks'), proxyquire('./asks', { './answers': () => 'stub' }), proxyquire.noPreserveCache().noCallThru()('./asks', { './answers': () => 'again' }), require('./asks'));",
    'asks.js': "module.exports = require('./answers')();",
    'answers.js': "module.exports = () => 'real';",
  }).usePackages();
  assert.equal((await sameAsPlain(app, release, ['main.js'])).plain.stdout, 'real stub again real\n');
}, { only: [18, 22, 26] });
