"use strict";
// The page: everything it knows comes from /v1 and the event stream; text is set as text, never as markup.
const $ = (id) => document.getElementById(id);
const graphs = new Map(), jobs = new Map(), traces = new Map();
let algorithms = [], chosen = null, shownCore = null;

const store = { get: () => { try { return sessionStorage.getItem("token"); } catch { return null; } },
                set: (t) => { try { sessionStorage.setItem("token", t); } catch { /* private mode */ } } };

async function ask(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  const token = store.get();
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) { $("sign-in").hidden = false; throw new Error("a token is needed"); }
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Error((problem.detail || answer.statusText) + (problem.fix ? ". Fix: " + problem.fix : ""));
  }
  return answer;
}
const json = async (path, options) => (await ask(path, options)).json();
const post = (path, body) => json(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value || "";
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}
function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
const count = (n) => n == null ? "" : Math.round(n).toLocaleString("en");
const time = (s) => s == null ? "" : s >= 1 ? s.toFixed(2) + " s" : s >= 1e-3 ? (s * 1e3).toFixed(2) + " ms" : Math.round(s * 1e6) + " us";
const short = (v) => typeof v === "number" && !Number.isInteger(v) ? Number(v.toPrecision(4)).toString() : typeof v === "number" ? v.toLocaleString("en") : String(v);
const plain = (v) => Array.isArray(v) ? (v.length > 4 ? v.length + " vertices" : v.join(", ")) : String(v);

// ------------------------------------------------------------------------------------------- lists
function drawGraphs() {
  const list = $("graphs"), select = $("job-form").elements.graph, before = select.value;
  list.replaceChildren(...[...graphs.values()].map((g) => el("li", {},
    el("span", { class: "name" }, g.id), el("span", { class: g.state }, g.state),
    g.state === "ready" ? el("button", { class: "quiet", type: "button", onclick: () => showCore(g.id) }, "Core") : null,
    el("button", { class: "quiet", type: "button", "aria-label": "Unload " + g.id, onclick: () => unload(g.id) }, "Unload"),
    el("span", { class: "about" }, g.problem ? g.problem.detail : g.vertices == null ? "" :
      `${count(g.vertices)} vertices (${count(g.isolated)} isolated), ${count(g.edges)} ${g.directed ? "directed" : "undirected"} edges, opened in ${time(g.seconds)}`))));
  const ready = [...graphs.values()].filter((g) => g.state === "ready");
  select.replaceChildren(...ready.map((g) => el("option", {}, g.id)));
  if (ready.some((g) => g.id === before)) select.value = before;
  if (!shownCore && ready.length) showCore(ready[0].id);
}

function drawJobs() {
  const all = [...jobs.values()].sort((a, b) => b.created - a.created).slice(0, 50);
  $("no-jobs").hidden = all.length > 0;
  $("jobs").tBodies[0].replaceChildren(...all.map((j) => {
    const spent = j.started && j.finished ? j.finished - j.started : null;
    const progress = j.state === "running" ? `${j.phase}${j.progress.total > 1 ? ` ${j.progress.done} of ${j.progress.total}` : ""}` : j.state;
    const told = j.summary ? j.summary.headline : j.problem ? j.problem.detail : "";
    const over = ["done", "failed", "cancelled"].includes(j.state);
    return el("tr", {},
      el("td", {}, el("button", { class: "quiet", type: "button", onclick: () => showJob(j.id, true) }, j.algorithm)),
      el("td", {}, j.graph), el("td", { class: j.state }, progress), el("td", {}, told), el("td", { class: "number" }, time(spent)),
      el("td", {}, over ? null : el("button", { class: "quiet", type: "button", onclick: () => post(`/v1/jobs/${j.id}/cancel`, {}).catch(refuse) }, "Cancel")));
  }));
}

