// The charts of `hasten gc`: one heap of each trace at a time. One trace is coloured by kind, several by trace.
(function () {
  'use strict';

  const { traces } = JSON.parse(document.getElementById('data').textContent);
  const { add, faint, format, listenToKeys, remove, time } = window.hastenCharts;
  const KINDS = ['scavenge', 'minor mark-sweep', 'mark-compact'];
  const KIND_COLOUR = { scavenge: 0, 'minor mark-sweep': 2, 'mark-compact': 1 };
  const KIB = 1024;
  const place = (id) => document.getElementById(id);
  const chosen = traces.map(() => 0);
  let drawn = [];

  /** What is drawn now: a heap of each trace that has one. */
  const shown = () => traces.map((trace, at) => ({ at, name: trace.name, heap: trace.heaps[chosen[at]] }))
    .filter((one) => one.heap);
  const isSingle = () => shown().length === 1;
  const colourOf = (c, at) => c.curves[at % c.curves.length];

  function drawAll() {
    drawn.forEach(remove);
    drawn = [];
    const heaps = shown();
    time.setExtent(Math.min(...heaps.map((one) => one.heap.first)), Math.max(...heaps.map((one) => one.heap.last)));
    drawPauses(heaps);
    drawShare(heaps);
    drawCpu(heaps);
    drawHeap(heaps);
    drawSpaces(heaps);
    drawAllocation(heaps);
    drawHistograms(heaps);
    tellWindow(null);
  }

  function chart(parent, title, caption, make) {
    const figure = document.createElement('figure');
    figure.className = 'chart';
    figure.tabIndex = 0;
    figure.setAttribute('role', 'group');
    figure.setAttribute('aria-label', title + '. The same numbers are in the tables under “All numbers”.');
    if (caption) {
      const head = document.createElement('figcaption');
      head.textContent = caption;
      figure.append(head);
    }
    parent.append(figure);
    listenToKeys(figure);
    drawn.push(add(figure, make));
  }

  const timeAxis = { values: (_, splits) => splits.map(format.clock), space: 70 };
  const timeSeries = { label: 'at', value: (_, at) => format.clock(at) };
  // Bytes are told in powers of two, so they are marked there, too.
  const POWERS = Array.from({ length: 50 }, (_, at) => 2 ** (at - 6));
  const bytesAxis = { incrs: POWERS, values: (_, splits) => splits.map((kib) => format.bytes(kib * KIB)), size: 66 };
  const bytesValue = (_, kib) => format.bytes(kib == null ? null : kib * KIB);
  const rateValue = (_, kib) => kib == null ? '–' : format.bytes(kib * KIB) + '/s';
  const fromZero = (_, min, max) => [0, max > 0 ? max * 1.08 : 1];

  // Pauses: a panel for each trace, with the same scale in all.
  function drawPauses(heaps) {
    const all = heaps.flatMap((one) => one.heap.pauses.ms);
    const least = Math.max(0.01, Math.min(...all.filter((ms) => ms > 0), 10));
    const most = Math.max(...all, least * 10);
    const range = [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most * 1.01))];
    for (const { heap, name } of heaps) {
      const caption = isSingle() ? '' : name;
      chart(place('pauses'), 'Pauses over time ' + caption, caption, (c) => pauses(heap, c, range));
    }
    if (heaps.some((one) => !one.heap.is_complete) && !place('thinned')) {
      const note = document.createElement('span');
      note.id = 'thinned';
      note.textContent = ' There are too many to draw them all: the longest of each kind in each moment are here.';
      place('pauses-note').append(note);
    }
  }

  function pauses(heap, c, range) {
    const { at, kind, ms } = heap.pauses;
    const kinds = KINDS.filter((name) => kind.includes(name));
    const columns = kinds.map((name) => kind.map((one, i) => one === name ? Math.max(ms[i], range[0]) : null));
    const series = kinds.map((name) => {
      const colour = c.curves[KIND_COLOUR[name]];
      const size = name === 'mark-compact' ? 9 : heap.pauses.at.length > 2000 ? 4 : 6;
      return { label: name, colour, stroke: colour, paths: () => null, value: (_, v) => format.pause(v),
        points: { show: true, size, width: 1, stroke: faint(colour, 0.9), fill: faint(colour, 0.45) } };
    });
    return { data: [at, ...columns], options: {
      timed: true, height: isSingle() ? 280 : 170,
      scales: { y: { distr: 3, log: 10, range: () => range } },
      axes: [timeAxis, { values: (_, splits) => splits.map((v) => v == null ? '' : decade(v)), size: 66,
        gridFilter: (_, splits) => splits.map((v) => v != null && decade(v) ? v : null) }],
      series: [timeSeries, ...series],
    } };
  }

  /** Only powers of ten have a label. */
  function decade(ms) {
    const power = Math.log10(ms);
    if (Math.abs(power - Math.round(power)) > 1e-6) return '';
    return ms >= 1000 ? ms / 1000 + ' s' : ms + ' ms';
  }

  const middles = (slices) => slices.from.map((from, i) => (from + slices.to[i]) / 2);
  const known = (column) => column.map((value) => value > 0 ? value : null);

  function line(label, colour, more) {
    return { label, colour, stroke: colour, width: 2, points: { show: false }, spanGaps: true, ...more };
  }

  // Rates are told for stretches of what is shown, not for slices of the trace: a pause would fill a slice of its length.
  const STRETCHES = traces.length > 1 ? 45 : 90;

  /** What `column` says of each second of each stretch of `window`. */
  function perSecond(slices, column, [from, to]) {
    const length = (to - from) / STRETCHES;
    const sums = new Array(STRETCHES).fill(0);
    for (let i = 0; i < slices.from.length; i++) {
      const [begin, end] = [slices.from[i], slices.to[i]];
      const first = Math.max(Math.floor((begin - from) / length), 0);
      const last = Math.min(Math.floor((end - from) / length), STRETCHES - 1);
      for (let at = first; at <= last; at++) {
        const overlap = Math.min(end, from + (at + 1) * length) - Math.max(begin, from + at * length);
        sums[at] += column[i] * (end > begin ? Math.max(overlap, 0) / (end - begin) : 1);
      }
    }
    const isTold = (at) => slices.from[0] < from + (at + 1) * length && slices.to[slices.to.length - 1] > from + at * length;
    return sums.map((sum, at) => isTold(at) ? sum / length : null);
  }

  const stretches = ([from, to]) => Array.from({ length: STRETCHES }, (_, at) => from + (at + 0.5) * (to - from) / STRETCHES);

  function drawShare(heaps) {
    const share = ({ slices }, window) => perSecond(slices, slices.pause, window)
      .map((ms) => ms == null ? null : Math.min(ms / 1e3, 1));
    chart(place('share'), 'Share of time in pauses', '', (c) => ({
      dataOf: (window) => [stretches(window), ...heaps.map(({ heap }) => share(heap, window))],
      options: {
        timed: true, height: 150,
        scales: { y: { range: (_, min, max) => [0, max > 0 ? Math.min(max * 1.08, 1) : 0.01] } },
        axes: [timeAxis, { values: (_, splits) => splits.map((v) => +(v * 100).toFixed(2) + ' %'), size: 66 }],
        series: [timeSeries, ...heaps.map(({ at, name }) => {
          const colour = isSingle() ? c.failed : colourOf(c, at);
          return line(isSingle() ? 'in pauses' : name, colour,
            { value: (_, v) => format.percent(v), fill: isSingle() ? faint(colour, 0.15) : undefined });
        })],
      },
    }));
  }

  function drawCpu(heaps) {
    const telling = heaps.filter((one) => one.heap.cpu);
    place('cpu-part').hidden = telling.length === 0;
    for (const { heap, name } of telling) {
      const caption = isSingle() ? '' : name;
      chart(place('cpu'), 'CPU time over time ' + caption, caption, (c) => cpu(heap.cpu, c));
    }
  }

  function cpu({ at, shares }, c) {
    // Collections have the colour that they have above; functions take the others in turn.
    const colours = shares.map((_, i) => i === 0 ? c.failed : i > shares.length - 3 ? (i === shares.length - 1 ? c.soft : c.stock)
      : c.curves[[0, 1, 2, 3, 4, 5, 7][(i - 1) % 7]]);
    return stacked(at, shares, colours, { height: 260, scales: { y: { range: () => [0, 1] } },
      axes: [timeAxis, { values: (_, splits) => splits.map((v) => Math.round(v * 100) + ' %'), size: 66 }] },
      (share) => format.percent(share));
  }

  /** Each line is the sum of its column and of those below; its value is the column's own. */
  function stacked(at, columns, colours, options, tell) {
    const below = at.map(() => 0);
    const tops = columns.map(([, values]) => values.map((value, i) => value == null ? null : (below[i] += value)));
    const series = columns.map(([name, values], column) => line(name, colours[column], {
      width: 1, fill: column === 0 ? faint(colours[0], 0.55) : undefined,
      value: (_, __, ___, i) => tell(i == null ? null : values[i]),
    }));
    const bands = tops.slice(1).map((_, top) => ({ series: [top + 2, top + 1], fill: faint(colours[top + 1], 0.55) }));
    return { data: [at, ...tops], options: { timed: true, ...options, series: [timeSeries, ...series], bands,
      cursor: { points: { show: false } } } };
  }

  function drawHeap(heaps) {
    chart(place('heap'), 'Heap over time', '', (c) => isSingle() ? heapOfOne(heaps[0], c) : heapOfSeveral(heaps, c));
  }

  function heapOfOne({ heap }, c) {
    const { slices, full } = heap;
    const used = c.curves[0], after = c.curves[1];
    const tables = [
      [middles(slices), known(slices.used_min), known(slices.used_max), known(slices.committed)],
      [full.map((one) => one[0]), full.map((one) => one[1])],
    ];
    const series = [timeSeries,
      line('used, least', used, { value: bytesValue, width: 1 }),
      line('used, most', used, { value: bytesValue, width: 1.5 }),
      line('committed', c.stock, { value: bytesValue, dash: [6, 4], width: 1.5 }),
      line('behind full', after, { value: bytesValue, width: 1.5, points: { show: true, size: 6, fill: after } }),
    ];
    if (heap.trend && heap.trend.is_suspicious && full.length > 1) {
      tables.push(trendOf(heap));
      series.push(line('trend', c.failed, { value: bytesValue, dash: [2, 3], width: 2 }));
    }
    return { data: uPlot.join(tables), options: {
      timed: true, height: 260, scales: { y: { range: fromZero } }, axes: [timeAxis, bytesAxis], series,
      bands: [{ series: [2, 1], fill: faint(used, 0.18) }],
    } };
  }

  /** Through the middle of what was left behind full collections. */
  function trendOf({ full, trend }) {
    const mean = (at) => full.reduce((sum, one) => sum + one[at], 0) / full.length;
    const [time, kib] = [mean(0), mean(1)];
    const at = (when) => Math.max(kib + trend.bytes_per_hour / KIB / 3600 * (when - time), 0);
    const ends = [full[0][0], full[full.length - 1][0]];
    return [ends, ends.map(at)];
  }

  function heapOfSeveral(heaps, c) {
    const tables = [], series = [timeSeries];
    for (const { heap, at, name } of heaps) {
      tables.push([middles(heap.slices), known(heap.slices.used_max), known(heap.slices.committed)]);
      series.push(line(name + ', used', colourOf(c, at), { value: bytesValue }));
      series.push(line('committed', colourOf(c, at), { value: bytesValue, dash: [6, 4], width: 1 }));
    }
    return { data: uPlot.join(tables), options: {
      timed: true, height: 260, scales: { y: { range: fromZero } }, axes: [timeAxis, bytesAxis], series,
    } };
  }

  function drawSpaces(heaps) {
    const telling = heaps.filter((one) => one.heap.slices.spaces.length > 0);
    place('spaces-part').hidden = telling.length === 0;
    for (const { heap, name } of telling) {
      const caption = isSingle() ? '' : name;
      chart(place('spaces'), 'Spaces over time ' + caption, caption, (c) => spaces(heap.slices, c));
    }
  }

  function spaces(slices, c) {
    const colours = slices.spaces.map((_, at) => colourOf(c, at));
    return stacked(middles(slices), slices.spaces, colours,
      { scales: { y: { range: fromZero } }, axes: [timeAxis, bytesAxis] }, (kib) => bytesValue(null, kib));
  }

  function drawAllocation(heaps) {
    const panel = (title, read, colour) => chart(place('allocation'), title + ' over time', title, (c) => ({
      dataOf: (window) => [stretches(window), ...heaps.map(({ heap }) => perSecond(heap.slices, heap.slices[read], window))],
      options: {
        timed: true, height: 180, scales: { y: { range: fromZero } },
        axes: [timeAxis, { ...bytesAxis, values: (_, splits) => splits.map((kib) => rateValue(_, kib)), size: 76 }],
        series: [timeSeries, ...heaps.map(({ at, name }) => {
          const own = isSingle() ? c.curves[colour] : colourOf(c, at);
          return line(isSingle() ? title.toLowerCase() : name, own,
            { value: rateValue, fill: isSingle() ? faint(own, 0.15) : undefined });
        })],
      },
    }));
    panel('Allocated', 'allocated', 0);
    panel('Promoted', 'promoted', 1);
  }

  function drawHistograms(heaps) {
    for (const kind of KINDS) {
      const having = heaps.map((one) => ({ ...one, histogram: one.heap.histograms.find((h) => h.kind === kind) }))
        .filter((one) => one.histogram && one.histogram.count > 0 && one.histogram.buckets.length > 0);
      if (having.length === 0) continue;
      const caption = isSingle() ? kind + ', ' + having[0].histogram.count : kind + ', share of each trace';
      chart(place('histograms'), 'Lengths of pauses, ' + kind, caption, (c) => histogram(having, kind, c));
    }
  }

  function histogram(having, kind, c) {
    const edges = [...new Set(having.flatMap((one) => one.histogram.buckets.map((bucket) => bucket[0])))].sort((a, b) => a - b);
    const columns = having.map(({ histogram }) => {
      const counts = new Map(histogram.buckets);
      return edges.map((edge) => isSingle() ? counts.get(edge) || 0 : (counts.get(edge) || 0) / histogram.count);
    });
    const series = having.map(({ at, name }) => {
      const colour = isSingle() ? c.curves[KIND_COLOUR[kind]] : colourOf(c, at);
      const value = (_, v) => v == null ? '–' : isSingle() ? String(v) : format.percent(v);
      return isSingle()
        ? { label: 'pauses', colour, stroke: colour, fill: faint(colour, 0.6), value, points: { show: false },
          paths: uPlot.paths.bars({ size: [0.9, 60] }) }
        : { label: name, colour, stroke: colour, width: 2, fill: faint(colour, 0.08), value, points: { show: false },
          paths: uPlot.paths.stepped({ align: 0 }) };
    });
    const length = (at) => edges[Math.round(at)] === undefined ? '' : format.pause(edges[Math.round(at)]);
    return { data: [edges.map((_, at) => at), ...columns], options: {
      height: 200,
      scales: { x: { time: false, range: () => [-0.6, Math.max(edges.length - 0.4, 0.6)] }, y: { range: fromZero } },
      axes: [
        { values: (_, splits) => splits.map((at) => Number.isInteger(at) ? length(at) : ''), space: 60,
          incrs: [1, 2, 4, 5, 10, 20, 50] },
        { values: (_, splits) => splits.map((v) => isSingle() ? Number.isInteger(v) ? v : '' : format.percent(v)) },
      ],
      series: [{ label: 'up to', value: (_, at) => at == null ? '–' : length(at) }, ...series],
    } };
  }

  // The window of time in words, and the buttons that change it.
  function tellWindow(range) {
    const [from, to] = range || time.all();
    place('window').textContent = (range ? 'From ' : 'All, from ') + format.clock(rounded(from)) + ' to ' + format.clock(rounded(to));
  }

  const rounded = (seconds) => Math.round(seconds * 1e3) / 1e3;

  const ACTIONS = { 'zoom-in': () => time.zoom(0.5), 'zoom-out': () => time.zoom(2), left: () => time.pan(-0.25),
    right: () => time.pan(0.25), all: () => time.show(null) };

  function choices() {
    traces.forEach((trace, at) => {
      if (trace.heaps.length < 2) return;
      const select = document.createElement('select');
      select.setAttribute('aria-label', 'Heap of ' + trace.name);
      trace.heaps.forEach((heap, index) => select.append(new Option(heap.name, String(index))));
      select.addEventListener('change', () => {
        chosen[at] = Number(select.value);
        drawAll();
      });
      place('heaps').append(select);
    });
  }

  if (shown().length === 0) return;
  place('over-time').hidden = false;
  place('lengths').hidden = false;
  if (!isSingle()) place('lengths-note').textContent = 'How large a share of the pauses of each trace was as long.';
  document.querySelectorAll('[data-do]').forEach((button) => button.addEventListener('click', ACTIONS[button.dataset.do]));
  time.onChange(tellWindow);
  choices();
  drawAll();
  document.documentElement.dataset.charts = String(drawn.length);
})();
