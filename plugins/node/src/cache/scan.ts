// Whether a script calls import(), as distinguished from strings, comments, regular expressions and templates without a
// parser. A slash may divide or begin a regular expression, and the text before it does not always decide: then both
// readings are followed until they meet again, or one of them turns out not to be a script. The true one is always
// among them, so what none of them calls is not called. In doubt the answer is yes.

/** Looks like a call, unless its context says otherwise. */
const CALL = /(?<![\w$])import\s*[(/.<-]/g;

const MOST_UNITS = 16 * 1024 * 1024;
const MOST_READINGS = 16;

/** What precedes a slash, ignoring blanks. */
const enum Before {
  /** A regular expression must follow. */
  Operator,
  /** The slash divides. */
  Value,
  Unknown,
}

/** The code in a `${…}`: its open braces, and the code that contains its template. */
interface Substitution {
  readonly braces: number;
  readonly below: Substitution | null;
}

/** One way to read the text: there is code at this position. */
interface Reading {
  at: number;
  before: Before;
  inside: Substitution | null;
}

/** Whether a script may call import(); anything may be said about a text that is not a script. */
export function callsImport(script: string): boolean {
  const calls = Array.from(script.matchAll(CALL), ({ index }) => index);
  if (calls.length === 0) return false;
  return script.length > MOST_UNITS || script.startsWith('\uFEFF#!') || new Scan(script, calls).finds();
}

class Scan {
  // By position, the first one last.
  private readonly readings: Reading[] = [];
  private forks: number;

  constructor(
    private readonly script: string,
    private readonly calls: readonly number[],
  ) {
    this.forks = 1000 + script.length / 100;
  }

  finds(): boolean {
    const { calls, readings } = this;
    let next = 0;
    this.add({ at: this.script.startsWith('#!') ? this.lineEnd(0) : 0, before: Before.Operator, inside: null });
    for (let reading = readings.pop(); reading && readings.length < MOST_READINGS && this.forks > 0; reading = readings.pop()) {
      while (calls[next]! < reading.at) next++;
      // The other readings are further ahead.
      if (next === calls.length) return false;
      const token = this.token(reading);
      if (calls[next]! < token) return true;
      if (this.step(reading, token)) this.add(reading);
    }
    return true;
  }

  // Two readings at the same position, with the same nesting of templates, are one.
  private add(reading: Reading): void {
    const { readings } = this;
    let place = readings.length;
    while (place > 0 && readings[place - 1]!.at < reading.at) place--;
    for (let i = place - 1; i >= 0 && readings[i]!.at === reading.at; i--) {
      const other = readings[i]!;
      if (!isSame(reading.inside, other.inside)) continue;
      if (other.before !== reading.before) other.before = Before.Unknown;
      return;
    }
    readings.splice(place, 0, reading);
  }

  private fork({ inside }: Reading, at: number, before: Before): void {
    this.forks--;
    this.add({ at, before, inside });
  }

  /** Where the next thing begins that is not plain code. */
  private token({ at, inside }: Reading): number {
    const pattern = inside ? INSIDE : OUTSIDE;
    pattern.lastIndex = at;
    if (!pattern.test(this.script)) return this.script.length;
    const end = pattern.lastIndex;
    const last = this.script.charCodeAt(end - 1);
    return last === Char.Minus ? end - '<!--'.length : last === Char.Greater ? end - '-->'.length : end - 1;
  }

  /** Continues after what begins here; false if this is not a script. */
  private step(reading: Reading, token: number): boolean {
    const { script } = this;
    switch (script.charCodeAt(token)) {
      case Char.Quote:
        return this.goOn(reading, this.stringEnd(token + 1, SINGLE), Before.Value);
      case Char.DoubleQuote:
        return this.goOn(reading, this.stringEnd(token + 1, DOUBLE), Before.Value);
      case Char.Backtick:
        return this.template(reading, token + 1);
      case Char.Slash:
        return this.slash(reading, token);
      case Char.Open:
        reading.inside = { braces: reading.inside!.braces + 1, below: reading.inside!.below };
        return this.goOn(reading, token + 1, Before.Operator);
      case Char.Close:
        return this.close(reading, token + 1);
      case Char.Backslash:
        // In a name.
        return script[token + 1] === 'u' && this.goOn(reading, token + 1, Before.Unknown);
      case Char.Less:
        return this.goOn(reading, this.lineEnd(token), Before.Unknown);
      case Char.Minus:
        // A comment at the beginning of a line, two operators elsewhere.
        this.fork(reading, token + '-->'.length, Before.Operator);
        return this.goOn(reading, this.lineEnd(token), Before.Unknown);
      default:
        // The end.
        return this.goOn(reading, script.length + 1, Before.Unknown);
    }
  }

  private goOn(reading: Reading, at: number, before: Before): boolean {
    reading.at = at;
    reading.before = before;
    return at >= 0;
  }

  private slash(reading: Reading, token: number): boolean {
    const next = this.script.charCodeAt(token + 1);
    if (next === Char.Slash) return this.goOn(reading, this.lineEnd(token), Before.Unknown);
    if (next === Char.Star) {
      const end = this.script.indexOf('*/', token + 2);
      return this.goOn(reading, end < 0 ? -1 : end + 2, Before.Unknown);
    }
    const before = this.before(reading, token);
    if (before === Before.Value) return this.goOn(reading, token + 1, Before.Operator);
    if (before === Before.Unknown) this.fork(reading, token + 1, Before.Operator);
    return this.goOn(reading, this.expressionEnd(token + 1), Before.Value);
  }

  private close(reading: Reading, at: number): boolean {
    const { braces, below } = reading.inside!;
    if (braces === 0) {
      reading.inside = below;
      return this.template(reading, at);
    }
    reading.inside = { braces: braces - 1, below };
    return this.goOn(reading, at, Before.Unknown);
  }

  // The text of a template, up to its end or to code in it.
  private template(reading: Reading, from: number): boolean {
    for (let at = from; ; at++) {
      TEMPLATE.lastIndex = at;
      if (!TEMPLATE.test(this.script)) return false;
      at = TEMPLATE.lastIndex;
      const last = this.script.charCodeAt(at - 1);
      if (last === Char.Backtick) return this.goOn(reading, at, Before.Value);
      if (last === Char.Backslash) continue;
      reading.inside = { braces: 0, below: reading.inside };
      return this.goOn(reading, at, Before.Operator);
    }
  }

  private stringEnd(from: number, pattern: RegExp): number {
    const { script } = this;
    for (let at = from; ; at++) {
      pattern.lastIndex = at;
      if (!pattern.test(script)) return -1;
      at = pattern.lastIndex;
      const last = script.charCodeAt(at - 1);
      if (last === Char.LineFeed || last === Char.Return) return -1;
      if (last !== Char.Backslash) return at;
      // Two characters continue the line.
      if (script.charCodeAt(at) === Char.Return && script.charCodeAt(at + 1) === Char.LineFeed) at++;
    }
  }

  private expressionEnd(from: number): number {
    let isClass = false;
    for (let at = from; ; ) {
      EXPRESSION.lastIndex = at;
      if (!EXPRESSION.test(this.script)) return -1;
      at = EXPRESSION.lastIndex;
      const last = this.script[at - 1];
      if (last === '[') isClass = true;
      else if (last === ']') isClass = false;
      else if (last === '\\') at += LINE_ENDS.includes(this.script[at]!) ? 0 : 1;
      else if (last !== '/') return -1;
      else if (!isClass) return at;
    }
  }

  private lineEnd(from: number): number {
    LINE_END.lastIndex = from;
    return LINE_END.test(this.script) ? LINE_END.lastIndex : this.script.length + 1;
  }

  /** What precedes this slash. */
  private before(reading: Reading, slash: number): Before {
    const { script } = this;
    let at = slash - 1;
    let isSameLine = true;
    for (; at >= reading.at && isBlank(script.charCodeAt(at)); at--) isSameLine &&= !isLineEnd(script.charCodeAt(at));
    if (at < reading.at) return reading.before;
    const last = script[at]!;
    if (last === ']') return Before.Value;
    if (last === '+' || last === '-') return at > reading.at && script[at - 1] === last ? Before.Unknown : Before.Operator;
    if (OPERATORS.includes(last)) return Before.Operator;
    // A statement may end with its line rather than a semicolon: `var name`, `break label`.
    return isSameLine && this.isName(at, reading.at) ? Before.Value : Before.Unknown;
  }

  /** Whether a name (other than a keyword) or a number ends here; it begins no earlier than `from`. */
  private isName(last: number, from: number): boolean {
    const { script } = this;
    let begin = last + 1;
    while (begin > from && isWord(script.charCodeAt(begin - 1))) begin--;
    return begin <= last && !KEYWORDS.has(script.slice(begin, last + 1));
  }
}

function isSame(one: Substitution | null, other: Substitution | null): boolean {
  if (one === other) return true;
  return one !== null && other !== null && one.braces === other.braces && isSame(one.below, other.below);
}

const enum Char {
  LineFeed = 0x0a,
  Return = 0x0d,
  DoubleQuote = 0x22,
  Quote = 0x27,
  Star = 0x2a,
  Minus = 0x2d,
  Slash = 0x2f,
  Less = 0x3c,
  Greater = 0x3e,
  Backslash = 0x5c,
  Backtick = 0x60,
  Open = 0x7b,
  Close = 0x7d,
}

const OUTSIDE = /["'`/\\]|<!--|-->/g;
const INSIDE = /["'`/\\{}]|<!--|-->/g;
const SINGLE = /['\\\n\r]/g;
const DOUBLE = /["\\\n\r]/g;
const TEMPLATE = /[`\\]|\$\{/g;
const EXPRESSION = /[[\]/\\\n\r\u2028\u2029]/g;
const LINE_END = /[\n\r\u2028\u2029]/g;
const LINE_ENDS = '\n\r\u2028\u2029';

/** Characters after which an expression or a statement must begin. */
const OPERATORS = '(,=:[!&|?{;*%<>~^';

// Names that may precede a regular expression: elsewhere, some of them are ordinary names.
const KEYWORDS: ReadonlySet<string> = new Set(
  'await break case continue debugger default delete do else extends finally in instanceof new of return throw try typeof void yield'.split(' '),
);

function isBlank(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d);
}

function isLineEnd(code: number): boolean {
  return code === Char.LineFeed || code === Char.Return;
}

function isWord(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39) || code === 0x5f || code === 0x24;
}