// ------------------------------------------------------------------------------------------ one job
async function showJob(id, focus) {
  chosen = id;
  if (!traces.has(id)) traces.set(id, []);
  if (!jobs.get(id) || jobs.get(id).state !== "running" || !traces.get(id).length) {
    const kept = await json(`/v1/jobs/${id}/trace`).catch(() => ({ events: [] }));
    if (kept.events.length >= traces.get(id).length) traces.set(id, kept.events);
  }
  drawJob();
  if (focus) $("job-title").focus();
  drawRows();
}

function drawJob() {
  const job = jobs.get(chosen);
  $("job").hidden = !job;
  if (!job) return;
  const events = traces.get(chosen) || [], s = job.summary;
  $("job-title").textContent = `${s ? s.title : job.algorithm} on ${job.graph}`;
  $("job-headline").textContent = s ? s.headline : job.problem ? job.problem.detail + ". Fix: " + job.problem.fix : job.phase;
  const facts = [["State", job.state], ["Progress", `${job.progress.done} of ${job.progress.total || 1}`]];
  if (job.source != null) facts.push(["Source", plain(job.source)]);
  if (s) {
    facts.push(["Certified", s.certified ? `yes (${s.check})` : "no"], ["Run", time(s.seconds.run)], ["Certify", time(s.seconds.certify)]);
    facts.push(["Gain over CPU-only", s.verdict ? s.verdict.text : (s.npu && s.npu.not_compared) || "none: the CPU worked alone"]);
    if (s.npu) facts.push(["NPU worker", s.npu.rounds_sent ? `${s.npu.mode} on ${s.npu.device}: ${s.npu.outcome}, ${count(s.npu.values_adopted)} of ${count(s.npu.values_received)} values were news` : s.npu.outcome]);
    for (const [name, value] of Object.entries(s.facts)) if (value != null && typeof value !== "object") facts.push([name.replaceAll("_", " "), short(value)]);
  }
  for (const [name, value] of Object.entries(job.options)) facts.push([name, plain(value)]);
  $("job-facts").replaceChildren(...facts.map(([a, b]) => el("div", { class: b.length > 40 ? "wide" : false }, el("dt", {}, a), el("dd", {}, b))));
  drawTimeline(events);
  drawFrontier(events);
}

