// The text of a file, and the text that V8 compiles for it.

// On lines of their own, so that lines and columns are those of the file.
const HEAD = '(function (exports, require, module, __filename, __dirname) {\n';
const TAIL = '\n})';

const WRAPPER_LENGTH = HEAD.length + TAIL.length;

/** The text that is compiled for a file: a function of what Node gives to modules. */
export function wrapped(content: string): string {
  return HEAD + scriptOf(content) + TAIL;
}

/** Whether a text is what is compiled for this content. */
export function wraps(text: string, content: string): boolean {
  return text.length === content.length + WRAPPER_LENGTH && text.slice(HEAD.length, -TAIL.length) === scriptOf(content);
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

/** Whether a text has an `import(`, or can make one from a string. */
export function mayImport(content: string): boolean {
  if (EVALUATION.test(content)) return true;
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
const EVALUATION = /\beval\s*\(|[,(]\s*eval\b|\bFunction\s*\((?!\s*(["'`])return this;?\1\s*\))/;
