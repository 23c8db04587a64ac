// What the charts of hasten's pages share: colours that follow the scheme, one window of time for all, keys, formats.
// Text goes into the page as text only: names of files and lines of logs are anybody's.
window.hastenCharts = (function () {
  'use strict';

  const charts = [];
  const KEY = uPlot.sync('time');

  /**
   * A chart in `figure`. `make(colours)` answers with uPlot's options and data, or `dataOf(window)` where the data
   * depend on the window of time; it is asked again when colours change.
   */
  function add(figure, make) {
    const chart = { figure, make, plot: null, isTimed: false };
    charts.push(chart);
    draw(chart);
    return chart;
  }

  function draw(chart) {
    const range = chart.plot && chart.isTimed ? time.window() : null;
    if (chart.plot) chart.plot.destroy();
    const { options, data, dataOf } = chart.make(colours());
    chart.dataOf = dataOf;
    const look = dressed(options, chart.figure.clientWidth);
    chart.isTimed = Boolean(options.timed);
    if (chart.isTimed) {
      look.cursor.sync = { key: KEY.key, setSeries: false };
      look.hooks.setSelect = [select];
      look.hooks.ready = [(plot) => plot.over.addEventListener('dblclick', () => time.show(null))];
      look.scales.x = { time: false, range: () => limits(time.window() || time.all()) };
    }
    chart.plot = new uPlot(look, data || dataOf(limits(range || time.all())), chart.figure);
    legendByKeys(chart.plot);
    if (range) chart.plot.setScale('x', { min: range[0], max: range[1] });
  }

  function dressed(options, width) {
    const c = colours();
    const axis = { stroke: c.soft, grid: { stroke: c.line, width: 1 }, ticks: { stroke: c.line, width: 1, size: 4 },
      font: '12px system-ui, sans-serif' };
    return {
      ...options,
      width: Math.max(width, 120),
      height: options.height || (width < 480 ? 200 : 240),
      padding: [8, 8, 0, 0],
      axes: (options.axes || [{}, {}]).map(({ gridFilter, ...one }, at) => ({
        ...axis, size: at === 0 ? 30 : 58, ...one, ...(gridFilter && { grid: { ...axis.grid, filter: gridFilter }, ticks: { show: false } }),
      })),
      scales: { ...options.scales },
      hooks: { ...options.hooks },
      cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 7 }, ...options.cursor },
      legend: { live: true, markers: { width: 0, fill: (plot, at) => plot.series[at].colour || c.soft }, ...options.legend },
    };
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue('--' + name).trim();
    const curves = [];
    for (let at = 0; at < 8; at++) curves.push(of('curve-' + at));
    return { text: of('text'), soft: of('soft'), line: of('line'), track: of('track'), card: of('card'),
      failed: of('failed'), stock: of('stock'), curves };
  }

  /** `#rrggbb` with transparency. */
  function faint(colour, alpha) {
    return colour + Math.round(alpha * 255).toString(16).padStart(2, '0');
  }

  function redraw() {
    charts.forEach(draw);
  }

  // One window of time for all charts that have a time axis.
  const time = (function () {
    let extent = [0, 1];
    let shown = null;
    const listeners = [];
    const show = (range) => {
      shown = range && clamp(range);
      const [min, max] = limits(shown || extent);
      for (const chart of charts.filter((one) => one.isTimed)) {
        if (chart.dataOf) chart.plot.setData(chart.dataOf([min, max]), false);
        chart.plot.setScale('x', { min, max });
      }
      listeners.forEach((listener) => listener(shown));
    };
    const clamp = ([from, to]) => {
      const least = (extent[1] - extent[0]) / 1e4;
      const length = Math.min(Math.max(to - from, least), extent[1] - extent[0]);
      const start = Math.min(Math.max(from, extent[0]), extent[1] - length);
      return length >= extent[1] - extent[0] ? null : [start, start + length];
    };
    return {
      show,
      all: () => extent,
      window: () => shown,
      onChange: (listener) => listeners.push(listener),
      setExtent: (from, to) => { extent = limits([from, to]); shown = null; },
      /** Around the middle: below 1 nearer, above 1 farther. */
      zoom: (factor) => {
        const [from, to] = shown || extent;
        const middle = (from + to) / 2, half = (to - from) / 2 * factor;
        show([middle - half, middle + half]);
      },
      /** By a part of what is shown. */
      pan: (part) => {
        if (!shown) return;
        const by = (shown[1] - shown[0]) * part;
        show([shown[0] + by, shown[1] + by]);
      },
    };
  })();

  function limits([from, to]) {
    return to > from ? [from, to] : [from - 0.5, from + 0.5];
  }

  function select(plot) {
    if (plot.select.width < 4) return;
    const from = plot.posToVal(plot.select.left, 'x');
    const to = plot.posToVal(plot.select.left + plot.select.width, 'x');
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    time.show([from, to]);
  }

  const KEYS = {
    ArrowLeft: () => time.pan(-0.25), ArrowRight: () => time.pan(0.25),
    '+': () => time.zoom(0.5), '=': () => time.zoom(0.5), '-': () => time.zoom(2),
    0: () => time.show(null), Escape: () => time.show(null),
  };

  /** Arrows, plus, minus and 0 do with `element` in focus what dragging does. */
  function listenToKeys(element) {
    element.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
      KEYS[event.key]();
      event.preventDefault();
    });
  }

  // uPlot's legend shows and hides a series by a click; so do Enter and Space.
  function legendByKeys(plot) {
    plot.root.querySelectorAll('.u-series').forEach((row, at) => {
      const head = row.querySelector('th');
      if (at === 0 || !head) return;
      head.tabIndex = 0;
      head.setAttribute('role', 'button');
      head.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        head.click();
        event.preventDefault();
      });
    });
  }

  let width = 0;
  window.addEventListener('resize', () => {
    // Phones resize when their bars come and go.
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    requestAnimationFrame(redraw);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  const paper = (isPaper) => () => {
    document.documentElement.classList.toggle('paper', isPaper);
    redraw();
  };
  window.addEventListener('beforeprint', paper(true));
  window.addEventListener('afterprint', paper(false));

  const format = {
    /** Milliseconds as a length. */
    pause: (ms) => ms == null ? '–' : ms < 9.995 ? ms.toFixed(2) + ' ms' : ms < 99.95 ? ms.toFixed(1) + ' ms'
      : ms < 999.5 ? ms.toFixed(0) + ' ms' : (ms / 1e3).toFixed(ms < 9995 ? 2 : 1) + ' s',
    /** Seconds as a place in time. */
    clock: (s) => {
      if (s == null) return '–';
      if (s < 60) return (Math.round(s * 1e3) / 1e3) + ' s';
      const tenths = Math.round(s * 10), hours = Math.floor(tenths / 36000), minutes = Math.floor(tenths / 600) % 60;
      const seconds = tenths % 600 / 10;
      return (hours ? hours + 'h ' : '') + minutes + 'm' + (seconds ? ' ' + seconds + 's' : '');
    },
    /** Bytes in powers of two. */
    bytes: (bytes) => {
      if (bytes == null) return '–';
      const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
      let unit = 0;
      while (Math.abs(bytes) >= 1023.5 && unit < 4) { bytes /= 1024; unit++; }
      const isWhole = Math.abs(bytes - Math.round(bytes)) < 0.005;
      return bytes.toFixed(unit > 0 && Math.abs(bytes) < 99.95 && !isWhole ? 1 : 0) + ' ' + units[unit];
    },
    percent: (share) => share == null ? '–' : (share * 100).toFixed(share < 0.0995 ? 1 : 0) + ' %',
  };

  return { add, faint, format, listenToKeys, redraw, time, remove };

  function remove(chart) {
    chart.plot.destroy();
    chart.figure.remove();
    charts.splice(charts.indexOf(chart), 1);
  }
})();
