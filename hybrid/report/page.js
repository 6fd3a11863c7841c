(function () {
  "use strict";
  const all = (query, root) => Array.from((root || document).querySelectorAll(query));

  // Labels: shown only where they fit, shortened where they may be.
  function fit(root, width) {
    for (const plot of all("svg.plot", root)) {
      const pixels = width || plot.getBoundingClientRect().width;
      if (!pixels) continue;
      for (const label of all("text.fit", plot)) {
        const room = pixels * label.dataset.w / 100 - 5 - Math.abs(label.getAttribute("dx") || 0);
        const full = label.dataset.full;
        if (full) label.textContent = full;
        const length = label.getComputedTextLength();
        if (full && length > room) {
          label.textContent = full.slice(0, Math.max(0, Math.floor(full.length * room / length) - 2)) + "\u2026";
        }
        label.classList.toggle("no", full ? room < 40 : length > room);
      }
    }
  }

  // Sources: in every group one panel open and its button pressed, its stretch marked in the whole-job picture.
  // A group that has no panel of the chosen source keeps the one it shows.
  const groups = Array.from(new Set(all(".panel").map(panel => panel.parentNode)));
  function show(group, source) {
    const panel = all(".panel", group).find(p => p.dataset.source === source);
    if (!panel) return;
    all(".panel", group).forEach(p => p.classList.toggle("on", p === panel));
    all(".tabs a", group).forEach(tab => {
      const on = tab.dataset.source === source;
      tab.setAttribute("aria-selected", on);
      tab.tabIndex = on ? 0 : -1;
    });
    fit(panel);
  }
  function choose(source) {
    groups.forEach(group => show(group, source));
    all(".pick").forEach(g => g.classList.toggle("on", g.dataset.source === source));
  }
  all(".tabs").map(list => all("a", list)).forEach(tabs => tabs.forEach((tab, i) => {
    tab.addEventListener("click", event => { event.preventDefault(); choose(tab.dataset.source); });
    tab.addEventListener("keydown", event => {
      const last = tabs.length - 1;
      const keys = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: last };
      const to = keys[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      choose(next.dataset.source);
      next.focus();
    });
  }));
  all(".m[data-source]").forEach(g => g.addEventListener("click", () => choose(g.dataset.source)));

  // Zoom: the picture becomes wider than its box, and its axis gets finer ticks.
  function tick(s) {
    const f = v => String(+v.toPrecision(6));
    return s === 0 ? "0 s" : s < 9.995e-4 ? f(s * 1e6) + " \u00b5s" : s < 0.9995 ? f(s * 1e3) + " ms" : f(s) + " s";
  }
  function drawAxis(plot, zoom) {
    const axis = plot.querySelector(".axis");
    const span = +plot.dataset.span;
    axis.first = axis.first || axis.innerHTML;
    if (zoom === 1) { axis.innerHTML = axis.first; return; }
    const rough = span / 8 / zoom;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = power * [1, 2, 5, 10].find(k => rough <= k * power * 1.000001);
    axis.textContent = "";
    for (let i = 0; i * step <= span; i++) {
      const x = 100 * i * step / span + "%";
      const line = document.createElementNS(plot.namespaceURI, "line");
      const height = plot.getAttribute("height");
      for (const [key, value] of [["x1", x], ["x2", x], ["y1", 18], ["y2", height], ["class", "grid"]])
        line.setAttribute(key, value);
      const text = document.createElementNS(plot.namespaceURI, "text");
      for (const [key, value] of [["x", x], ["y", 12], ["class", "tick"]]) text.setAttribute(key, value);
      if (i === 0) text.setAttribute("text-anchor", "start");
      text.textContent = tick(i * step);
      axis.append(line, text);
    }
  }
  for (const group of all(".zoom")) {
    const plot = document.getElementById(group.dataset.for).querySelector("svg.plot");
    const box = plot.parentNode;
    const buttons = all("button", group);
    let now = 1;
    buttons.forEach(button => button.addEventListener("click", () => {
      const next = +button.dataset.zoom;
      // Keep what is at the left edge when zooming in from the full view, else what is in the middle.
      const middle = now === 1 ? 0 : box.clientWidth / 2;
      const place = (box.scrollLeft + middle) / box.scrollWidth;
      plot.style.width = next * 100 + "%";
      box.scrollLeft = place * box.scrollWidth - middle;
      now = next;
      drawAxis(plot, next);
      fit(box);
      buttons.forEach(b => b.setAttribute("aria-pressed", b === button));
    }));
  }

  // Tooltips: the drawings' own titles, shown at once and wrapped.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  for (const mark of all("svg.plot .m")) {
    const title = mark.querySelector("title");
    if (title) { mark.dataset.tip = title.textContent; title.remove(); }
  }
  document.addEventListener("pointermove", event => {
    const mark = event.target.closest && event.target.closest("[data-tip]");
    tip.className = mark ? "on" : "";
    if (!mark) return;
    if (tip.textContent !== mark.dataset.tip) tip.textContent = mark.dataset.tip;
    let x = event.clientX + 14, y = event.clientY + 16;
    if (x + tip.offsetWidth > innerWidth - 8) x = Math.max(8, event.clientX - tip.offsetWidth - 10);
    if (y + tip.offsetHeight > innerHeight - 8) y = Math.max(8, event.clientY - tip.offsetHeight - 12);
    tip.style.transform = `translate(${x}px, ${y}px)`;
  });

  groups.forEach(group => show(group, group.querySelector(".panel.on").dataset.source));
  const open = document.querySelector("#sources .panel.on");
  if (open) all(".pick").forEach(g => g.classList.toggle("on", g.dataset.source === open.dataset.source));
  fit(document);
  addEventListener("resize", () => fit(document));
  addEventListener("beforeprint", () => fit(document, 600));
  addEventListener("afterprint", () => fit(document));
})();
