// Web frameworks, as in their first tutorials.
import assert from 'node:assert/strict';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

// Requests once from the server, prints the answer and closes it.
const ASK = `
require('node:http').request({ port, host: '127.0.0.1', method: 'POST', path: '/sum', headers: { 'content-type': 'application/json' } }, (res) => {
  res.setEncoding('utf8').on('data', (text) => console.log(res.statusCode, text)).on('end', () => close());
}).end('[1,2,3]');
`;

const EXPRESS = `
const express = require('express');
const app = express();
app.use(express.json());
app.post('/sum', (req, res) => res.json({ sum: req.body.reduce((a, b) => a + b, 0) }));
const server = app.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const close = () => server.close();
  ${ASK}
});
`;

const FASTIFY = `
const app = require('fastify')();
app.post('/sum', async (request) => ({ sum: request.body.reduce((a, b) => a + b, 0) }));
app.listen({ port: 0, host: '127.0.0.1' }).then(() => {
  const { port } = app.server.address();
  const close = () => app.close();
  ${ASK}
});
`;

onEach('express answers a request', async (release, t) => {
  const app = App.create(t, { 'main.js': EXPRESS }).usePackages();
  const { plain } = await sameAsPlain(app, release, ['main.js'], { served: true });
  assert.equal(plain.stdout, '200 {"sum":6}\n');
});

onEach('fastify answers a request', async (release, t) => {
  const app = App.create(t, { 'main.js': FASTIFY }).usePackages();
  const { plain } = await sameAsPlain(app, release, ['main.js'], { served: true });
  assert.equal(plain.stdout, '200 {"sum":6}\n');
}, { from: 20 });

onEach('the compiler of TypeScript checks and prints', async (release, t) => {
  const app = App.create(t, { 'tsconfig.json': { compilerOptions: { noEmit: true, lib: ['es5'], types: [] } }, 'broken.ts': 'const n: number = "text";\n' }).usePackages();
  const { plain } = await sameAsPlain(app, release, ['node_modules/typescript/bin/tsc', '--project', '.'], { served: true });
  assert.match(plain.stdout, /TS2322/);
}, { only: [20, 24] });
