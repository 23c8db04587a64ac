// Servers that answer their own requests, and libraries that are loaded and used a little.

const ASK = `
const ask = (port, path, body) => new Promise((resolve, reject) => {
  const request = require('http').request({ port, host: '127.0.0.1', path, method: body ? 'POST' : 'GET', headers: { 'content-type': 'application/json', connection: 'close' } }, (res) => {
    let text = '';
    res.setEncoding('utf8').on('data', (chunk) => { text += chunk; }).on('end', () => resolve(console.log(res.statusCode, res.headers['content-type'], text)));
  });
  request.on('error', reject).end(body);
});`;

/** A dependency of cheerio needs Node.js 20. */
export const LIBRARIES: Readonly<Record<string, string>> = {
  express: `${ASK}
    const express = require('express'); const app = express();
    app.set('env', 'test'); app.set('view engine', 'ejs'); app.set('views', 'src');
    app.use(express.json(), express.static('src'));
    app.get('/view', (req, res) => res.render('view', { title: 't', items: [{ n: 1 }] })).post('/sum', (req, res) => res.json(req.body)).get('/fail', () => { throw new Error('no'); });
    const server = app.listen(0, '127.0.0.1', async () => { const { port } = server.address(); for (const path of ['/data.json', '/view', '/none']) await ask(port, path); await ask(port, '/sum', '[1,2]'); await ask(port, '/sum', '[1,2'); await ask(port, '/fail'); server.close(); });`,
  koa: `${ASK}
    const Koa = require('koa'); const app = new Koa(); app.silent = true;
    app.use(async (ctx, next) => { await next(); ctx.set('x', 'y'); }).use((ctx) => { if (ctx.path === '/fail') ctx.throw(418); ctx.body = { path: ctx.path }; });
    const server = app.listen(0, '127.0.0.1', async () => { await ask(server.address().port, '/a'); await ask(server.address().port, '/fail'); server.close(); });`,
  fastify: `${ASK}
    const app = require('fastify')();
    app.post('/sum', { schema: { body: { type: 'array', items: { type: 'number' } }, response: { 200: { type: 'object', properties: { sum: { type: 'number' } } } } } }, async ({ body }) => ({ sum: body[0], not: 1 }));
    app.listen({ port: 0, host: '127.0.0.1' }).then(async () => { const { port } = app.server.address(); await ask(port, '/sum', '[1]'); await ask(port, '/sum', '["a"]'); await ask(port, '/none'); app.close(); });`,
  hapi: `${ASK}
    const server = require('@hapi/hapi').server({ port: 0, host: '127.0.0.1' }); server.route({ method: 'GET', path: '/{name}', handler: ({ params }) => params });
    server.start().then(async () => { await ask(server.info.port, '/a'); await ask(server.info.port, '/a/b'); await server.stop(); });`,
  nest: `${ASK}
    require('reflect-metadata'); const { Module, Controller, Get } = require('@nestjs/common'); const { NestFactory } = require('@nestjs/core');
    class Cats { all() { return { cats: [] }; } } Controller('cats')(Cats); Get()(Cats.prototype, 'all', Object.getOwnPropertyDescriptor(Cats.prototype, 'all'));
    class App {} Module({ controllers: [Cats] })(App);
    NestFactory.create(App, { logger: false }).then(async (app) => { await app.listen(0, '127.0.0.1'); await ask(app.getHttpServer().address().port, '/cats'); await app.close(); });`,
  ws: `const { WebSocketServer, WebSocket } = require('ws'); const server = new WebSocketServer({ port: 0 }, () => { const client = new WebSocket('ws://127.0.0.1:' + server.address().port);
    client.on('open', () => client.send('ping')).on('message', (data) => { console.log(String(data)); client.close(); server.close(); }); }); server.on('connection', (socket) => socket.on('message', (data) => socket.send(data + ' pong')));`,
  'socket.io': `const http = require('http').createServer(); const { Server } = require('socket.io'); const { io } = require('socket.io-client'); const server = new Server(http); server.on('connection', (socket) => socket.on('ask', (n, answer) => answer(n * 2)));
    http.listen(0, '127.0.0.1', () => { const client = io('http://127.0.0.1:' + http.address().port, { transports: ['websocket'] }); client.emit('ask', 21, (n) => { console.log(n); client.close(); server.close(); }); });`,
  supertest: `const app = require('express')(); app.get('/', (req, res) => res.send('hello')); require('supertest')(app).get('/').expect(200).then(({ text }) => console.log(text));`,
  nock: `const nock = require('nock'); nock('http://example.test').get('/').reply(200, 'mocked'); require('axios').get('http://example.test/').then(({ data, status }) => console.log(status, data));`,
  axios: `const server = require('http').createServer((req, res) => res.end(req.url)).listen(0, '127.0.0.1', async () => { const axios = require('axios'); const at = 'http://127.0.0.1:' + server.address().port; console.log((await axios.get(at + '/a?b=c')).data); server.close(); });`,
  pino: `const pino = require('pino'); const log = pino({ timestamp: false, base: null, redact: ['secret'] }); log.info({ secret: 1, a: [1] }, 'hello %s', 'you'); log.child({ c: 1 }).error(new TypeError('no').message);`,
  'pino with a worker': `const pino = require('pino'); const log = pino({ timestamp: false, base: null }, pino.transport({ target: 'pino/file', options: { destination: 1 } })); log.info('through a thread'); log.flush(() => {});`,
  winston: `const { createLogger, format, transports } = require('winston'); const log = createLogger({ format: format.combine(format.colorize({ all: true }), format.simple()), transports: [new transports.Console(), new transports.File({ filename: 'out.log' })] }); log.info('hello', { a: 1 }); log.error(new Error('no').message);`,
  bunyan: `require('bunyan').createLogger({ name: 'a', hostname: 'h' }).info({ b: 1 }, 'hello');`,
  log4js: `const log4js = require('log4js'); log4js.configure({ appenders: { out: { type: 'stdout', layout: { type: 'messagePassThrough' } } }, categories: { default: { appenders: ['out'], level: 'info' } } }); log4js.getLogger().warn('careful %d', 1); log4js.shutdown(() => {});`,
  commander: `const { Command } = require('commander'); const program = new Command('x').version('1.0.0').option('-p, --port <n>', 'port', Number, 80); program.command('serve <dir>').description('serves').action((dir, options, command) => console.log(dir, command.optsWithGlobals())); program.parse(['serve', 'd', '-p', '1'], { from: 'user' }); program.outputHelp(); program.exitOverride(); try { program.parse(['none'], { from: 'user' }); } catch (error) { console.log(error.code); }`,
  yargs: `const yargs = require('yargs'); console.log(yargs(['serve', '--port', '1', '--no-color']).command('serve', 'serves', (y) => y.option('port', { type: 'number' })).parse()); yargs([]).usage('$0 x').option('a', { describe: 'b' }).showHelp('log');`,
  proxyquire: `const proxyquire = require('proxyquire'); require('fs').writeFileSync('asks.js', "module.exports = require('./answers')();"); require('fs').writeFileSync('answers.js', "module.exports = () => 'real';");
    console.log(require('./asks'), proxyquire('./asks', { './answers': () => 'stub' }), proxyquire.noPreserveCache().noCallThru()('./asks', { './answers': () => 'again' }), require('./asks'));`,
  mockery: `const mockery = require('mockery'); mockery.enable({ useCleanCache: true, warnOnUnregistered: false }); mockery.registerMock('./data', { name: 'mocked' }); console.log(require('./src/index').data.name); mockery.deregisterAll(); mockery.disable(); console.log(require('./src/index').data.name);`,
  sinon: `const sinon = require('sinon'); const clock = sinon.useFakeTimers(); let n = 0; const timer = setInterval(() => { n++; }, 1000); clock.tick(10500); console.log(n, Date.now()); clearInterval(timer); sinon.stub(require('fs'), 'readFileSync').returns('stub'); console.log(require('fs').readFileSync('x')); sinon.restore(); clock.restore(); console.log(require('./src/index').data.name);`,
  'graceful-fs': `const fs = require('graceful-fs'); fs.gracefulify(require('fs')); Promise.all([1, 2, 3].map((n) => new Promise((done) => fs.writeFile('f' + n, String(n), done)))).then(() => console.log(fs.readdirSync('.').filter((name) => /^f\\d/.test(name)), require('./src/index').data));`,
  jsdom: `const { JSDOM } = require('jsdom'); const { window } = new JSDOM('<p>one</p><script>document.body.append(1 + 1)</script>', { runScripts: 'dangerously' }); console.log(window.document.body.textContent); window.setTimeout(() => { console.log('later'); window.close(); }, 5);`,
  'jsdom in the place of the world': `const { window } = new (require('jsdom').JSDOM)('<p>a</p>'); const { setTimeout: later } = globalThis;
    Object.assign(globalThis, { window, document: window.document, setTimeout: (...given) => Number(later(...given)), setInterval: () => { throw new Error('none'); } });
    setTimeout(() => { console.log(document.querySelector('p').textContent, require('./src/index').data.name); }, 1500);`,
  cheerio: `const $ = require('cheerio').load('<ul><li>a<li class=b>c</ul>'); console.log($('li').map((i, e) => $(e).text()).get(), $.html('.b'));`,
  xml2js: `require('xml2js').parseString('<a b="c"><d>1</d><d>2</d></a>', (error, tree) => console.log(JSON.stringify(tree)));`,
  pug: `console.log(require('pug').render('ul\\n  each n in [1, 2]\\n    li= n', { pretty: true }));`,
  graphql: `const { buildSchema, graphql } = require('graphql'); graphql({ schema: buildSchema('type Query { a(n: Int!): String }'), source: '{ a(n: 2) b }', rootValue: { a: ({ n }) => 'x'.repeat(n) } }).then((answer) => console.log(JSON.stringify(answer)));`,
  protobufjs: `const { Root, parse } = require('protobufjs'); const { root } = parse('syntax = "proto3"; message A { int32 n = 1; repeated string s = 2; }'); const A = root.lookupType('A'); console.log(A.toObject(A.decode(A.encode({ n: 300, s: ['a'] }).finish())));`,
  knex: `const knex = require('knex')({ client: 'pg' }); console.log(knex('users').where({ id: 1 }).orWhere('a', '>', 2).toString());`,
  sequelize: `const { Sequelize } = require('sequelize'); try { new Sequelize('postgres://localhost/x'); } catch (error) { console.log(error.message); }`,
  rxjs: `const { of, map, concatMap, delay } = require('rxjs'); of(1, 2, 3).pipe(concatMap((n) => of(n).pipe(delay(1))), map((n) => n * 2)).subscribe((n) => console.log(n));`,
  bluebird: `const Promise = require('bluebird'); Promise.config({ longStackTraces: true }); Promise.map([1, 2], (n) => Promise.delay(n).return(n * 2)).tap(console.log).then(() => { throw new RangeError('x'); }).catch(RangeError, ({ message }) => console.log(message));`,
  async: `require('async').parallelLimit([1, 2, 3].map((n) => (done) => setTimeout(done, 4 - n, null, n)), 2, (error, all) => console.log(all));`,
  lodash: `const _ = require('lodash'); console.log(_.groupBy([1.2, 1.8, 2], Math.floor), _.template('<%= a %>')({ a: 1 }), require('lodash/fp').map((n) => n + 1)([1]));`,
  'moment, dayjs and luxon': `const moment = require('moment'); moment.locale('de'); require('dayjs/locale/fr'); console.log(moment.utc(0).format('LLLL'), require('dayjs')(0).locale('fr').format('MMMM'), require('luxon').DateTime.fromMillis(0, { zone: 'utc' }).toFormat('cccc'));`,
  'light-my-request': `require('light-my-request')((req, res) => res.end(req.url), { method: 'GET', url: '/a' }, (error, { payload }) => console.log(payload));`,
};
