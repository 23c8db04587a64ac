// The live page: asks this server every two seconds what it has seen, and draws what has changed since the last answer.
// All text goes into the page as text only: names of programs are anybody's.
(function () {
  'use strict';

  const { add, faint, format, listenToKeys, remove, time } = window.hastenCharts;
  const PERIOD_MS = 2000;
  const PATIENCE_MS = 8000;
  const MOST_POINTS = 300;
  const place = (id) => document.getElementById(id);

  /** Answers, oldest first: `at` in seconds, and `values`, by series. */
  const history = [];
  let isPaused = false;
  let chosen = '';
  let charts = [];

  // Series

  const keyOf = (series) => series.name + '\u0000' + JSON.stringify(series.labels);

  function remember(status) {
    const values = new Map();
    for (const series of status.series) {
      values.set(keyOf(series), { ...series, counts: series.buckets ? series.buckets.map((one) => one[1]) : [series.value] });
    }
    const before = history.length ? history[history.length - 1].at : 0;
    if (Math.abs(status.time_unix_s - before) < 0.001) return;
    // A clock that was set back would tell rates that are none.
    if (status.time_unix_s < before) history.length = 0;
    history.push({ at: status.time_unix_s, values });
    if (history.length > MOST_POINTS) history.shift();
  }

  /** What the exporter has seen before this page was opened. */
  function recall({ series, points }) {
    for (const point of points) {
      const values = new Map();
      point.values.forEach((counts, at) => {
        if (counts.length) values.set(keyOf(series[at]), { ...series[at], counts });
      });
      history.push({ at: point.time_unix_s, values });
    }
  }

  const isShown = (labels) => !chosen || !labels.program || chosen === labels.program + ' · ' + labels.accelerator;

  /** What the counters of `name` that `group` gives a name to counted per second, by that name, at each moment. */
  function rates(name, group, at = 0) {
    const columns = new Map();
    for (let i = 1; i < history.length; i++) {
      const [before, now] = [history[i - 1], history[i]];
      for (const [key, series] of now.values) {
        const label = series.name === name && isShown(series.labels) && group(series.labels);
        if (!label) continue;
        if (!columns.has(label)) columns.set(label, new Array(history.length - 1).fill(null));
        const old = before.values.get(key);
        // A restarted exporter begins at zero.
        const more = old ? Math.max(series.counts[at] - old.counts[at], 0) : 0;
        const column = columns.get(label);
        column[i - 1] = (column[i - 1] || 0) + more / (now.at - before.at);
      }
    }
    // What has not happened is not worth a line.
    return [...columns].filter(([, column]) => column.some((value) => value > 0)).sort(([one], [other]) => one < other ? -1 : 1);
  }

  const times = () => history.slice(1).map((one) => one.at);
  const last = (column) => column.length ? column[column.length - 1] : null;
  const sum = (columns) => columns.reduce((total, [, column]) => total + (last(column) || 0), 0);

  // Charts

  const clock = (s) => new Date(s * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
  const timeAxis = { values: (_, splits) => splits.map(clock), space: 80 };
  const timeSeries = { label: 'at', value: (_, at) => at == null ? '–' : clock(at) };
  const fromZero = (_, min, max) => [0, max > 0 ? max * 1.08 : 1];

  // Bytes are told in powers of two, so they are marked there, too.
  const POWERS = Array.from({ length: 50 }, (_, at) => 2 ** at);

  function brief(value) {
    if (value == null) return '–';
    const units = ['', ' k', ' M', ' G'];
    let unit = 0;
    while (Math.abs(value) >= 999.5 && unit < 3) { value /= 1000; unit++; }
    return value.toFixed(Math.abs(value) < 9.95 && value % 1 ? (Math.abs(value) < 0.0995 ? 3 : 1) : 0) + units[unit];
  }
  const perSecond = (value) => value == null ? '–' : brief(value) + '/s';
  const bytes = (value) => value == null ? '–' : format.bytes(value) + '/s';
  const cores = (value) => value == null ? '–' : value.toFixed(value < 0.0995 ? 3 : 2) + ' cores';

  const CHARTS = [
    { title: 'Operations by engine and result', unit: perSecond,
      columns: () => rates('hasten_ops_total', (of) => of.engine + ' · ' + of.result) },
    { title: 'CPU saved, estimated', unit: cores,
      columns: () => rates('hasten_cpu_saved_seconds_total', (of) => of.accelerator) },
    { title: 'Batches by lanes filled', unit: perSecond, columns: lanes },
    { title: 'Handshakes', unit: perSecond, columns: () => rates('hasten_handshakes_total', (of) => of.result) },
    { title: 'Bytes in and out of streams', unit: bytes,
      columns: () => rates('hasten_stream_bytes_total', (of) => of.op + ' ' + of.direction) },
    { title: 'Compressed size as a part of the plain one', unit: format.percent, columns: ratios },
    { title: 'Bytes by engine', unit: bytes, columns: () => rates('hasten_bytes_total', (of) => of.op + ' · ' + of.engine + ' ' + of.direction) },
    { title: 'Fallbacks by reason', unit: perSecond, columns: () => rates('hasten_fallback_total', (of) => of.reason) },
  ];

  function lanes() {
    const of = (at) => rates('hasten_batch_lanes', () => at + 1 + (at ? ' lanes' : ' lane'), at);
    return Array.from({ length: 8 }, (_, at) => of(at)).flat();
  }

  function ratios() {
    const of = new Map(rates('hasten_stream_bytes_total', (labels) => labels.op + ' ' + labels.direction));
    const ratio = (op, small, large) => {
      const [few, many] = [of.get(op + ' ' + small), of.get(op + ' ' + large)];
      if (!few || !many) return [];
      const column = many.map((plain, i) => plain > 0 ? few[i] / plain : null);
      return [[op, column]];
    };
    return [...ratio('deflate', 'out', 'in'), ...ratio('inflate', 'in', 'out')];
  }

  /** Draws charts that have something to show; one whose series are the same as before keeps its place and its cursor. */
  function drawAll() {
    const at = times();
    if (!at.length) return;
    if (!time.window()) time.setExtent(at[0], last(at));
    const found = CHARTS.map((one) => ({ ...one, data: one.columns() })).filter((one) => one.data.length);
    const shape = JSON.stringify(found.map((one) => [one.title, one.data.map(([name]) => name)]));
    if (shape !== drawAll.shape) {
      charts.forEach((one) => remove(one.chart));
      charts = found.map((one) => ({ title: one.title, chart: chart(one) }));
      drawAll.shape = shape;
    }
    for (const one of charts) {
      const { data } = found.find((other) => other.title === one.title);
      one.chart.plot.setData([at, ...data.map(([, column]) => column)], !time.window());
    }
    place('over-time').hidden = !charts.length;
  }

  function chart({ title, unit, columns }) {
    const figure = document.createElement('figure');
    figure.className = 'chart';
    figure.tabIndex = 0;
    figure.setAttribute('role', 'group');
    figure.setAttribute('aria-label', title);
    const head = document.createElement('figcaption');
    head.textContent = title;
    figure.append(head);
    place('charts').append(figure);
    listenToKeys(figure);
    // Asked again when colours or the width change, so it looks up what there is then.
    return add(figure, (c) => {
      const now = columns();
      const series = now.map(([label], at) => ({
        label, colour: c.curves[at % c.curves.length], stroke: c.curves[at % c.curves.length], width: 2,
        fill: now.length === 1 ? faint(c.curves[0], 0.12) : undefined,
        points: { show: history.length < 4, size: 5 }, value: (_, value) => unit(value),
      }));
      return { data: [times(), ...now.map(([, column]) => column)], options: {
        timed: true, height: 210,
        scales: { y: { range: fromZero } },
        axes: [timeAxis, { values: (_, splits) => splits.map(unit), size: 84, ...(unit === bytes && { incrs: POWERS }) }],
        series: [timeSeries, ...series],
      } };
    });
  }

  // Tables, tiles, warnings

  const text = (tag, content, kind) => {
    const element = document.createElement(tag);
    element.textContent = content;
    if (kind) element.className = kind;
    return element;
  };

  /** Rows of cells: a text, or an element. The first `names` of a row are words, the rest numbers. */
  function table(id, heads, rows, names, empty) {
    const head = document.createElement('thead');
    const line = document.createElement('tr');
    heads.forEach((name, at) => {
      const cell = text('th', name, at < names ? 'case' : '');
      cell.scope = 'col';
      line.append(cell);
    });
    head.append(line);
    const body = document.createElement('tbody');
    for (const row of rows) {
      const line = document.createElement('tr');
      row.forEach((content, at) => {
        const cell = text('td', '', at < names ? 'case' : '');
        cell.append(content);
        line.append(cell);
      });
      body.append(line);
    }
    if (!rows.length) {
      const cell = text('td', empty, 'words');
      cell.colSpan = heads.length;
      const line = document.createElement('tr');
      line.append(cell);
      body.append(line);
    }
    place(id).replaceChildren(head, body);
  }

  const TONES = { closed: 'good', up: 'good', open: 'bad', down: 'bad', 'half-open': 'notable', disabled: 'unknown' };
  // A closed breaker sounds like an engine that is off.
  const WORDS = { closed: 'in service', open: 'resting', 'half-open': 'on trial' };
  const chip = (word) => text('span', WORDS[word] || word, 'chip ' + (TONES[word] || 'unknown'));
  const length = (s) => s == null ? '–' : s < 1 ? 'a moment' : format.clock(Math.round(s));

  function total(status, name, suits) {
    return status.series.filter((one) => one.name === name && suits(one.labels)).reduce((sum, one) => sum + one.value, 0);
  }

  function showPrograms(status) {
    const rows = status.programs.map((one) => {
      const mine = (of) => of.program === one.program && of.accelerator === one.accelerator;
      const started = one.pages.map((page) => page.started_unix_s);
      const since = started.length ? length(status.time_unix_s - Math.min(...started)) : 'ended';
      const notes = [...new Set(one.pages.map((page) => page.note).filter(Boolean))].join('; ');
      return [one.program, one.accelerator, notes || '–', String(one.processes), since,
        total(status, 'hasten_cpu_saved_seconds_total', mine).toFixed(1) + ' s'];
    });
    table('programs', ['program', 'accelerator', 'note', 'processes', 'running', 'CPU saved'], rows, 3,
      'No accelerated process is running. Start a server with `hasten run -- nginx`.');
    const names = ['', ...status.programs.map((one) => one.program + ' · ' + one.accelerator)];
    const select = place('program');
    if (names.join('\n') !== [...select.options].map((one) => one.value).join('\n')) {
      select.replaceChildren(...names.map((name) => new Option(name || 'All', name)));
      if (!names.includes(chosen)) chosen = '';
      select.value = chosen;
    }
  }

  function showEngines(status) {
    const rows = status.programs.flatMap((one) => one.pages.flatMap((page) => page.engines.map((engine) => {
      const mine = (of) => of.program === one.program && of.accelerator === one.accelerator && of.engine === engine.engine;
      const of = engine.of_processes ? engine.processes + ' of ' + engine.of_processes : '–';
      const retry = engine.state === 'open' && engine.probe_s != null ? length(engine.probe_s) : '–';
      return [one.program + ' · ' + one.accelerator, engine.engine, engine.device || engine.class, chip(engine.state),
        engine.fault || '–', of, length(engine.age_s), retry, String(total(status, 'hasten_breaker_opened_total', mine)),
        brief(total(status, 'hasten_ops_total', mine))];
    })));
    table('engines', ['program', 'engine', 'device', 'breaker', 'last fault', 'processes', 'for', 'tried again in', 'opened', 'operations'],
      rows, 5, 'No program that runs has told of its engines.');
  }

  function showDevices(status) {
    const rows = status.devices.map((one) => {
      const busy = one.utilization.map(([part, ratio]) => part + ' ' + format.percent(ratio)).join(', ');
      return [one.device, one.kind + ' ' + one.model, chip(one.up ? 'up' : 'down'), one.driver || 'none', one.state || '–',
        busy || '–', one.numa == null || one.numa < 0 ? '–' : String(one.numa)];
    });
    table('devices', ['device', 'kind', 'service', 'driver', 'state', 'busy', 'NUMA node'], rows, 6,
      'This host has no accelerator device that hasten knows; everything is done in software.');
  }

  function showWarnings(status) {
    const items = status.warnings.map((one) => {
      const item = text('li', '', one.severity);
      const head = document.createElement('p');
      head.append(text('span', one.severity, 'chip'), ' ', text('strong', one.subject), ': ' + one.message + '.');
      item.append(head, text('p', one.fix, 'soft'));
      return item;
    });
    place('warning-list').replaceChildren(...items);
    place('warnings').hidden = !items.length;
  }

  function showTiles(status) {
    const rate = (name, suits = () => true) => sum(rates(name, (of) => suits(of) && 'all'));
    const tiles = [
      ['CPU saved now', history.length > 1 ? cores(rate('hasten_cpu_saved_seconds_total')) : '–', 'an estimate'],
      ['Handshakes', history.length > 1 ? perSecond(rate('hasten_handshakes_total', (of) => of.result === 'finished')) : '–', 'finished'],
      ['Compressed', history.length > 1 ? bytes(rate('hasten_stream_bytes_total', (of) => of.op === 'deflate' && of.direction === 'in')) : '–', 'plain bytes'],
      ['Processes', String(total(status, 'hasten_processes', isShown)), 'accelerated'],
    ];
    place('tiles').replaceChildren(...tiles.map(([name, value, note]) => {
      const tile = text('div', '', 'tile');
      tile.append(text('p', name, 'soft'), text('b', value), text('p', note, 'soft'));
      return tile;
    }));
  }

  function showHead(status) {
    const gravest = status.warnings.length ? status.warnings[0].severity : null;
    const running = status.programs.filter((one) => one.processes > 0).length;
    const [tone, headline] = gravest === 'critical' ? ['bad', 'Something is broken']
      : gravest === 'warning' ? ['notable', 'CPU is being lost']
        : !running ? ['unknown', 'Nothing is accelerated'] : ['good', 'All is well'];
    place('header').className = tone;
    place('headline').textContent = headline;
    place('version').textContent = status.version;
    place('about').textContent = 'As of ' + clock(status.time_unix_s) + (isPaused ? ', paused' : '') + '.';
    document.title = headline + ' – hasten export';
  }

  function show(status) {
    remember(status);
    if (isPaused) return;
    showHead(status);
    showPrograms(status);
    showTiles(status);
    showWarnings(status);
    showEngines(status);
    showDevices(status);
    drawAll();
  }

  // The loop, and what people can do

  async function ask() {
    const abort = new AbortController();
    const patience = setTimeout(() => abort.abort(), PATIENCE_MS);
    try {
      const answer = await fetch('api/status', { signal: abort.signal, cache: 'no-store' });
      if (!answer.ok) throw new Error(await answer.text());
      show(await answer.json());
    } catch (error) {
      place('header').className = 'bad';
      place('headline').textContent = 'The exporter does not answer';
      place('about').textContent = (history.length ? 'Last seen at ' + clock(history[history.length - 1].at) + '. ' : '') + error.message;
    } finally {
      clearTimeout(patience);
      setTimeout(ask, PERIOD_MS);
    }
  }

  const ACTIONS = { 'zoom-in': () => time.zoom(0.5), 'zoom-out': () => time.zoom(2), all: () => time.show(null) };
  document.querySelectorAll('[data-do]').forEach((button) => button.addEventListener('click', ACTIONS[button.dataset.do]));
  time.onChange((range) => { place('window').textContent = range ? 'From ' + clock(range[0]) + ' to ' + clock(range[1]) + '.' : ''; });
  place('program').addEventListener('change', (event) => { chosen = event.target.value; drawAll.shape = ''; drawAll(); });
  place('pause').addEventListener('click', (event) => {
    isPaused = !isPaused;
    event.target.setAttribute('aria-pressed', String(isPaused));
    event.target.textContent = isPaused ? 'Go on' : 'Pause';
    place('about').textContent += isPaused ? ' Paused.' : '';
  });
  fetch('api/history').then((answer) => answer.json()).then(recall).catch(() => { /* Then it begins now. */ }).finally(ask);
})();
