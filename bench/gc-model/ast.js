// A compiler's front end: source text is tokenised and parsed into trees; the trees of the last modules stay alive while
// later ones are parsed, symbols of all of them for ever.
'use strict';

const MODULES = Number(process.argv[2] || 2000);
const ALIVE = 24;

function source(seed) {
  const lines = [];
  for (let i = 0; i < 120; i++) {
    const a = (seed * 7 + i * 13) % 97;
    lines.push(`let v${i} = (a${a} + ${i * 3}) * f${a % 9}(b${i % 5}, ${a} - c${seed % 13}) / (d${a % 3} + 1);`);
  }
  return lines.join('\n');
}

function tokens(text) {
  const list = [];
  const pattern = /\s+|([A-Za-z_]\w*)|(\d+)|([-+*/=(),;])/g;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    if (match[1] || match[2] || match[3]) {
      list.push({ kind: match[1] ? 'name' : match[2] ? 'number' : 'sign', text: match[0], at: match.index });
    }
  }
  return list;
}

class Parser {
  constructor(list) { this.list = list; this.at = 0; }
  peek() { return this.at < this.list.length ? this.list[this.at].text : ''; }
  take() { return this.list[this.at++]; }
  program() {
    const body = [];
    while (this.at < this.list.length) {
      this.take();
      const name = this.take();
      this.take();
      const value = this.sum();
      this.take();
      body.push({ type: 'Declaration', name: name.text, value, range: { from: name.at, to: this.at } });
    }
    return { type: 'Program', body };
  }
  sum() {
    let left = this.product();
    while (this.peek() === '+' || this.peek() === '-') {
      left = { type: 'Binary', sign: this.take().text, left, right: this.product(), range: { from: left.range.from, to: this.at } };
    }
    return left;
  }
  product() {
    let left = this.atom();
    while (this.peek() === '*' || this.peek() === '/') {
      left = { type: 'Binary', sign: this.take().text, left, right: this.atom(), range: { from: left.range.from, to: this.at } };
    }
    return left;
  }
  atom() {
    const token = this.take();
    const range = { from: token.at, to: token.at + token.text.length };
    if (token.kind === 'number') return { type: 'Number', value: Number(token.text), range };
    if (token.text === '(') {
      const inner = this.sum();
      this.take();
      return inner;
    }
    if (this.peek() !== '(') return { type: 'Name', name: token.text, range };
    this.take();
    const values = [];
    while (this.peek() !== ')') {
      values.push(this.sum());
      if (this.peek() === ',') this.take();
    }
    this.take();
    return { type: 'Call', name: token.text, values, range };
  }
}

function fold(node) {
  switch (node.type) {
    case 'Program': return { ...node, body: node.body.map(fold) };
    case 'Declaration': return { ...node, value: fold(node.value) };
    case 'Binary': return { ...node, left: fold(node.left), right: fold(node.right) };
    case 'Call': return { ...node, values: node.values.map(fold) };
    default: return { ...node };
  }
}

function print(node) {
  switch (node.type) {
    case 'Program': return node.body.map(print).join('\n');
    case 'Declaration': return `let ${node.name} = ${print(node.value)};`;
    case 'Binary': return `(${print(node.left)} ${node.sign} ${print(node.right)})`;
    case 'Call': return `${node.name}(${node.values.map(print).join(', ')})`;
    case 'Number': return String(node.value);
    default: return node.name;
  }
}

const alive = new Array(ALIVE).fill(null);
const symbols = new Map();
let characters = 0;
for (let module = 0; module < MODULES; module++) {
  const tree = fold(new Parser(tokens(source(module))).program());
  alive[module % ALIVE] = tree;
  symbols.set(module, tree.body.map((declaration) => ({ module, name: declaration.name, at: declaration.range.from })));
  characters += print(alive[(module + 1) % ALIVE] || tree).length;
}
console.log(`ast ${symbols.size} ${characters}`);
