(() => {
  const boxes = [...document.querySelectorAll('#boxes button')];
  const area = document.getElementById('boxes').getBoundingClientRect();
  const places = boxes.map((box) => box.getBoundingClientRect());
  return {
    boxes: boxes.length,
    labels: boxes.map((box) => box.getAttribute('aria-label')),
    covered: places.reduce((sum, place) => sum + place.width * place.height, 0) / (area.width * area.height),
    outside: places.filter((place) => place.left < area.left - 1 || place.right > area.right + 1
      || place.top < area.top - 1 || place.bottom > area.bottom + 1).length,
    crumbs: [...document.querySelectorAll('#crumbs button')].map((button) => button.textContent),
    focused: document.activeElement.getAttribute('aria-label') || document.activeElement.textContent,
    about: document.getElementById('about-box').textContent,
    rows: [...document.querySelectorAll('#histogram tbody tr')].filter((row) => row.offsetParent).length,
    hits: document.getElementById('hits').textContent,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    background: getComputedStyle(document.body).backgroundColor,
    text: document.body.innerText,
    scripts: document.scripts.length,
    images: document.images.length,
    hacked: typeof window.hacked,
  };
})()
