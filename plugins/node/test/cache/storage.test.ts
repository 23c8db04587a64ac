// Cache files that are damaged, hostile, or cannot be written: the program does not notice.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import type { App } from '../support/app';
import { agree, cacheFile, onEachOld, warm } from './support';

const FILES = {
  'main.js': "const modules = ['a', 'b', 'ä']; console.log(modules.map((name) => require('./lib/' + name)).join());",
  'lib/a.js': "module.exports = 'a' + (() => 1)();",
  'lib/b.js': "module.exports = 'b' + require('./data').data;",
  'lib/ä.js': "module.exports = 'ä → €';",
  'lib/data.json': { data: 2 },
};

onEachOld('a cache file with any damage', FILES, async (app, release) => {
  await warm(app, release);
  assert.ok((await agree(app, release)).hits >= 4);
  const file = cacheFile(app);
  const whole = fs.readFileSync(file);
  for (let part = 0; part < 16; part++) {
    const damaged = Buffer.from(whole);
    const at = Math.floor((whole.length * part) / 16);
    damaged[at] = damaged[at]! ^ 0x41;
    fs.writeFileSync(file, damaged);
    const { hits } = await agree(app, release, ['main.js'], { env: { HASTEN_NODE_CACHE: 'read' } });
    // JSON has no bytecode, which is a separate part.
    assert.ok(hits <= 1, `byte ${at} of ${whole.length}: ${hits} modules from the cache`);
  }
  for (const length of [0, 1, 319, 320, whole.length >> 1, whole.length - 1]) {
    fs.writeFileSync(file, whole.subarray(0, length));
    assert.equal((await agree(app, release, ['main.js'], { env: { HASTEN_NODE_CACHE: 'read' } })).hits, 0);
  }
}, { only: [18, 24] });

/** What somebody else may have substituted for a cache file. */
const impostors: Record<string, (file: string) => void> = {
  'writable for the group': (file) => fs.chmodSync(file, 0o620),
  'writable for everybody': (file) => fs.chmodSync(file, 0o602),
  'a link': (file) => {
    fs.renameSync(file, `${file}.real`);
    fs.symlinkSync(`${file}.real`, file);
  },
  'one of two names': (file) => fs.linkSync(file, `${file}.second`),
  'a directory': (file) => {
    fs.unlinkSync(file);
    fs.mkdirSync(file);
  },
};

for (const [name, disguise] of Object.entries(impostors)) {
  onEachOld(`a cache file that is not to be trusted: ${name}`, FILES, async (app, release) => {
    await warm(app, release);
    disguise(cacheFile(app));
    assert.equal((await agree(app, release, ['main.js'], { env: { HASTEN_NODE_CACHE: 'read' } })).hits, 0);
    await agree(app, release);
  }, { only: [20, 26] });
}

onEachOld('a cache file of another user', FILES, async (app, release, t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can give files away');
  await warm(app, release);
  fs.chownSync(cacheFile(app), 65534, 65534);
  assert.equal((await agree(app, release, ['main.js'], { env: { HASTEN_NODE_CACHE: 'read' } })).hits, 0);
}, { only: [22] });

/** Places where nothing can be stored. */
const places: Record<string, (app: App) => Record<string, string | undefined>> = {
  'no home': () => ({ HASTEN_CACHE_DIR: undefined, HOME: undefined, XDG_CACHE_HOME: undefined }),
  'a file in its place': (app) => ({ HASTEN_CACHE_DIR: app.path('main.js') }),
  'a folder that others can write to': (app) => {
    fs.mkdirSync(app.path('open/node'), { recursive: true });
    fs.chmodSync(app.path('open/node'), 0o777);
    return { HASTEN_CACHE_DIR: app.path('open') };
  },
  'a device': () => ({ HASTEN_CACHE_DIR: '/dev/full' }),
  // Everyone may look into it, and creating anything there fails as if it did not exist.
  'a home in /proc': () => ({ HASTEN_CACHE_DIR: undefined, XDG_CACHE_HOME: undefined, HOME: '/proc/1' }),
  'a read-only file system': () => ({ HASTEN_CACHE_DIR: '/proc/hasten' }),
};

for (const [name, environment] of Object.entries(places)) {
  onEachOld(`no place for a cache: ${name}`, FILES, async (app, release) => {
    const env = environment(app);
    for (let start = 0; start < 2; start++) assert.equal((await agree(app, release, ['main.js'], { env })).hits, 0);
  }, { only: [24] });
}

onEachOld('a pipe in the place of an account', FILES, async (app, release) => {
  await warm(app, release);
  const account = cacheFile(app).replace(/cache$/, 'credit');
  fs.unlinkSync(account);
  await app.exec(release, 'mkfifo', [account], { plugin: false });
  app.write('lib/b.js', "module.exports = 'bb';");
  await agree(app, release);
}, { only: [22] });

