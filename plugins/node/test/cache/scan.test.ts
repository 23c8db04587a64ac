// Calls of import() are never overlooked, whatever surrounds them. V8 is the judge: text that is not a call can be made
// unreadable, and the script still compiles.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import vm from 'node:vm';
import { callsImport } from '../../src/cache/scan';
import { flagsOf } from '../../src/cache/text';
import { packages } from '../support/places';

function compiles(script: string): boolean {
  try {
    new vm.Script(`(function () {\n${script.startsWith('#!') ? `//${script.slice(2)}` : script}\n})`);
    return true;
  } catch {
    return false;
  }
}

/** Whether none of a text's apparent calls is one: there is a letter where JavaScript has none. */
function isFree(script: string): boolean {
  return compiles(script.replace(/(?<![\w$])import(?=\s*[(/.<-])/g, '\u2603\u2603\u2603\u2603\u2603\u2603'));
}

const CALL = 'import("x")';

/** Scripts that call, though not obviously. */
const CALLS = [
  CALL,
  'import\n\t ("x")',
  'import/**/("x")',
  'import//\n("x")',
  'import<!--\n("x")',
  'import\n--> a comment\n("x")',
  'import\u2028(\u2029"x")',
  'import\u00a0\ufeff("x")',
  'async () => (await import("x")).default',
  `let a = 1, g = 1; a++ / ${CALL} / g`,
  `let a = 1, g = 1; a / ${CALL} / g`,
  `let a = 1, g = 1; (a) / ${CALL} / g`,
  `let a = [1], g = 1; a[0] / ${CALL} / g`,
  `let a = { return: 1 }, g = 1; a.return / ${CALL} / g`,
  `let g = 1; ({} / ${CALL} / g)`,
  `let g = 1; 1 / ${CALL} / g`,
  `let g = 1; "s" / ${CALL} / g`,
  `let g = 1; \`t\` / ${CALL} / g`,
  `let g = 1; /r/g / ${CALL} / g`,
  `let yield_ = 1, g = 1; yield_ / ${CALL} / g`,
  `let g = 1; function f() {} / ${CALL} /; ${CALL}`,
  `let a = 1\na++\n/'/.test(${CALL}) + "'"`,
  `let a = 1, b = 2\na = b /* ' */ / ${CALL}`,
  `if (1) /'/.test("'"), ${CALL}`,
  `var a\n/'/.test(${CALL}), "'"`,
  `a: for (;;) { break a\n/'/.test(${CALL}), "'" }`,
  `debugger\n/'/.test(${CALL}), "'"`,
  `{}/'/.test(${CALL}), "'"`,
  `do ; while (0) /'/.test(${CALL}), "'"`,
  `function* f() { yield /'/.test(${CALL}), "'" }`,
  `for (const a of /'/[Symbol.split](${CALL}), "'") ;`,
  `/[/']/.test(${CALL}), "'"`,
  `/[[/]'/.test(${CALL}), "'"`,
  `/\\/'/.test(${CALL}), "'"`,
  `"\\\n" + ${CALL} + "\\\r\n"`,
  `"'" + ${CALL} + "'"`,
  `"\u2028'" + ${CALL} + "'"`,
  `'\\'' + ${CALL} + ''`,
  `// '\n${CALL} // '`,
  `// '\u2028${CALL} // '`,
  `// '\r${CALL} // '`,
  `/* ' */${CALL}/* ' */`,
  `/* ' **/${CALL}`,
  `<!-- '\n${CALL}`,
  `--> '\n${CALL}`,
  `/*\n*/ --> '\n${CALL}`,
  `let a = 1\nwhile (a --> 0) ${CALL}`,
  `let a = 1\nwhile (a\n--> '\n) ${CALL}`,
  `let a = "'"; while (a.length<!--'\n) ${CALL}`,
  `#!/bin/it's\n${CALL}`,
  `#!/bin/it's \\\n${CALL} //'`,
  `\ufeff#!/bin/it's \\\n${CALL} //'`,
  `\`\${${CALL}}\``,
  `\`'\${\`\${${CALL}}'\`}'\``,
  `\`\${{ a: { b: ${CALL} } }}\``,
  `\`\${function () { return "}" + \`}\` + /}/.source; ${CALL} }}\``,
  `\`\\\`\${${CALL}}\``,
  `\`$\${${CALL}}\``,
  `\`$\` + ${CALL} + \`$\``,
  `\`\\\${\` + ${CALL} + "}"`,
  `\`{\` + ${CALL} + \`}\``,
  `let \\u0061 = ${CALL}`,
  `let \\u{61} = 1, g = 1; \\u{61} / ${CALL} / g`,
  `let é = 1, g = 1; é / ${CALL} / g`,
  `let a = 1, g = 1; a /**// ${CALL} / g`,
  `class A { static a = ${CALL}; [${CALL}] = 1 }`,
  `let x = a => /'/.test(${CALL}), y = "'"`,
  `(a) /1/ /'/.test(${CALL}), "'"`,
  `if (a) /1/ / ${CALL} / g`,
];

/** And scripts that do not. */
const FREE = [
  '',
  'import_("x"); $import("x"); imports.import_(1)',
  `"${CALL.replaceAll('"', "'")}"`,
  `'${CALL}'`,
  `\`${CALL}\``,
  `\`\${1}${CALL}\``,
  `// ${CALL}`,
  `/* ${CALL} */`,
  `/** @type {${CALL}.X} */`,
  `<!-- ${CALL}`,
  `/${CALL}/g`,
  `let a = /['"]/, b = "${CALL.replaceAll('"', '')}"`,
  `#!${CALL}`,
  `let a = 1, b = (a + 1) / 2, c = '${CALL}', d = a++ / 2`,
  `let a = "\\"${CALL.replaceAll('"', '')}"`,
  `let a = "\\\r\n", b = '${CALL}'`,
];

test('calls that are not seen at first sight', () => {
  for (const script of CALLS) assert.equal(callsImport(script), true, script);
});

test('texts that only look like calls', () => {
  for (const script of FREE) {
    assert.ok(compiles(script), script);
    assert.equal(callsImport(script), false, script);
  }
});

test('what may make a call from a text is taken for one', () => {
  for (const script of ['eval("import(1)")', 'new Function("a")', 'new AsyncFunction(a)', 'const F = (async () => {}).constructor; F(a)']) {
    assert.notEqual(flagsOf(script), 0, script);
  }
  for (const script of ['isFunction(a)', 'a.constructor.name', 'Object.getPrototypeOf(a).constructor === Object']) assert.equal(flagsOf(script), 0, script);
});

test('a text that takes too long is taken for a script that calls', () => {
  assert.equal(callsImport(`${')/'.repeat(1e6)}\n"import("`), true);
  assert.equal(callsImport(`${'(a)/1+\n'.repeat(1e5)}"import("`), true);
  assert.equal(callsImport(`${'"a"+\n'.repeat(1e5)}"import("`), false);
});

// Numbers that are the same in each run.
function* numbers(): Generator<number, never> {
  for (let state = 1; ; ) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
    yield (state ^ (state >>> 13)) >>> 0;
  }
}

const FRAGMENTS = [
  CALL, CALL, 'import(a)', 'a', 'b', '1', '/', '/', '/', '/', '(', ')', '[', ']', '{', '}', '{}', '`', '`', '${', '}', "'", "'", '"', '"', '\\', '//', '/*', '*/', '<!--', '-->', '\n',
  '\n', ' ', ' ', ';', ';', ',', '+', '++', '--', '-', '=', '=>', '!', '?', ':', '.', '*', '<', '>', 'return ', 'typeof ', 'in ', 'of ', 'var a', 'a.in', 'if (a)', 'do ;while(a)',
  'function a() {}', 'a:', 'break a', 'for (;;)', '/r/', '/[/]/g', "/'/", '/`/', '/"/', "'s'", '"s"', '`t`', '`${a}`', '\u2028', '\r', '\r\n', '\\\n', "\\'", '\\u0061', '$', 'yield ', 'class A {',
];

test('no call is overlooked in a hundred thousand random texts', () => {
  const random = numbers();
  let [scripts, free] = [0, 0];
  for (let round = 0; round < 100_000; round++) {
    let script = '';
    for (let length = 3 + (random.next().value % 9); length > 0; length--) script += FRAGMENTS[random.next().value % FRAGMENTS.length];
    if (!/\bimport/.test(script) || !compiles(script)) continue;
    scripts++;
    if (callsImport(script)) continue;
    free++;
    assert.ok(isFree(script), JSON.stringify(script));
  }
  assert.ok(scripts > 1000 && free > 200, `${free} of ${scripts} scripts are free of calls`);
});

/** An expression as a script, and whether it calls. */
function expression(random: Generator<number, never>, depth: number): [text: string, calls: boolean] {
  const pick = random.next().value % (depth > 0 ? 14 : 6);
  const quoted = CALL.replaceAll('"', '');
  if (pick < 6) return ([[CALL, true], [`'${CALL}'`, false], [`"\\"${quoted}\\\n"`, false], [`/[/'"\`]${quoted}/g`, false], [`\`\\\`${CALL}\``, false], ['a', false]] as const)[pick] as [string, boolean];
  const [one, first] = expression(random, depth - 1);
  const [two, second] = expression(random, depth - 1);
  const calls = first || second;
  const texts = [
    `(${one}) / (${two})`, `a++ / ${one} / ${two}`, `\`'\${${one}}"\${{ a: (${two}) }}\``, `[${one}][0] / ${two}`, `{}.a / ${one}, ${two}`.replace('{}', '({})'),
    `${one} // ${CALL}\n, ${two}`, `${one} /* ' ${CALL} */ / ${two}`, `(() => { if (a) /'/.test(${one}); return /"/.test(${two}) })()`,
  ];
  return [texts[pick - 6] ?? one, calls];
}

test('what is in strings, comments, templates and regular expressions is none', () => {
  const random = numbers();
  let overcautious = 0;
  for (let round = 0; round < 5000; round++) {
    const [script, calls] = expression(random, 4);
    assert.ok(compiles(script), script);
    const said = callsImport(script);
    assert.ok(said || !calls, script);
    if (said !== calls) overcautious++;
  }
  assert.ok(overcautious < 500, `${overcautious} of 5000 were taken for calls`);
});

test('in real packages, V8 agrees', () => {
  let free = 0;
  for (const file of fs.readdirSync(packages, { recursive: true, encoding: 'utf8' })) {
    if (!/\.c?js$/.test(file)) continue;
    const full = path.join(packages, file);
    const script = fs.statSync(full).isFile() ? fs.readFileSync(full, 'utf8') : '';
    if (!/\bimport\s*[(/.<-]/.test(script) || !compiles(script) || callsImport(script)) continue;
    free++;
    assert.ok(isFree(script), file);
  }
  assert.ok(free > 20, `${free} files are free of calls`);
  assert.equal(callsImport(fs.readFileSync(path.join(packages, 'typescript/lib/tsc.js'), 'utf8')), false);
});