let WIDE = 720;
const measure = () => { WIDE = Math.max(300, Math.min(720, $("main").clientWidth - 34)); };
measure();
addEventListener("resize", () => { measure(); redraw(); if (shownCore) showCore(shownCore); });
const kindOf = (e) => e.direction === "push" || e.direction === "pull" ? e.direction : ["round", "merge", "wait"].includes(e.kind) ? e.kind : e.kind === "take_back" || e.kind === "repair" ? "lost" : "other";
const KEY = [["push", "push"], ["pull", "pull"], ["round", "NPU round"], ["merge", "merge"], ["wait", "wait for the NPU"], ["lost", "core taken back, repair"], ["other", "other (certify, write, run)"]];
function withoutComparison(events) {
  const gap = events.find((e) => e.kind === "compare"), move = (t) => gap && t >= gap.t1 ? t - (gap.t1 - gap.t0) : t;
  return events.filter((e) => e !== gap).map((e) => ({ ...e, t0: move(e.t0), t1: move(e.t1) }));
}
function drawTimeline(all) {
  const events = withoutComparison(all), lanes = [...new Set(events.map((e) => e.actor))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  if (!lanes.length) { $("timeline").replaceChildren(el("p", { class: "key" }, "Nothing was recorded yet.")); return; }
  const work = events.filter((e) => e.kind !== "compile");
  const from = Math.min(...(work.length ? work : events).map((e) => e.t0)), to = Math.max(...events.map((e) => e.t1), from + 1e-6);
  const left = 96, row = 34, height = lanes.length * row + 30, x = (t) => left + Math.max(0, (t - from) / (to - from)) * (WIDE - left - 8);
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${height}`, role: "img", "aria-label": `Time line of ${time(to - from)}` });
  lanes.forEach((lane, i) => {
    picture.append(svg("text", { x: 8, y: i * row + 24 }, lane), svg("line", { class: "grid", x1: left, x2: WIDE - 8, y1: i * row + row + 2, y2: i * row + row + 2 }));
    for (const e of events.filter((e) => e.actor === lane && e.t1 >= from).slice(-1500).sort((a, b) => (b.t1 - b.t0) - (a.t1 - a.t0))) {
      const kind = kindOf(e), box = svg("rect", { class: kind, x: x(e.t0), y: i * row + 8, width: Math.max(kind === "merge" ? 2 : 1, x(e.t1) - x(e.t0) - .5), height: 22, rx: 2 });
      const more = [e.level >= 0 ? "level " + e.level : "", e.sources > 1 ? e.sources + " sources" : "", e.values_sent ? count(e.values_sent) + " values sent" : "", e.adopted != null ? count(e.adopted) + " values adopted" : "", e.outcome || e.why || e.findings || "", e.simulated ? e.simulated + ", no real NPU" : ""].filter(Boolean).join(", ");
      box.append(svg("title", {}, `${e.kind}${e.direction ? " " + e.direction : ""}${more ? " (" + more + ")" : ""}: ${time(e.t1 - e.t0)}`));
      picture.append(box);
    }
  });
  picture.append(svg("text", { x: left, y: height - 8 }, "0"), svg("text", { x: WIDE - 8, y: height - 8, "text-anchor": "end" }, time(to - from)));
  const seen = new Set(events.map(kindOf)), key = el("p", { class: "key" }, ...KEY.filter(([kind]) => seen.has(kind)).flatMap(([kind, text]) => [el("i", { class: kind }), text]));
  $("timeline").replaceChildren(picture, key);
}

function drawFrontier(events) {
  const steps = events.filter((e) => e.kind === "step" && e.level >= 0);
  const first = steps.length ? steps[0].source : null, of = steps.filter((e) => e.source === first), again = of.findIndex((e, i) => i && e.level <= of[i - 1].level && first == null);
  const own = of.slice(0, again > 0 ? Math.min(again, 64) : 64);
  if (!own.length) {
    $("frontier").replaceChildren(el("p", { class: "key" }, "Only a breadth-first search from a few sources has levels to show."));
    $("levels").replaceChildren();
    return;
  }
  const most = Math.max(...own.map((e) => Math.max(e.frontier, 1))), height = 200, bottom = 165;
  const wide = Math.min(80, (WIDE - 20) / own.length);
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${height}`, role: "img", "aria-label": "Vertices in the frontier of each level, on a logarithmic scale" });
  own.forEach((e, i) => {
    const tall = Math.max(2, Math.log10(e.frontier + 1) / Math.log10(most + 1) * 135), x = 10 + i * wide;
    picture.append(svg("rect", { class: e.direction === "pull" ? "pull" : "push", x: x + 2, y: bottom - tall, width: Math.max(2, wide - 6), height: tall, rx: 2 }));
    if (wide > 30) picture.append(svg("text", { x: x + wide / 2, y: bottom - tall - 5, "text-anchor": "middle" }, e.frontier >= 1e4 ? Math.round(e.frontier / 1e3) + "k" : e.frontier));
    if (wide > 14) picture.append(svg("text", { x: x + wide / 2, y: bottom + 20, "text-anchor": "middle" }, e.level));
  });
  $("frontier").replaceChildren(picture, el("p", { class: "key" }, first == null ? "All sources of the first pass: vertices per level." : `Source ${first}: vertices per level.`, el("i", { class: "push" }), "push", el("i", { class: "pull" }), "pull"));
  $("levels").replaceChildren(table(["Level", "Direction", "Frontier", "Edges looked at", "Time"], own.map((e) => [e.level, e.direction, count(e.frontier), count(e.edges), time(e.t1 - e.t0)])));
}