onEachOld('the home of somebody else', FILES, async (app, release, t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can give homes away');
  fs.mkdirSync(app.path('home/.config'), { recursive: true });
  for (const name of ['home', 'home/.config']) fs.chownSync(app.path(name), 65534, 65534);
  for (const env of [{ HOME: app.path('home') }, { XDG_CACHE_HOME: app.path('home/.config') }]) {
    for (let start = 0; start < 2; start++) await agree(app, release, ['main.js'], { env: { ...env, HASTEN_CACHE_DIR: undefined } });
  }
  assert.deepEqual(fs.readdirSync(app.path('home'), { recursive: true }), ['.config']);
}, { only: [22, 26] });

const CHANGED = `const say = (name) => { try { console.log(require(name)); } catch (error) { console.log(error.code); } };
  say('./lib/a');
  if (process.argv[2]) { process.setgid(65534); process.setuid(65534); }
  say('./lib/b'); say('./lib/data.json'); say('absent'); say('pkg');`;

onEachOld('a program that becomes another user', { ...FILES, 'main.js': CHANGED, 'node_modules/pkg/package.json': { main: 'x.js' }, 'node_modules/pkg/x.js': '' }, async (app, release, t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can become another user');
  await warm(app, release);
  for (const args of [['main.js'], ['main.js', 'nobody'], ['main.js']]) await agree(app, release, args);
  for (const folder of [path.dirname(app.folder), app.folder]) fs.chmodSync(folder, 0o755);
  // It can reach the files now, but cannot read one of them.
  fs.chmodSync(app.path('lib/b.js'), 0o600);
  for (const args of [['main.js'], ['main.js', 'nobody']]) await agree(app, release, args);
}, { only: [20, 24] });

onEachOld('a full disk', FILES, async (app, release) => {
  const limited = async (): Promise<string> => {
    const { stdout, stderr, code } = await app.exec(release, '/bin/sh', ['-c', 'trap "" XFSZ; ulimit -f 1; exec node main.js'], { eager: true });
    assert.deepEqual([stderr, code], ['', 0]);
    return stdout;
  };
  const plain = await app.run(release, ['main.js'], { plugin: false });
  for (let start = 0; start < 2; start++) assert.equal(await limited(), plain.stdout);
  // The account of a start's cost is one line, and half of it is worthless.
  assert.deepEqual(fs.readdirSync(path.join(app.cache, 'node')).filter((name) => !name.endsWith('.credit')), []);
}, { only: [22] });

onEachOld('twenty starts at once', FILES, async (app, release) => {
  const plain = await app.run(release, ['main.js'], { plugin: false });
  const all = await Promise.all(Array.from({ length: 20 }, () => app.run(release, ['main.js'], { eager: true })));
  for (const one of all) assert.deepEqual(one, plain);
  assert.deepEqual(fs.readdirSync(path.join(app.cache, 'node')).map((name) => path.extname(name)).filter((name) => name !== '.code'), ['.cache', '.credit']);
  assert.ok((await agree(app, release)).hits >= 4);
}, { only: [20, 26] });

onEachOld('a writer that was killed', FILES, async (app, release) => {
  await warm(app, release);
  const file = cacheFile(app);
  fs.unlinkSync(file);
  fs.writeFileSync(`${file}.tmp`, 'half of it');
  fs.utimesSync(`${file}.tmp`, new Date(), new Date(Date.now() + 50_000));
  await agree(app, release);
  // Somebody may still be writing it; a minute later nobody is.
  assert.equal(fs.existsSync(file), false);
  fs.utimesSync(`${file}.tmp`, 1, 1);
  await agree(app, release);
  assert.equal(fs.existsSync(file), true);
}, { only: [22] });

onEachOld('the limit of all caches', { ...FILES, 'other.js': FILES['main.js'] }, async (app, release) => {
  await warm(app, release);
  const old = cacheFile(app);
  fs.truncateSync(old, 900_000);
  fs.utimesSync(old, 1, 1);
  fs.writeFileSync(path.join(app.cache, 'node', '0123456789abcdef.cache'), Buffer.alloc(200_000));
  await warm(app, release, ['other.js'], { env: { HASTEN_NODE_CACHE_LIMIT: '1' } });
  assert.equal(fs.existsSync(old), false);
  assert.ok(fs.existsSync(path.join(app.cache, 'node', '0123456789abcdef.cache')));
}, { only: [22] });

onEachOld('a cache that is only read', FILES, async (app, release) => {
  await warm(app, release, ['main.js'], { env: { HASTEN_NODE_CACHE: 'read' } });
  assert.equal(fs.existsSync(path.join(app.cache, 'node')), false);
}, { only: [22] });
