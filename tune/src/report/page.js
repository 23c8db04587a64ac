// The charts of `hasten tune`, and the table of measurements by any of its columns.
(function () {
  'use strict';

  const { name, unit, panels, trials } = JSON.parse(document.getElementById('data').textContent);
  const { add, faint } = window.hastenCharts;
  const PHASES = ['noise', 'screen', 'search', 'recheck', 'ablate'];
  const percent = (share) => share == null ? '–' : share.toFixed(1) + ' %';
  const digits = (value) => value == null ? '–' : Number(value.toPrecision(4)).toString() + (unit ? ' ' + unit : '');

  let declared = 0;
  function chart(place, title, caption, make) {
    const figure = document.createElement('figure');
    figure.className = 'chart';
    figure.setAttribute('role', 'img');
    figure.setAttribute('aria-label', title);
    if (caption) {
      const head = document.createElement('figcaption');
      head.textContent = caption;
      figure.append(head);
    }
    document.getElementById(place).append(figure);
    add(figure, make);
    declared++;
  }

  /** Points only. */
  function dots(label, colour, size, value) {
    return { label, colour, stroke: colour, paths: () => null, value,
      points: { show: true, size, width: 1, stroke: faint(colour, 0.9), fill: faint(colour, 0.45) } };
  }

  /** A level line. */
  const level = (label, colour, more) =>
    ({ label, colour, stroke: colour, width: 1.5, points: { show: false }, value: (_, v) => percent(v), ...more });

  for (const panel of panels) {
    const count = panel.changes.length;
    const numbers = panel.changes.map((_, at) => at + 1);
    const caption = panel.name + (panel.effect ? ': ' + percent(panel.effect[1]) : '');
    const title = caption + ', ' + count + ' pairs';
    chart(panel.place, title, caption, (c) => {
      const colour = c.curves[panel.place === 'noise-chart' ? 3 : 0];
      const [low, middle, high] = panel.effect || [];
      const flat = (value) => numbers.map(() => value == null ? null : value);
      return {
        data: [numbers, panel.changes, flat(low), flat(middle), flat(high)],
        options: {
          height: panel.place === 'parts-charts' ? 170 : 220,
          scales: { x: { time: false, range: [0.5, count + 0.5] }, y: { range: around } },
          axes: [{ values: (_, splits) => splits.map((at) => Number.isInteger(at) ? at : '') }, { values: (_, splits) => splits.map(percent) }],
          series: [{ label: 'pair' }, dots('change', colour, 8, (_, v) => percent(v)), level('from', faint(colour, 0.6), { dash: [5, 4] }),
            level('effect', colour), level('to', faint(colour, 0.6), { dash: [5, 4] })],
          bands: [{ series: [4, 2], fill: faint(colour, 0.12) }],
        },
      };
    });
  }

  /** Zero is always to be seen. */
  function around(_, min, max) {
    const low = Math.min(min, 0), high = Math.max(max, 0), margin = Math.max((high - low) * 0.1, 0.1);
    return [low - margin, high + margin];
  }

  if (trials.length) {
    const phases = PHASES.filter((phase) => trials.some((one) => one.phase === phase && !one.stock));
    const columns = [trials.map((one) => one.stock ? one.value : null)]
      .concat(phases.map((phase) => trials.map((one) => one.phase === phase && !one.stock ? one.value : null)));
    chart('trials-chart', name + ' of all measurements over time; the numbers are in the table below', '', (c) => ({
      data: [trials.map((one) => one.at), ...columns],
      options: {
        height: 280,
        scales: { x: { time: false }, y: { range: (_, min, max) => [min - (max - min) * 0.08, max + (max - min) * 0.08 || max + 1] } },
        axes: [{ values: (_, splits) => splits.map((s) => s < 120 ? s + ' s' : (s / 60).toFixed(0) + ' min'), space: 70 }, { values: (_, splits) => splits.map(digits), size: 76 }],
        series: [{ label: 'at', value: (_, s) => s == null ? '–' : s.toFixed(0) + ' s' }, dots('stock', c.stock, 7, (_, v) => digits(v)),
          ...phases.map((phase) => dots(phase, c.curves[PHASES.indexOf(phase)], 7, (_, v) => digits(v)))],
      },
    }));
  }
  document.documentElement.dataset.charts = declared;

  // The table by the column whose head is pressed, and only rows with the words of the filter.
  const table = document.getElementById('trials'), body = table.tBodies[0];
  const key = (row, at) => {
    const cell = row.cells[at], text = cell.dataset.order || cell.textContent;
    const number = Number(text);
    return text === '–' ? Infinity : text !== '' && !Number.isNaN(number) ? number : text;
  };
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const rows = [...body.rows].map((row) => [key(row, at), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      body.append(...rows.map(([, row]) => row));
    });
  });
  const filter = document.getElementById('filter'), count = document.getElementById('count');
  filter.closest('.controls').hidden = false;
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown++;
    }
    count.textContent = words.length ? shown + ' of ' + body.rows.length : '';
  });
})();
