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

/** Whether a text has an `import(`, be it in a comment, or can make one from a string. */
export function mayImport(content: string): boolean {
  if (content.includes('eval') || content.includes('Function(')) return true;
  for (let at = content.indexOf('import'); at >= 0; at = content.indexOf('import', at + 6)) {
    const next = content.charCodeAt(at + 6);
    // A parenthesis, a comment, white space, or import.source and its like.
    if (next === 0x28 || next === 0x2f || next === 0x2e || next <= 0x20 || next > 0x7f) return true;
  }
  return false;
}
