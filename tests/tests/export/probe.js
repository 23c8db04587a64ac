// What of the live page is to be seen.
(() => {
  const charts = [...document.querySelectorAll('#charts figure')].map((figure) => {
    const canvas = figure.querySelector('canvas');
    // Reading the page's own canvas again and again would make Chromium complain of the page.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    let coloured = 0;
    for (let i = 0; i < data.length; i += 4) {
      const [r, g, b, a] = [data[i], data[i + 1], data[i + 2], data[i + 3]];
      // Text, axes and the grid are grey.
      if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) coloured++;
    }
    return { title: figure.querySelector('figcaption').textContent, coloured, width: canvas.getBoundingClientRect().width,
      labels: [...figure.querySelectorAll('.u-series th')].map((one) => one.textContent).slice(1) };
  });
  const cells = (id) => [...document.querySelectorAll('#' + id + ' tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent));
  return {
    charts,
    headline: document.getElementById('headline').textContent,
    about: document.getElementById('about').textContent,
    tiles: [...document.querySelectorAll('.tile')].map((tile) => tile.textContent),
    programs: cells('programs'), engines: cells('engines'), devices: cells('devices'),
    warnings: [...document.querySelectorAll('#warning-list li')].map((item) => item.textContent),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    background: getComputedStyle(document.body).backgroundColor,
    hacked: typeof window.hacked, images: document.images.length,
  };
})()
