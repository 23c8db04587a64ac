// What is remembered about a program that loads modules all its life.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../../src/cache/session';

function recording(): Session {
  const session = new Session();
  session.seen = new Map();
  session.resolutions = [];
  return session;
}

test('a module that is loaded again and again', () => {
  const session = recording();
  const parent = Object.assign(Object.create(module), { filename: '/app/main.js' });
  for (let i = 0; i < 100; i++) {
    session.noteAnswer(parent, './one', '/app/one.js');
    session.note('/app/one.js', undefined, undefined);
  }
  assert.deepEqual([session.seen?.size, session.resolutions], [1, [['/app', './one', '/app/one.js']]]);
});

test('new modules without an end', () => {
  const session = recording();
  const parent = Object.assign(Object.create(module), { filename: '/app/main.js' });
  for (let i = 0; i < 50_000; i++) {
    session.noteAnswer(parent, `./${i}`, `/app/${i}.js`);
    session.note(`/app/${i}.js`, undefined, undefined);
  }
  assert.deepEqual([session.seen?.size, session.resolutions?.length], [20_000, 20_000]);
});
