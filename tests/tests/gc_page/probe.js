// What a test wants to know of a page of `hasten gc`: its charts by their pixels, and whether it fits.
(() => {
  const isColour = (r, g, b) => Math.max(r, g, b) - Math.min(r, g, b) > 48;
  const charts = [...document.querySelectorAll('figure.chart')].map((figure) => {
    const canvas = figure.querySelector('canvas');
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    let painted = 0, coloured = 0;
    for (let at = 0; at < pixels.length; at += 4) {
      if (pixels[at + 3] === 0) continue;
      painted++;
      // Axes, grid and labels are grey; data are not.
      if (isColour(pixels[at], pixels[at + 1], pixels[at + 2])) coloured++;
    }
    const labels = [...figure.querySelectorAll('.u-series .u-label')].map((label) => label.textContent);
    return { of: figure.parentElement.id, name: figure.getAttribute('aria-label'), painted, coloured, labels,
      width: canvas.clientWidth, height: canvas.clientHeight };
  });
  const root = document.documentElement;
  const wide = [...document.querySelectorAll('body *')].filter((element) =>
    !element.closest('.scroll, pre, .u-wrap, .u-legend') && element.getBoundingClientRect().right > root.clientWidth + 1);
  return {
    charts, declared: Number(root.dataset.charts), window: document.getElementById('window').textContent,
    overflow: root.scrollWidth - root.clientWidth,
    wide: wide.slice(0, 5).map((element) => element.tagName + '#' + element.id + '.' + element.className),
    background: getComputedStyle(document.body).backgroundColor,
    heading: document.querySelector('h1').textContent,
    tables: document.querySelectorAll('table').length,
    images: document.images.length,
    scripts: document.scripts.length,
    hacked: typeof window.hacked,
  };
})()
