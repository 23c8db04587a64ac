// Server-side rendering with React: a shop's list of 100 products, as HTML, for every request.
//
// `app.js FILE` listens on a free port of loopback, or on the one that PORT names, and writes its number to FILE, if any.
'use strict';

const { renameSync, writeFileSync } = require('node:fs');
const http = require('node:http');

const { createElement: h, useMemo } = require('react');
const { renderToString } = require('react-dom/server');

const PRODUCTS = Array.from({ length: 100 }, (_, index) => ({
  id: index,
  name: `Product ${index}`,
  price: ((index * 7919) % 10007) / 100,
  stock: (index * 31) % 17,
  labels: ['new', 'sale', 'last chance', 'regional'].filter((_, bit) => (index >> bit) & 1),
}));

function Labels({ labels }) {
  return h('ul', { className: 'labels' }, labels.map((label) => h('li', { key: label, className: `label-${label}` }, label)));
}

function Product({ product, currency }) {
  const { id, name, price, stock, labels } = product;
  return h(
    'article',
    { className: stock > 0 ? 'product' : 'product sold-out', id: `product-${id}`, style: { order: id } },
    h('h2', null, h('a', { href: `/products/${id}` }, name)),
    h('p', { className: 'price' }, price.toFixed(2), ' ', currency),
    h('p', null, stock > 0 ? `${stock} in stock` : 'sold out & "back soon"'),
    h(Labels, { labels }),
    h('button', { type: 'button', disabled: stock === 0, 'aria-label': `add ${name}` }, 'Add'),
  );
}

function Shop({ products, currency }) {
  const total = useMemo(() => products.reduce((sum, { price, stock }) => sum + price * stock, 0), [products]);
  const list = products.map((product) => h(Product, { key: product.id, product, currency }));
  return h('main', null, h('h1', null, 'Products'), h('p', null, `Goods for ${total.toFixed(2)}`), h('div', null, list));
}

function answer(request, response) {
  const page = `<!doctype html><title>Shop</title><div id="root">${renderToString(h(Shop, { products: PRODUCTS, currency: 'EUR' }))}</div>`;
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': Buffer.byteLength(page) });
  response.end(page);
}

const server = http.createServer(answer);
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const file = process.argv[2];
  if (file === undefined) return;
  writeFileSync(`${file}.tmp`, String(server.address().port));
  renameSync(`${file}.tmp`, file);
});
