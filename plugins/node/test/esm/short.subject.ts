// Preloaded into a subject: the shortcut alone, without the start-up cache, and how often it was taken.
import Module = require('node:module');
import { goShort } from '../../src/esm/short';

interface Hooks {
  registerHooks(hooks: { resolve(specifier: string, context: unknown, next: (specifier: string, context: unknown) => { url: string }): { url: string } }): void;
}

const asked: string[] = [];
// Behind ours: it is asked only about what was not answered before.
(Module as unknown as Hooks).registerHooks({
  resolve(specifier, context, next) {
    asked.push(specifier);
    return next(specifier, context);
  },
});
if (!goShort()) throw new Error('this release has no hooks');
process.on('exit', () => {
  if (process.env['HASTEN_TEST_ASKED']) console.log('asked', asked.sort());
});
