// The text of a file, and the text that V8 compiles for it.

import { Flag } from './format';
import { callsImport } from './scan';

const HEAD = '(function (exports, require, module, __filename, __dirname) {';
export const TAIL = '\n})';
// After the head the file begins on a line of its own, or on that of the head. Lines and columns are those of the file either way, once V8 knows how far
// they are off, but for two: V8 does not count that in for the place of an `eval`, and an error that nobody catches is shown with its whole line.
const OWN_LINE = '\n';
const SAME_LINE = ' ';

const BEGIN = HEAD.length + 1;
const WRAPPER_LENGTH = BEGIN + TAIL.length;

/** The text that is compiled for a file: a function of what Node gives to modules. */
export function wrapped(content: string): string {
  return headFor(content) + scriptOf(content) + TAIL;
}

/** What is between. */
export function bodyOf(text: string): string {
  return text.slice(BEGIN, -TAIL.length);
}

/** What is in front of this content, of which the beginning is enough. */
export function headFor(content: string): string {
  return HEAD + (isQuiet(content) ? SAME_LINE : OWN_LINE);
}

/** How far the lines, and the columns of the first one, of a compiled text are off. */
export function offsetOf(text: string): { lineOffset: number; columnOffset: number } {
  return text.charAt(HEAD.length) === SAME_LINE ? { lineOffset: 0, columnOffset: -BEGIN } : { lineOffset: -1, columnOffset: 0 };
}

/** What is to be known of a script to serve it. */
export function flagsOf(content: string): number {
  return (mayImport(content) ? Flag.Import : 0) | (!isQuiet(content) && EVALUATOR.test(content) ? Flag.Odd : 0);
}

/** Whether nothing can be thrown from the first line, of which the beginning of a text is enough. */
export function isQuiet(content: string): boolean {
  return QUIET_LINE.test(content);
}

// A first line that nothing can be thrown from: nothing, a comment, or a directive.
const QUIET_LINE = /^\uFEFF?[ \t]*(?:#!.*|\/\/.*|\/\*(?:(?!\*\/).)*(?:\*\/[ \t]*)?|(["'])use strict\1;?[ \t]*)?(?=[\n\r\u2028\u2029]|$)/;

/** Whether a text is what is compiled for this content. */
export function wraps(text: string, content: string): boolean {
  return text.length === content.length + WRAPPER_LENGTH && bodyOf(text) === scriptOf(content);
}

/** The text of a JSON file as it is parsed. */
export function jsonOf(content: string): string {
  return content.charCodeAt(0) === BYTE_ORDER_MARK ? content.slice(1) : content;
}

const BYTE_ORDER_MARK = 0xfeff;

// The line with the interpreter is valid only at the very beginning of a script. As a comment it is as long.
function scriptOf(content: string): string {
  return content.startsWith('#!') ? `//${content.slice(2)}` : content;
}

/** Whether a text has a call of `import()`, or can make one from a string. */
function mayImport(content: string): boolean {
  return EVALUATION.test(content) || (KEEPS_LOADER ? seemsToImport(content) : callsImport(content));
}

// Before 12.4, V8 forgets who may import for a script that comes from its bytecode: then nothing may be overlooked. From then on, all that is at stake is
// a warning, and a guess will do.
const KEEPS_LOADER = parseInt(process.versions.node, 10) >= 22;

function seemsToImport(content: string): boolean {
  for (const { index } of content.matchAll(IMPORT)) {
    const line = content.slice(content.lastIndexOf('\n', index) + 1, index);
    if (!COMMENT.test(line)) return true;
  }
  return false;
}

const IMPORT = /\bimport\s*[(/.]/g;
// The types in comments are the most frequent: ` * @param {import('./x').X} x`. Nothing before it may have ended the comment or be in a template.
const COMMENT = /^\s*(?:\*(?!\/)|\/\*|\/\/)(?![^]*(?:\*\/|\$\{|[\r\u2028\u2029]))/;
// All but the usual way to the global object.
const EVALUATION =
  /\beval\s*\(|[,(]\s*eval\b|\b(?:Async|Generator|AsyncGenerator)?Function\s*\((?!\s*(["'`])return this;?\1\s*\))|\)\s*\.constructor\b(?!\s*(?:\.|[!=]=))/;
// By whatever name it is called then.
const EVALUATOR = new RegExp(`${EVALUATION.source}|\\beval\\b|[=(,:?]\\s*Function\\b(?!\\s*[.(])`);
