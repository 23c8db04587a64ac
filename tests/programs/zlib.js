// Everything that Node's zlib does with streams, once each; prints what must not depend on who does it.
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const { pipeline } = require('stream/promises');
const { Readable } = require('stream');
const zlib = require('zlib');

const page = fs.readFileSync(process.argv[2]);
const digest = (bytes) => `${bytes.length} ${crypto.createHash('sha256').update(bytes).digest('hex').slice(0, 16)}`;

function atOnce() {
  const pairs = [['deflate', 'inflate'], ['deflateRaw', 'inflateRaw'], ['gzip', 'gunzip'], ['gzip', 'unzip'], ['deflate', 'unzip'],
    ['brotliCompress', 'brotliDecompress']];
  for (const [pack, unpack] of pairs) {
    for (const level of [0, 1, 4, 6, 9, -1]) {
      for (const input of [Buffer.alloc(0), Buffer.from('a'), page.subarray(0, 5000), page]) {
        const options = pack.startsWith('brotli') ? {} : { level, memLevel: 1 + (level & 7), windowBits: 9 + (level & 6) };
        const packed = zlib[`${pack}Sync`](input, options);
        console.log(pack, unpack, level, digest(zlib[`${unpack}Sync`](packed)));
      }
    }
  }
}

function badInput() {
  const good = zlib.gzipSync(page);
  const flipped = Buffer.from(good);
  flipped[good.length - 6] ^= 1;
  for (const bad of [good.subarray(0, good.length / 2), flipped, Buffer.from('not packed'), Buffer.alloc(0)]) {
    try {
      console.log(digest(zlib.gunzipSync(bad)));
    } catch (error) {
      console.log(error.code, error.errno, error.message);
    }
  }
}

async function streamed() {
  for (const chunk of [1, 100, 65536]) {
    const pieces = [];
    const input = chunk === 1 ? page.subarray(0, 20000) : page;
    const parts = function* parts() {
      for (let at = 0; at < input.length; at += chunk) yield input.subarray(at, at + chunk);
    };
    const pack = zlib.createGzip({ level: 6, chunkSize: 64 + chunk });
    await pipeline(Readable.from(parts()), pack, zlib.createGunzip({ chunkSize: 100 + chunk }), async (source) => {
      for await (const piece of source) pieces.push(piece);
    });
    console.log('streamed', chunk, digest(Buffer.concat(pieces)), pack.bytesWritten);
  }
}

async function flushed() {
  const pack = zlib.createDeflate({ dictionary: page.subarray(0, 4096) });
  const unpack = zlib.createInflate({ dictionary: page.subarray(0, 4096) });
  const seen = [];
  pack.on('data', (piece) => unpack.write(piece));
  unpack.on('data', (piece) => seen.push(piece));
  for (let i = 0; i < 10; i += 1) {
    pack.write(page.subarray(i * 777, (i + 1) * 777));
    await new Promise((done) => pack.flush(i % 2 ? zlib.constants.Z_SYNC_FLUSH : zlib.constants.Z_FULL_FLUSH, done));
    if (i === 5) await new Promise((done) => pack.params(9, zlib.constants.Z_FILTERED, done));
  }
  pack.end();
  await new Promise((done) => pack.on('end', done));
  unpack.end();
  await new Promise((done) => unpack.on('end', done));
  console.log('flushed', digest(Buffer.concat(seen)));
}

(async () => {
  atOnce();
  badInput();
  await streamed();
  await flushed();
  console.log('end');
  fs.readSync(0, Buffer.alloc(1));
})();
