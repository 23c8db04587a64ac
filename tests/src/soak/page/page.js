// The page of a run of `make soak`: figures side by side, and curves of each server, stock beside accelerated.
(function () {
  'use strict';

  const report = JSON.parse(document.getElementById('data').textContent);
  const { add, format, listenToKeys, time } = window.hastenCharts;
  const place = (id) => document.getElementById(id);
  const SIDES = ['stock', 'hasten'];
  const KIB = 1024;

  const held = report.rows.flatMap((row) => SIDES.flatMap((side) =>
    (row[side] ? row[side].held_against_it : []).map((what) => `${row.server} (${side}): ${what}`)));
  place('head').className = held.length || !report.complete ? 'bad' : 'good';
  place('about').textContent = `make soak · ${+report.minutes.toFixed(1)} minutes · seed ${report.seed} · ${report.host.cpu}, ` +
    `${report.host.cores} cores · ${report.host.date}`;
  place('headline').textContent = !report.complete ? 'Interrupted' : held.length ? 'Something is wrong' : 'Nothing failed, nothing grew';
  for (const what of held) append(place('held'), 'li', what);

  function append(parent, name, text) {
    const element = document.createElement(name);
    if (text != null) element.textContent = text;
    parent.append(element);
    return element;
  }

  function row(table, name, cells, cell) {
    const line = append(table, 'tr');
    const head = append(line, 'th', name);
    head.className = 'case';
    head.scope = 'row';
    for (const text of cells) append(line, cell || 'td', text);
  }

  const slope = (growth, unit) => growth
    ? `${(growth.value / unit).toFixed(1)} [${(growth.low / unit).toFixed(1)}, ${(growth.high / unit).toFixed(1)}]` : '–';
  const FIGURES = [
    ['requests answered', (one) => one.answers],
    ['packed by gzip', (one) => one.packed],
    ['full handshakes', (one) => one.full_handshakes],
    ['resumed handshakes', (one) => one.resumed_handshakes],
    ['clients that misbehaved', (one) => one.rude_clients],
    ['reloads', (one) => one.reloads],
    ['workers killed', (one) => one.kills],
    ['requests failed', (one) => one.failed],
    ['lost with a killed worker', (one) => one.lost_with_a_killed_worker],
    ['came while there was no worker', (one) => one.came_while_there_was_none],
    ['seconds without a worker', (one) => one.without_worker_s.toFixed(1)],
    ['repeated after a reload', (one) => one.repeated_after_reload],
    ['workers: allocated, KiB per minute', (one) => slope(one.allocated_while_steady.kib_per_minute, 1)],
    ['workers: KiB per minute', (one) => slope(one.workers_while_steady.kib_per_minute, 1)],
    ['workers: bytes per answer', (one) => slope(one.workers_while_steady.bytes_per_answer, 1)],
    ['workers: descriptors per minute', (one) => slope(one.workers_while_steady.descriptors_per_minute, 1)],
    ['master: KiB per reload', (one) => slope(one.master_while_reloading.bytes_per_reload, KIB)],
    ['master: descriptors per reload', (one) => slope(one.master_while_reloading.descriptors_per_reload, 1)],
    ['descriptors without clients', (one) => `${one.idle_descriptors.before} → ${one.idle_descriptors.after}`],
    ['old workers that did not end', (one) => one.old_workers_left],
    ['key operations in batches', (one) => one.batched_operations],
    ['chunks compressed by engines', (one) => one.compressed_chunks],
  ];
  const columns = report.rows.flatMap((line) => SIDES.filter((side) => line[side]).map((side) => [line.server, side, line[side]]));
  row(place('figures'), '', columns.map(([server, side]) => `${server} ${side}`), 'th');
  for (const [name, of] of FIGURES) row(place('figures'), name, columns.map(([, , one]) => of(one)));

  row(place('schedule'), 'at', ['server', 'what', 'engine'], 'th');
  for (const event of report.schedule) {
    row(place('schedule'), format.clock(event.at_s), [event.server, event.action, event.engine || '']);
  }

  const fromZero = (_, min, max) => [0, max > 0 ? max * 1.08 : 1];
  const CURVES = [
    ['Memory', 'memory_kib', (kib) => format.bytes(kib == null ? null : kib * KIB)],
    ['Memory of the master', 'master_kib', (kib) => format.bytes(kib == null ? null : kib * KIB)],
    ['Open descriptors', 'descriptors', (count) => count == null ? '–' : String(Math.round(count))],
    ['Workers, old ones among them', 'workers', (count) => count == null ? '–' : String(count)],
  ];

  time.setExtent(0, report.phases.steady_s);
  for (const { server } of report.rows) {
    append(place('curves'), 'h3', `${server}: reloads and kills until ${format.clock(report.phases.reloads_s)}, then none`);
    const both = SIDES.map((side) => report.series.find((one) => one.server === server && one.side === side)).filter(Boolean);
    for (const [title, name, text] of CURVES) chart(server, title, name, text, both);
  }

  function chart(server, title, name, text, both) {
    const figure = document.createElement('figure');
    figure.className = 'chart';
    figure.tabIndex = 0;
    figure.setAttribute('role', 'group');
    figure.setAttribute('aria-label', `${server}: ${title} over time`);
    append(figure, 'figcaption', title);
    place('curves').append(figure);
    listenToKeys(figure);
    const value = (_, number) => text(number);
    const tables = both.map((one) => [one.at_s, one[name]]);
    const data = tables.length > 1 ? uPlot.join(tables) : tables[0];
    add(figure, (c) => ({
      data,
      options: {
        timed: true,
        height: 170,
        axes: [{ values: (_, splits) => splits.map(format.clock), space: 70 }, { values: (_, splits) => splits.map(text), size: 70 }],
        scales: { y: { range: fromZero } },
        series: [{ label: 'at', value: (_, at) => format.clock(at) }, ...both.map((one) => {
          const colour = one.side === 'stock' ? c.stock : c.curves[0];
          return { label: one.side, stroke: colour, colour, width: 1.5, value, spanGaps: true, points: { show: false } };
        })],
      },
    }));
  }
})();
