'use strict';
(() => {
  const byId = (id) => document.getElementById(id);
  const size = (bytes) => bytes < 1e3 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB`
    : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
  const title = (box) => (box.count > 1 ? `${box.count} × ${box.name}` : box.name) + (box.address ? ` @${box.address}` : '');

  const search = () => {
    const input = byId('search');
    const rows = [...document.querySelectorAll('#histogram tbody tr')];
    const names = rows.map((row) => row.firstElementChild.textContent.toLowerCase());
    input.closest('p').hidden = false;
    input.addEventListener('input', () => {
      const text = input.value.toLowerCase();
      let hits = 0;
      rows.forEach((row, index) => {
        row.hidden = !names[index].includes(text);
        hits += row.hidden ? 0 : 1;
      });
      byId('hits').textContent = text ? `${hits} of ${rows.length}` : '';
    });
  };

  // Squarified (Bruls, Huizing and van Wijk, 2000): rows along the shorter side, as long as that makes boxes squarer.
  const squarify = (boxes, whole, width, height) => {
    const placed = [];
    let [left, top, index] = [0, 0, 0];
    const scale = width * height / whole;
    while (index < boxes.length && width > 1 && height > 1) {
      const side = Math.min(width, height);
      const worst = (sum, least, most) => Math.max(side * side * most / (sum * sum), sum * sum / (side * side * least));
      let [sum, end, best] = [0, index, Infinity];
      while (end < boxes.length) {
        const next = sum + boxes[end].bytes * scale;
        const ratio = worst(next, boxes[end].bytes * scale, boxes[index].bytes * scale);
        if (ratio > best) break;
        [sum, best, end] = [next, ratio, end + 1];
      }
      const depth = sum / side;
      let along = 0;
      for (; index < end; index += 1) {
        const length = boxes[index].bytes * scale / depth;
        placed.push(width < height ? [left + along, top, length, depth] : [left, top + along, depth, length]);
        along += length;
      }
      if (width < height) [top, height] = [top + depth, height - depth];
      else [left, width] = [left + depth, width - depth];
    }
    return placed;
  };

  const tree = (root) => {
    const area = byId('boxes');
    let way = [root];
    const colours = new Map();
    const colour = (name) => {
      if (!colours.has(name)) colours.set(name, colours.size % 6);
      return colours.get(name);
    };
    const go = (to, focus) => {
      way = to;
      draw();
      if (focus) (area.querySelector('button') || byId('crumbs').lastElementChild).focus();
    };
    const crumbs = () => {
      byId('crumbs').replaceChildren(...way.map((box, index) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = `${title(box)} · ${size(box.bytes)}`;
        if (index === way.length - 1) button.setAttribute('aria-current', 'true');
        button.addEventListener('click', () => go(way.slice(0, index + 1), true));
        return button;
      }));
    };
    const draw = () => {
      crumbs();
      const box = way[way.length - 1];
      const inside = [...(box.inside || [])].sort((a, b) => b.bytes - a.bytes);
      const { width, height } = area.getBoundingClientRect();
      const places = squarify(inside, box.bytes, width, height);
      area.replaceChildren(...places.map(([left, top, wide, high], index) => {
        const one = inside[index];
        const button = document.createElement('button');
        button.type = 'button';
        const into = (one.inside || []).length > 0;
        button.className = `of-${colour(one.name)}${into ? '' : ' leaf'}`;
        button.textContent = wide > 40 && high > 14 ? `${title(one)} ${size(one.bytes)}` : '';
        const share = (100 * one.bytes / root.bytes).toFixed(1);
        const label = `${title(one)}, ${size(one.bytes)}, ${share} % of all`;
        button.setAttribute('aria-label', label);
        button.title = label;
        Object.assign(button.style, { left: `${left}px`, top: `${top}px`, width: `${wide}px`, height: `${high}px` });
        const tell = () => { byId('about-box').textContent = label; };
        button.addEventListener('focus', tell);
        button.addEventListener('mouseenter', tell);
        if (into) button.addEventListener('click', () => go([...way, one], true));
        return button;
      }));
      const own = box.bytes - inside.reduce((sum, one) => sum + one.bytes, 0);
      byId('about-box').textContent = own > 0 ? `${size(own)} of ${title(box)} are its own, and in boxes too small to be drawn` : '';
    };
    area.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && event.target !== area) {
        event.preventDefault();
        event.target.click();
        return;
      }
      if ((event.key === 'Backspace' || event.key === 'Escape') && way.length > 1) {
        event.preventDefault();
        go(way.slice(0, -1), true);
      }
    });
    byId('tree').hidden = false;
    draw();
    let drawn = area.clientWidth;
    new ResizeObserver(() => {
      if (area.clientWidth !== drawn) {
        drawn = area.clientWidth;
        draw();
      }
    }).observe(area);
  };

  search();
  const root = JSON.parse(byId('data').textContent);
  if (root) tree(root);
})();
