// A small project with something for every tool.
import fs from 'node:fs';
import path from 'node:path';
import { App, type Owner } from '../support/app';

/** Where scripts/node-tools.sh has installed the packages of test/tools; without it there is nothing to test. */
export const installation = process.env['HASTEN_TOOLS'];

const FILES: Record<string, unknown> = {
  'package.json': { name: 'project', version: '1.2.3', license: 'MIT', scripts: { hello: 'node src/index.js', 'say:one': 'node src/square.js', 'say:two': 'node src/data.js' }, browserslist: ['chrome 60'] },
  'src/index.js': "'use strict';\nconst { square } = require('./square');\nconst data = require('./data');\nconsole.log(square(3), data.name);\nmodule.exports = { square, data };\n",
  'src/square.js': "/**\n * The square of a number.\n * @param {number} n - any number\n * @returns {number} its square\n */\nexports.square = function square(n) {\n  return n * n;\n};\n",
  'src/data.js': "module.exports = require('./data.json');\n",
  'src/data.json': { name: 'data', list: [1, 2, 3], deep: { er: true } },
  'src/module.mjs': "import { twice } from './other.mjs';\nexport const four = twice(2);\nconsole.log(four);\n",
  'src/other.mjs': 'export const twice = (n) => 2 * n;\nexport const unused = () => 1;\n',
  'src/modern.js': 'class A { #x = 1; get x() { return this.#x ?? 2; } static { A.y = 1n; } }\nexport const f = async ({ a, ...b }) => [new A().x, ...(a?.b ?? []), b];\n',
  'src/shapes.ts': "export interface Shape { readonly area: number }\nexport enum Kind { Round, Square }\nexport class Circle implements Shape {\n  constructor(private readonly r: number, readonly kind = Kind.Round) {}\n  get area(): number { return Math.round(this.r * this.r * 3); }\n}\nconsole.log(new Circle(2).area, Kind[0]);\n",
  'src/broken.ts': "const n: number = 'text';\nexport default n;\n",
  'src/untidy.js': "var a = {b:1,\n c : [1,2 ,3]}\nif (a.b == 1) { debugger }\nfunction unused ( x ) {return undefined_thing}\n",
  'src/cubes.coffee': 'cubes = (n * n * n for n in [1..5])\nconsole.log cubes...\n',
  'src/style.css': '.a { color: #ff0000; user-select: none }\n.a, .b { margin: 0px 0px }\n',
  'src/style.less': '@c: red; .a { .b { color: darken(@c, 10%) } }\n',
  'src/style.scss': '@use "sass:math"; $w: 10px; .a { &:hover { width: math.div($w, 3) } }\n',
  'src/style.styl': 'w = 10px\n.a\n  width w * 2\n',
  'src/page.html': '<!DOCTYPE html>\n<html><head><title>t</title></head><body><!-- c --><p class="a">one<p>two<img src="x"></body></html>\n',
  'src/picture.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><g><path d="M 0 0 L 10 10"/></g></svg>\n',
  'src/text.md': '# Title\n\nSome *text*, a [link](https://example.org).\n\n* one\n* two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n',
  'src/tree.json': { type: 'Program', body: [{ type: 'ExpressionStatement', expression: { type: 'Literal', value: 'use strict' } }] },
  'src/data.yaml': 'a: [1, 2]\nb: {c: d}\n',
  'src/schema.json': { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
  'src/view.json': { title: 'T', items: [{ n: 1 }, { n: 2 }] },
  'src/view.mustache': '{{title}}: {{#items}}<{{n}}>{{/items}}\n',
  'src/view.njk': '{{ title }}: {% for i in items %}<{{ i.n }}>{% endfor %}\n',
  'src/view.hbs': '{{title}}: {{#each items}}<{{n}}>{{/each}}\n',
  'src/view.ejs': '<%= title %>: <% items.forEach((i) => { %><<%= i.n %>><% }) %>\n',
  'gulpfile.js': "const { src, dest } = require('gulp');\nexports.default = () => src('src/*.js').pipe(dest('out'));\n",
  'Gruntfile.js': "module.exports = (grunt) => { grunt.registerTask('default', () => grunt.file.write('out/grunt.txt', grunt.template.today('yyyy').length + '')); };\n",
  'Jakefile.js': "desc('says');\ntask('default', ['first'], () => console.log('default'));\ntask('first', () => console.log('first'));\n",
  'eslint.config.js': "module.exports = [{ files: ['**/*.js'], languageOptions: { sourceType: 'commonjs' }, rules: { eqeqeq: 2, 'no-unused-vars': 1, 'no-undef': 2, semi: 2 } }];\n",
  'stylelint.config.js': "module.exports = { extends: 'stylelint-config-standard' };\n",
  'babel.config.json': { presets: ['@babel/preset-env'] },
  'tests/mocha.js': "const assert = require('assert');\nconst { square } = require('../src/square');\ndescribe('square', () => {\n  it('is right', () => assert.equal(square(2), 4));\n  it('is wrong', () => assert.equal(square(2), 5));\n  it('waits', (done) => setTimeout(done, 5));\n});\n",
  'tests/sinon.js': "const assert = require('assert');\nconst sinon = require('sinon');\ndescribe('a fake clock', () => {\n  let clock;\n  beforeEach(() => { clock = sinon.useFakeTimers(); });\n  afterEach(() => clock.restore());\n  for (let n = 0; n < 20; n++) it('stands ' + n, () => { const f = sinon.spy(); setTimeout(f, 3_600_000); clock.tick(3_599_999); assert(!f.called); clock.tick(1); assert(f.calledOnce); assert.equal(Date.now(), 3_600_000); });\n});\n",
  'tests/square.jest.js': "const { square } = require('../src/square');\njest.mock('../src/data', () => ({ name: 'mocked' }));\ntest('square', () => { expect(square(2)).toBe(4); });\ntest('mock', () => { expect(require('../src/index').data.name).toBe('mocked'); });\ntest('fake time', () => { jest.useFakeTimers(); const f = jest.fn(); setTimeout(f, 1e6); jest.advanceTimersByTime(1e6); expect(f).toHaveBeenCalledTimes(1); });\n",
  'tests/ava.mjs': "import test from 'ava';\nimport { createRequire } from 'node:module';\nconst { square } = createRequire(import.meta.url)('../src/square.js');\ntest('square', (t) => t.is(square(2), 4));\ntest('data', (t) => t.deepEqual({ a: 1 }, { a: 1 }));\n",
  'tests/tap.js': "const t = require('tap');\nconst { square } = require('../src/square');\nt.test('square', (t) => { t.equal(square(2), 4); t.end(); });\n",
  'tests/tape.js': "const test = require('tape');\nconst { square } = require('../src/square');\ntest('square', (t) => { t.plan(2); t.equal(square(2), 4); t.equal(square(2), 5); });\n",
  'tests/spec.js': "const { square } = require('../src/square');\ndescribe('square', () => { it('is right', () => { expect(square(2)).toBe(4); }); });\n",
  'tests/qunit.js': "const { square } = require('../src/square');\nQUnit.module('square', () => { QUnit.test('right', (assert) => assert.equal(square(2), 4)); });\n",
  'tests/uvu.js': "const { test } = require('uvu');\nconst assert = require('uvu/assert');\nconst { square } = require('../src/square');\ntest('square', () => assert.is(square(2), 4));\ntest.run();\n",
  'tests/square.vitest.test.mjs': "import { expect, test, vi } from 'vitest';\nimport { four } from '../src/module.mjs';\ntest('four', () => { vi.useFakeTimers(); expect(four).toBe(4); vi.useRealTimers(); });\n",
  'tests/own.js': "const test = require('node:test');\nconst assert = require('assert');\nconst { square } = require('../src/square');\ntest('square', () => assert.equal(square(2), 4));\n",
  'features/square.feature': 'Feature: squares\n  Scenario: two\n    Given the number 2\n    Then its square is 4\n',
  'features/steps.js': "const assert = require('assert');\nconst { Given, Then } = require('@cucumber/cucumber');\nconst { square } = require('../src/square');\nGiven('the number {int}', function (n) { this.n = n; });\nThen('its square is {int}', function (n) { assert.equal(square(this.n), n); });\n",
};

/** The project with the installed packages, each linked; what a tool stores in node_modules stays in the project. */
export function project(t: Owner, folder: string): App {
  const app = App.create(t, FILES);
  const { dependencies } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) {
    fs.mkdirSync(path.dirname(app.path(`node_modules/${name}`)), { recursive: true });
    fs.symlinkSync(path.join(folder, 'node_modules', name), app.path(`node_modules/${name}`));
  }
  for (const name of OWN) fs.mkdirSync(app.path(name));
  return app;
}

/** A program's home and temporary folder: file names there may differ each time. */
export const OWN = ['home', 'tmp'] as const;
