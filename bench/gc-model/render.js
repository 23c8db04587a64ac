// Pages rendered from a tree of components, as a server does it for a browser: nearly everything dies with its page, sessions live
// for a few thousand pages, and each answer is kept until the client that reads it has taken it. The model was finished before this
// program was written: nothing in it was chosen by what happens here.
'use strict';

const PAGES = Number(process.argv[2] || 6000);
const SESSIONS = 600;
const READING = 40;

let state = 12345;
function random(below) {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return (state >>> 8) % below;
}

function element(name, properties, ...children) {
  return { name, properties: { ...properties }, children: children.flat() };
}

function row(item, session) {
  return element('tr', { class: item % 2 ? 'odd' : 'even', id: `row-${item}` },
    element('td', {}, `Item ${item}`),
    element('td', { style: { color: 'black', width: `${random(100)}px` } }, String(item * session.factor)),
    element('td', {}, element('a', { href: `/items/${item}?from=${session.id}` }, 'more')));
}

function page(session) {
  const first = random(1000);
  const items = Array.from({ length: 60 }, (_, at) => first + at);
  return element('html', { lang: 'en' },
    element('head', {}, element('title', {}, `Hello, ${session.name}`)),
    element('body', {}, element('nav', {}, session.history.slice(-8).map((entry) => element('span', {}, entry.path))),
      element('table', {}, items.map((item) => row(item, session)))));
}

function escape(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

function write(node, out) {
  if (typeof node === 'string') return out.push(escape(node));
  out.push(`<${node.name}`);
  for (const [key, value] of Object.entries(node.properties)) {
    const text = typeof value === 'object' ? Object.entries(value).map(([name, one]) => `${name}:${one}`).join(';') : value;
    out.push(` ${key}="${escape(text)}"`);
  }
  out.push('>');
  for (const child of node.children) write(child, out);
  out.push(`</${node.name}>`);
}

function session(id) {
  return { id, name: `user <${id}>`, factor: 1 + (id % 7), history: [], preferences: new Map([['theme', `t${id % 3}`], ['size', id % 20]]) };
}

const sessions = Array.from({ length: SESSIONS }, (_, id) => session(id));
const reading = new Array(READING).fill(null);
let bytes = 0;
let next = SESSIONS;
for (let number = 0; number < PAGES; number++) {
  const at = random(SESSIONS);
  // A session in ten begins anew.
  if (random(10) === 0) sessions[at] = session(next++);
  const one = sessions[at];
  const out = [];
  write(page(one), out);
  const body = Buffer.from(out.join(''));
  one.history.push({ path: `/page/${number}`, bytes: body.length, at: number, query: { page: String(number), of: one.name } });
  if (one.history.length > 50) one.history.shift();
  bytes += body.length;
  reading[random(READING)] = { body, session: one, parts: out };
}
console.log(`render ${next} ${bytes}`);
