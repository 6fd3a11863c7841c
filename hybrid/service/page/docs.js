"use strict";
// The API's documentation, drawn from its own OpenAPI document; needs nothing from elsewhere.
const el = (name, attributes, ...children) => { const node = document.createElement(name); Object.assign(node, attributes); node.append(...children); return node; };
const words = (schema) => !schema ? "" : schema.$ref ? schema.$ref.split("/").pop() : schema.anyOf ? schema.anyOf.map(words).join(" or ") : schema.enum ? schema.enum.join(", ") : schema.type === "array" ? "list of " + words(schema.items) : (schema.type || "anything") + (schema.minimum != null ? `, at least ${schema.minimum}` : "");
const table = (heads, rows) => el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((c) => el("td", {}, String(c ?? "")))))));
const scroll = (inner) => { const box = el("div", { className: "scroll", tabIndex: 0 }, inner); box.setAttribute("role", "region"); box.setAttribute("aria-label", "Table, scrollable"); return box; };

function operation(path, method, told) {
  const parts = [el("h3", {}, `${method.toUpperCase()} ${path}`), el("p", {}, told.summary || "")];
  if (told.parameters) parts.push(scroll(table(["Parameter", "In", "Value", "Default", "Meaning"], told.parameters.map((p) => [p.name + (p.required ? " (needed)" : ""), p.in, words(p.schema), p.schema.default, p.description || p.schema.description]))));
  const body = told.requestBody && Object.entries(told.requestBody.content)[0];
  if (body) parts.push(el("p", {}, `Body: ${body[0]}, ${words(body[1].schema)}`));
  const answers = Object.entries(told.responses).map(([status, r]) => [status, r.description, Object.entries(r.content || {}).map(([kind, c]) => kind + (c.schema ? ": " + words(c.schema) : "")).join("; ")]);
  parts.push(el("details", {}, el("summary", {}, "Answers"), scroll(table(["Status", "Meaning", "Content"], answers))));
  return el("section", {}, ...parts);
}
async function draw() {
  let token = null;
  try { token = sessionStorage.getItem("token"); } catch { /* private mode */ }
  const answer = await fetch("/v1/openapi.json", { headers: token ? { Authorization: "Bearer " + token } : {} });
  if (!answer.ok) { document.getElementById("about").textContent = "a token is needed: sign in on the page first"; return; }
  const document_ = await answer.json(), groups = new Map();
  document.getElementById("about").textContent = `${document_.info.summary} Version ${document_.info.version}.`;
  for (const [path, methods] of Object.entries(document_.paths)) for (const [method, told] of Object.entries(methods)) {
    const tag = (told.tags || ["other"])[0];
    groups.set(tag, [...(groups.get(tag) || []), operation(path, method, told)]);
  }
  const main = document.getElementById("main");
  for (const [tag, sections] of groups) main.append(el("h2", {}, tag), ...sections);
  main.append(el("h2", {}, "Schemas"));
  for (const [name, schema] of Object.entries(document_.components.schemas)) main.append(el("details", {}, el("summary", {}, name), el("p", {}, schema.description || ""), scroll(table(["Key", "Value", "Meaning"], Object.entries(schema.properties || {}).map(([key, value]) => [key + ((schema.required || []).includes(key) ? " (always)" : ""), words(value), value.description])))));
  document.documentElement.dataset.ready = "yes";
}
draw();
