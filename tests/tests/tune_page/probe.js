// What a test wants to know of a report of `hasten tune`: its charts by their pixels, and whether it fits.
(() => {
  const isColour = (r, g, b) => Math.max(r, g, b) - Math.min(r, g, b) > 48;
  const charts = [...document.querySelectorAll('figure.chart')].map((figure) => {
    const canvas = figure.querySelector('canvas');
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    let coloured = 0;
    for (let at = 0; at < pixels.length; at += 4) {
      // Axes, grid and labels are grey; data are not.
      if (pixels[at + 3] > 0 && isColour(pixels[at], pixels[at + 1], pixels[at + 2])) coloured++;
    }
    return { of: figure.parentElement.id, name: figure.getAttribute('aria-label'), coloured, width: canvas.clientWidth };
  });
  const root = document.documentElement;
  const wide = [...document.querySelectorAll('body *')].filter((element) =>
    !element.closest('.scroll, pre, .u-wrap, .u-legend') && element.getBoundingClientRect().right > root.clientWidth + 1);
  const heading = document.querySelector('h1');
  return {
    charts, declared: Number(root.dataset.charts), overflow: root.scrollWidth - root.clientWidth,
    wide: wide.slice(0, 5).map((element) => element.tagName + '#' + element.id + '.' + element.className),
    background: getComputedStyle(document.body).backgroundColor,
    heading: heading.textContent, headingTop: heading.getBoundingClientRect().top,
    rows: document.getElementById('trials').tBodies[0].rows.length,
    images: document.images.length, scripts: document.scripts.length, hacked: typeof window.hacked,
  };
})()
