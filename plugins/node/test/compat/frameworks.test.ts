// Web frameworks, as their first pages show them.
import assert from 'node:assert/strict';
import { App } from '../support/app';
import { sameAsPlain } from '../support/differential';
import { onEach } from '../support/releases';

const EXPRESS = `
const express = require('express');
const http = require('node:http');
const app = express();
app.use(express.json());
app.post('/sum', (req, res) => res.json({ sum: req.body.reduce((a, b) => a + b, 0) }));
const server = app.listen(0, '127.0.0.1', () => {
  const request = http.request({ port: server.address().port, method: 'POST', path: '/sum', headers: { 'content-type': 'application/json' } }, (res) => {
    res.setEncoding('utf8').on('data', (text) => console.log(res.statusCode, text)).on('end', () => server.close());
  });
  request.end('[1,2,3]');
});
`;

onEach('express answers a request', async (release, t) => {
  const app = App.create(t, { 'main.js': EXPRESS }).usePackages();
  const { plain } = await sameAsPlain(app, release, ['main.js']);
  assert.equal(plain.stdout, '200 {"sum":6}\n');
});