const table = (heads, rows) => el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((h, i) => el("th", { scope: "col", class: i ? "number" : "" }, h)))),
  el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((c, i) => el("td", { class: i ? "number" : "" }, String(c ?? "")))))));

async function drawRows() {
  const id = chosen, job = jobs.get(id);
  $("rows").replaceChildren();
  $("downloads").replaceChildren();
  if (!job || job.state !== "done") return;
  const page = await json(`/v1/jobs/${id}/result?limit=20`).catch(() => null);
  if (!page || chosen !== id) return;
  const names = Object.keys(page.columns);
  $("rows").replaceChildren(table(["Vertex", ...names], page.vertex.map((v, i) => [v, ...names.map((n) => page.columns[n][i] ?? "none")])));
  const fetchFile = (path, name) => el("button", { class: "quiet", type: "button", onclick: () => save(path, name) }, name);
  $("downloads").replaceChildren(`The first ${page.vertex.length} of ${count(page.total)} rows. All of it: `,
    ...["vertex", ...names].map((n) => fetchFile(`/v1/jobs/${id}/result/${n}.npy`, n + ".npy")), fetchFile(`/v1/jobs/${id}/result.ldbc`, "ldbc.txt"));
}

async function save(path, name) {
  const content = await (await ask(path)).blob().catch(refuse);
  const link = el("a", { href: URL.createObjectURL(content), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  URL.revokeObjectURL(link.href);
}

// ------------------------------------------------------------------------------------- the dense core
async function showCore(id) {
  shownCore = id;
  const graph = await json(`/v1/graphs/${id}`).catch(() => null);
  if (!graph || !graph.core || !graph.core.points || !graph.core.points.length) { $("core").hidden = true; return; }
  const core = graph.core.chosen, points = graph.core.points.filter((p) => p.size > 1);
  $("core").hidden = false;
  $("core-text").textContent = `${id}: of the ${count(core.size)} vertices of degree ${count(core.threshold)} or more, ${(100 * core.density).toFixed(1)} % of all pairs are joined, by ${count(core.edges)} edges (${core.rule}).`;
  const height = 220, left = 46, bottom = 180, last = Math.log2(points[points.length - 1].size) || 1;
  const x = (k) => left + (Math.log2(k) - 1) / Math.max(1, last - 1) * (WIDE - left - 26), y = (share) => bottom - share * 160;
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${height}`, role: "img", "aria-label": "Share of edges inside a core, and its density, over its size" });
  for (const share of [0, .25, .5, .75, 1]) picture.append(svg("line", { class: "grid", x1: left, x2: WIDE - 14, y1: y(share), y2: y(share) }), svg("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, Math.round(share * 100) + " %"));
  const curve = (name, kind) => svg("polyline", { class: "curve " + kind, points: points.map((p) => `${x(p.size)},${y(Math.min(1, p[name]))}`).join(" ") });
  picture.append(curve("inside", ""), curve("density", "second"));
  if (core.size > 0) picture.append(svg("line", { class: "mark", x1: x(core.size), x2: x(core.size), y1: y(1), y2: bottom }));
  for (let p = 1; p <= last; p += WIDE < 500 ? 3 : 2) picture.append(svg("text", { x: x(2 ** p), y: bottom + 20, "text-anchor": "middle" }, count(2 ** p)));
  $("core-picture").replaceChildren(picture, el("p", { class: "key" }, el("i", { class: "push" }), "edges inside the core, of all", el("i", { class: "pull" }), "its density; dashed: the chosen size"));
}

// --------------------------------------------------------------------------------------------- forms
const refuse = (error) => { $("refused").textContent = error.message; };
async function unload(id) { try { await ask(`/v1/graphs/${id}`, { method: "DELETE" }); graphs.delete(id); if (shownCore === id) { shownCore = null; $("core").hidden = true; } drawGraphs(); } catch (error) { refuse(error); } }

function drawOptions() {
  const one = algorithms.find((a) => a.name === $("job-form").elements.algorithm.value);
  $("source-label").hidden = !one || !one.sourced;
  $("options").replaceChildren(...Object.entries(one ? one.options : {}).map(([name, value]) => {
    const choices = typeof value === "boolean" ? ["false", "true"] : name === "npu.mode" ? ["off", "auto", "race", "share"] : null;
    const input = choices ? el("select", { name }, ...choices.map((one) => el("option", {}, one))) : el("input", { name, value: value ?? "", placeholder: "default" });
    if (choices) input.value = String(value);
    return el("label", {}, name, input);
  }));
}
const read = (text) => text === "true" ? true : text === "false" ? false : /^-?\d+$/.test(text) ? Number(text) : /^-?[\d.]+(e-?\d+)?$/i.test(text) ? Number(text) : text;

$("job-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("refused").textContent = "";
  const form = event.target.elements, one = algorithms.find((a) => a.name === form.algorithm.value);
  const body = { graph: form.graph.value, algorithm: form.algorithm.value, options: {} };
  if (one.sourced) { const text = form.source.value.trim(); body.source = text.includes(",") ? text.split(",").map((v) => Number(v)) : read(text); }
  for (const name of Object.keys(one.options)) { const text = form[name].value.trim(); if (text !== "" && read(text) !== one.options[name]) body.options[name] = read(text); }
  try { const job = await post("/v1/jobs", body); jobs.set(job.id, jobs.get(job.id) || job); drawJobs(); await showJob(job.id, false); } catch (error) { refuse(error); }
});
$("job-form").elements.algorithm.addEventListener("change", drawOptions);
$("graph-form").elements.kind.addEventListener("change", (event) => {
  const kind = event.target.value;
  for (const node of document.querySelectorAll(".of-generator")) node.hidden = kind === "grid" || kind === "path";
  for (const node of document.querySelectorAll(".of-grid")) node.hidden = kind !== "grid";
  document.querySelector(".of-path").hidden = kind !== "path";
  if (kind === "path") json("/v1/files").then((told) => $("files").replaceChildren(...told.files.map((f) => el("option", { value: f })))).catch(refuse);
});
$("graph-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("refused").textContent = "";
  const form = event.target.elements, kind = form.kind.value, number = (name) => Number(form[name].value);
  const body = kind === "path" ? { path: form.path.value } : { generator: kind === "grid" ? { kind, rows: number("rows"), cols: number("cols") } : { kind, scale: number("scale"), edge_factor: number("edge_factor") } };
  try { const graph = await post("/v1/graphs", body); graphs.set(graph.id, graphs.get(graph.id) || graph); drawGraphs(); } catch (error) { refuse(error); }
});
$("token-form").addEventListener("submit", (event) => { event.preventDefault(); store.set($("token").value); $("token").value = ""; $("sign-in").hidden = true; begin(); });

// -------------------------------------------------------------------------------------------- events
let due = false;
function redraw() { if (due) return; due = true; requestAnimationFrame(() => { due = false; drawJobs(); drawJob(); }); }
function take(kind, data) {
  if (kind === "worker") { drawMachine(); return; }
  if (kind === "graph") { if (data.state === "unloaded") graphs.delete(data.id); else graphs.set(data.id, data); drawGraphs(); return; }
  if (kind === "job") {
    const before = jobs.get(data.id);
    jobs.set(data.id, data);
    if (data.id === chosen && data.state === "done" && (!before || before.state !== "done")) drawRows();
  } else if (kind === "trace") {
    const { job, ...event } = data, known = traces.get(job) || [];
    if (!known.slice(-200).some((e) => e.t0 === event.t0 && e.actor === event.actor && e.kind === event.kind)) known.push(event);
    traces.set(job, known.slice(-5000));
    if (job !== chosen) return;
  }
  redraw();
}
async function listen() {
  const reader = (await ask("/v1/events")).body.getReader(), decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const lines = Object.fromEntries(part.split("\n").map((line) => { const at = line.indexOf(": "); return [line.slice(0, at), line.slice(at + 2)]; }));
      if (lines.data) take(lines.event, JSON.parse(lines.data));
    }
  }
}
function drawWorker(w) {
  if (!w) return el("li", {}, el("span", { class: "name" }, "NPU worker"), el("span", { class: "about" }, "none: the CPU works alone"));
  const device = w.simulated || (w.device === "none" ? "no device yet" : w.device === "CPU" ? "MindSpore on the CPU, no NPU" : w.device);
  const about = [w.why, w.graph && w.core_size ? `core of ${count(w.core_size)} vertices` : "", `${count(w.rounds)} rounds in ${count(w.searches)} jobs and batches`,
    w.restarts ? `started again ${count(w.restarts)} times, the last death: ${w.last_death}` : "", w.refused ? `${count(w.refused)} times not believed` : ""].filter(Boolean).join("; ");
  return el("li", {}, el("span", { class: "name" }, "NPU worker"), el("span", { class: w.state }, w.state), el("span", {}, device), el("span", { class: "about" }, about));
}
async function drawMachine() {
  const token = store.get();
  const answer = await fetch("/readyz", { headers: token ? { Authorization: "Bearer " + token } : {} }).catch(() => null);
  const told = answer ? await answer.json() : { ready: false, reasons: ["the service does not answer"], workers: [], graphs: {} };
  $("state").textContent = told.ready ? "ready" : told.reasons.join("; ");
  $("workers").replaceChildren(...(told.workers.length ? told.workers : [null]).map(drawWorker));
  const facts = [["Service", told.ready ? "ready" : "not ready"]];
  if (told.ranks) facts.push(["Ranks", `${told.ranks.alive} of ${told.ranks.wanted}, ${told.ranks.state}${told.ranks.restarts ? `, started again ${told.ranks.restarts} times` : ""}`]);
  const text = await ask("/metrics").then((a) => a.text()).catch(() => "");
  const metric = (name) => { const line = text.split("\n").find((l) => l.startsWith("tandem_" + name + " ")); return line ? Number(line.split(" ")[1]) : null; };
  if (text) {
    const passes = metric("batch_queries_count"), asked = metric("batch_queries_sum");
    facts.push(["Resident memory", count(metric("resident_memory_bytes") / 2 ** 20) + " MiB"], ["Disk", `${count(metric("disk_bytes") / 2 ** 20)} of ${count(metric("disk_limit_bytes") / 2 ** 20)} MiB`], ["Queries, jobs waiting", `${metric("queries_waiting")}, ${metric("jobs_waiting")}`],
      ["Queries answered", count(asked)], ["Queries per pass", passes ? (asked / passes).toFixed(1) : "none yet"], ["Busy", time(metric("compute_busy_seconds_total"))]);
  }
  $("machine").replaceChildren(...facts.map(([a, b]) => el("div", {}, el("dt", {}, a), el("dd", {}, b))));
}
async function begin() {
  try {
    const [g, j, a] = await Promise.all([json("/v1/graphs"), json("/v1/jobs"), json("/v1/algorithms")]);
    for (const graph of g.graphs) graphs.set(graph.id, graph);
    for (const job of j.jobs) jobs.set(job.id, job);
    algorithms = a.algorithms;
    $("job-form").elements.algorithm.replaceChildren(...algorithms.map((one) => el("option", { value: one.name }, one.title)));
    drawOptions();
    drawGraphs();
    drawJobs();
    if (j.jobs.length && !chosen) showJob(j.jobs[0].id, false);
    document.documentElement.dataset.ready = "yes";
    await listen();
  } catch (error) { if (!$("sign-in").hidden) { $("state").textContent = "a token is needed"; return; } }
  setTimeout(begin, 2000);
}
drawMachine();
setInterval(drawMachine, 5000);
begin();
