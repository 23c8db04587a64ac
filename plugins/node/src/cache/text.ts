// A file's text, and the text that V8 compiles for it.

import { Flag } from './format';
import { callsImport } from './scan';

const HEAD = '(function (exports, require, module, __filename, __dirname) {';
export const TAIL = '\n})';
// After the head the file begins on a new line, or on the head's line. Either way lines and columns are those of the
// file once V8 knows their offset, with two exceptions: V8 ignores it for the position of an `eval`, and an uncaught
// error is shown with its whole line.
const OWN_LINE = '\n';
const SAME_LINE = ' ';

const BEGIN = HEAD.length + 1;
const WRAPPER_LENGTH = BEGIN + TAIL.length;

/** The text compiled for a file: a function of what Node gives to modules. */
export function wrapped(content: string): string {
  return headFor(content) + scriptOf(content) + TAIL;
}

/** The file's part of it. */
export function bodyOf(text: string): string {
  return text.slice(BEGIN, -TAIL.length);
}

/** The head for this content, of which the beginning suffices. */
export function headFor(content: string): string {
  return HEAD + (isQuiet(content) ? SAME_LINE : OWN_LINE);
}

/** The offset of a compiled text's lines, and of its first line's columns. */
export function offsetOf(text: string): { lineOffset: number; columnOffset: number } {
  return text.charAt(HEAD.length) === SAME_LINE ? { lineOffset: 0, columnOffset: -BEGIN } : { lineOffset: -1, columnOffset: 0 };
}

/** What must be known about a script to serve it. */
export function flagsOf(content: string): number {
  return (mayImport(content) ? Flag.Import : 0) | (!isQuiet(content) && EVALUATOR.test(content) ? Flag.Odd : 0);
}

/** Whether the first line cannot throw; the beginning of a text suffices. */
export function isQuiet(content: string): boolean {
  return QUIET_LINE.test(content);
}

// A first line that cannot throw: an empty one, a comment, or a directive.
const QUIET_LINE = /^\uFEFF?[ \t]*(?:#!.*|\/\/.*|\/\*(?:(?!\*\/).)*(?:\*\/[ \t]*)?|(["'])use strict\1;?[ \t]*)?(?=[\n\r\u2028\u2029]|$)/;

/** Whether a text is the one compiled for this content. */
export function wraps(text: string, content: string): boolean {
  return text.length === content.length + WRAPPER_LENGTH && bodyOf(text) === scriptOf(content);
}

/** The text of a JSON file in the form that is parsed. */
export function jsonOf(content: string): string {
  return content.charCodeAt(0) === BYTE_ORDER_MARK ? content.slice(1) : content;
}

const BYTE_ORDER_MARK = 0xfeff;

// The interpreter line is valid only at the very beginning of a script. As a comment it has the same length.
function scriptOf(content: string): string {
  return content.startsWith('#!') ? `//${content.slice(2)}` : content;
}

/** Whether a text calls `import()`, or can create a call from a string. */
function mayImport(content: string): boolean {
  return EVALUATION.test(content) || (KEEPS_LOADER ? seemsToImport(content) : callsImport(content));
}

// Before 12.4, V8 forgets who may import for a script from bytecode: then nothing may be overlooked. From then on, only
// a warning is at stake, and a guess will do.
const KEEPS_LOADER = parseInt(process.versions.node, 10) >= 22;

function seemsToImport(content: string): boolean {
  for (const { index } of content.matchAll(IMPORT)) {
    const line = content.slice(content.lastIndexOf('\n', index) + 1, index);
    if (!COMMENT.test(line)) return true;
  }
  return false;
}

const IMPORT = /\bimport\s*[(/.]/g;
// Types in comments are the most frequent case: ` * @param {import('./x').X} x`. The text before it must not have ended
// the comment or be in a template.
const COMMENT = /^\s*(?:\*(?!\/)|\/\*|\/\/)(?![^]*(?:\*\/|\$\{|[\r\u2028\u2029]))/;
// Ways to the evaluator, except for the usual way to the global object.
const EVALUATION =
  /\beval\s*\(|[,(]\s*eval\b|\b(?:Async|Generator|AsyncGenerator)?Function\s*\((?!\s*(["'`])return this;?\1\s*\))|\)\s*\.constructor\b(?!\s*(?:\.|[!=]=))/;
// Under whatever name it is then called.
const EVALUATOR = new RegExp(`${EVALUATION.source}|\\beval\\b|[=(,:?]\\s*Function\\b(?!\\s*[.(])`);
