"""The page's look: style sheet and fill patterns. Constants only.

Colours are from the Okabe-Ito set, distinct for any colour vision; patterns and words repeat what the colours
say. Invariant: nothing is loaded from anywhere; light, dark and paper each have readable contrast.
"""

from __future__ import annotations

from hybrid.charts.markup import Markup

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"

_COLOURS = """
:root {
  color-scheme: light dark;
  --bg: #f4f6f9; --card: #fff; --ink: #18202c; --muted: #586374; --line: #d9dee6; --band: #f1f3f7; --soft: #eef1f6;
  --coord: #6f7b90; --coord2: #97a2b4; --source: #c3cad6; --source2: #dde1e9; --edges: #a9b3c2;
  --push: #0072b2; --pull: #cbe8f9; --pull-line: #56a8d8; --async: #d5dff8; --async-line: #5f78c4;
  --wait: #f3f4f7; --wait-line: #a3acba; --npu: #e69f00; --npu-soft: #fdebc4; --round: #fdebc4; --npu-line: #a87200;
  --merge: #00835f; --bad: #b3261e; --bad-soft: #fbe4e1; --good: #00704f; --on-dark: #fff; --pack: #c2608f;
}
"""
_DARK = """
:root {
  --bg: #12161c; --card: #1b212a; --ink: #e8ecf2; --muted: #a3aebd; --line: #343d4a; --band: #232a35; --soft: #262e3a;
  --coord: #64718a; --coord2: #505c70; --source: #4a5568; --source2: #384152; --edges: #5d6a7e;
  --push: #2784c4; --pull: #173f59; --pull-line: #4c9cca; --async: #27345f; --async-line: #7f95de;
  --wait: #262d38; --wait-line: #5d6879; --npu: #f6c65b; --npu-soft: #463714; --round: #a98033; --npu-line: #d3a445;
  --merge: #2fc896; --bad: #ff8a7d; --bad-soft: #41201e; --good: #4fd3a6; --on-dark: #fff; --pack: #c2608f;
}
"""
_PAGE = f"""
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 {FONT}; }}
main {{ max-width: 1180px; margin: 0 auto; padding: 24px 20px 48px; }}
h1, h2, h3 {{ line-height: 1.25; margin: 0; }}
h2 {{ font-size: 20px; }}
h3 {{ font-size: 16px; margin-top: 20px; }}
h3 span {{ font-weight: 400; font-size: 14px; margin-left: 4px; }}
p {{ margin: 6px 0; max-width: 105ch; }}
section {{ background: var(--card); border: 1px solid var(--line); border-radius: 10px; }}
section {{ padding: 18px 20px 20px; margin-top: 16px; }}
section > h2 + p {{ margin-bottom: 12px; }}
.muted, section > h2 + p.lead {{ color: var(--muted); }}
.good {{ color: var(--good); }}
.bad {{ color: var(--bad); }}
.say {{ font-size: 16px; max-width: 90ch; }}
.top {{ display: flex; flex-wrap: wrap; gap: 4px 16px; justify-content: space-between; }}
.top {{ color: var(--muted); font-size: 13px; }}
.top b {{ color: var(--ink); margin-right: 6px; }}
footer {{ color: var(--muted); font-size: 13px; margin-top: 18px; }}
pre {{ background: var(--soft); border-radius: 8px; padding: 12px 14px; margin: 10px 0 0; font: 13px/1.45 {MONO}; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
details {{ margin-top: 12px; }}
summary {{ cursor: pointer; color: var(--muted); font-size: 14px; }}
ol.proof {{ padding-left: 22px; margin: 8px 0; }}
ol.proof li {{ margin: 5px 0; max-width: 105ch; }}
.sr {{ position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }}
"""
_HEADLINE = """
.verdict { border-left: 8px solid var(--good); align-items: center; }
.verdict { display: grid; grid-template-columns: minmax(0, 3fr) minmax(240px, 2fr); gap: 12px 32px; }
.verdict.alone { grid-template-columns: 1fr; }
.verdict.failed { border-left-color: var(--bad); background: var(--bad-soft); }
.verdict h1 { font-size: 34px; letter-spacing: -.01em; display: flex; align-items: center; gap: 12px; }
.verdict h1 svg { flex: none; }
.verdict .say { font-size: 19px; font-weight: 600; line-height: 1.35; margin: 10px 0 4px; }
.verdict .muted { font-size: 14px; }
.versus { width: 100%; }
.versus th { font-weight: 500; width: 1%; white-space: nowrap; text-align: left; padding: 5px 10px 5px 0; }
.versus th { border: 0; font-size: 14px; color: var(--ink); }
.versus td { border: 0; padding: 5px 0; vertical-align: middle; }
.versus .fill { width: 99%; }
.versus td + td { padding-left: 10px; }
.versus svg { display: block; }
.cards { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 10px; margin: 16px 0 0; padding: 0; }
.cards div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 11px 14px; }
.cards dt { font-size: 12.5px; color: var(--muted); }
.cards dd { margin: 2px 0 0; font-size: 22px; font-weight: 600; line-height: 1.25; overflow-wrap: anywhere; }
.cards dd.text { font-size: 17px; padding: 3px 0; }
.cards dd.sub { font-size: 12.5px; font-weight: 400; color: var(--muted); line-height: 1.35; padding: 0; }
@media (max-width: 960px) { .cards dd { font-size: 18px; } .cards dd.text { font-size: 15px; } }
@media (max-width: 700px) {
  .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .verdict { grid-template-columns: 1fr; }
  .verdict h1 { font-size: 28px; }
  main { padding: 14px 10px 32px; }
  section { padding: 14px 12px; }
}
"""
_PICTURES = f"""
.timeline {{ display: flex; margin-top: 10px; }}
.timeline .names {{ flex: none; }}
.scroll {{ flex: 1; min-width: 0; overflow-x: auto; overflow-y: hidden; }}
svg {{ font: 12px {FONT}; }}
svg.plot {{ display: block; }}
svg.at {{ overflow: visible; }}
svg.defs {{ position: absolute; width: 0; height: 0; }}
svg text {{ fill: var(--ink); text-anchor: middle; }}
svg text.lane {{ text-anchor: start; font-weight: 600; }}
svg text.tick, svg text.caption {{ fill: var(--muted); font-size: 11.5px; }}
svg text.caption, svg text[text-anchor=start] {{ text-anchor: start; }}
svg text[text-anchor=end] {{ text-anchor: end; }}
.fit {{ pointer-events: none; }}
.no {{ visibility: hidden; }}
.grid {{ stroke: var(--line); stroke-width: 1; }}
.base {{ stroke: var(--muted); stroke-width: 1; }}
.band {{ fill: var(--band); }}
.m rect {{ stroke-width: .8; }}
.m:hover rect {{ filter: brightness(1.1); }}
.pick {{ cursor: pointer; }}
.pick.on rect {{ fill: var(--push); }}
.pick.on text {{ fill: var(--on-dark); }}
.lens {{ display: block; margin-left: 96px; width: calc(100% - 96px); fill: var(--soft); }}
.k-coordinator, .k-phase0 {{ fill: var(--coord); stroke: var(--card); }}
.k-phase1 {{ fill: var(--coord2); stroke: var(--card); }}
.k-cpu, .k-push {{ fill: var(--push); stroke: var(--card); }}
.k-pull {{ fill: url(#f-pull); stroke: var(--pull-line); }}
.k-async {{ fill: url(#f-async); stroke: var(--async-line); }}
.k-pack {{ fill: var(--pack); stroke: var(--card); }}
.k-mixed {{ fill: url(#f-mixed); stroke: var(--push); }}
.k-wait {{ fill: url(#f-wait); stroke: var(--wait-line); }}
.k-start {{ fill: url(#f-start); stroke: var(--npu-line); }}
.k-round, .k-npu {{ fill: var(--round); stroke: var(--npu-line); }}
.k-compute {{ fill: var(--npu); }}
.k-alive {{ fill: var(--npu-line); opacity: .45; }}
.k-merge {{ fill: var(--merge); }}
.k-edges {{ fill: var(--edges); }}
.k-warn {{ fill: var(--bad); }}
.k-dead {{ fill: url(#f-dead); stroke: var(--bad); }}
.k-other {{ fill: var(--soft); stroke: var(--line); }}
.k-source0 {{ fill: var(--source); }}
.k-source1 {{ fill: var(--source2); }}
rect.thin {{ stroke: none; }}
.t-coordinator, .t-cpu, .t-push, .t-pack, .t-phase0, .t-warn, svg .t-merge {{ fill: var(--on-dark); }}
.t-pull, .t-async, .t-wait, .t-start, .t-dead {{ paint-order: stroke; stroke-width: 5px; stroke-linejoin: round; }}
.t-pull {{ stroke: var(--pull); }}
.t-async {{ stroke: var(--async); }}
.t-wait {{ stroke: var(--wait); }}
.t-start {{ stroke: var(--npu-soft); }}
svg .t-dead {{ stroke: var(--bad-soft); fill: var(--bad); font-weight: 600; }}
.t-source {{ font-size: 11px; }}
svg .t-muted {{ fill: var(--muted); font-size: 11.5px; }}
svg .t-round, svg .t-npu {{ fill: #18202c; }}
svg .t-gift {{ fill: var(--merge); font-weight: 600; }}
.t-value {{ font-size: 11.5px; }}
.gift {{ fill: var(--merge); }}
.gift.none {{ fill: var(--muted); opacity: .6; }}
.whisker {{ stroke: var(--muted); stroke-width: 1.2; }}
.badge {{ fill: var(--bad); stroke: var(--card); stroke-width: 1.5; }}
svg .t-badge {{ fill: var(--card); font-size: 11px; font-weight: 700; }}
.bar {{ margin: 12px 0 4px; border-radius: 4px; overflow: hidden; }}
"""
_CONTROLS = """
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 12px 0 0; padding: 0; list-style: none; }
.legend { font-size: 13px; color: var(--muted); }
.legend li { display: flex; align-items: center; gap: 6px; }
.legend svg, .swatch { vertical-align: -2px; flex: none; }
.incidents { margin: 12px 0 0; padding: 0; list-style: none; font-size: 14px; }
.incidents li { display: flex; gap: 8px; margin: 4px 0; overflow-wrap: anywhere; }
.incidents b { flex: none; min-width: 18px; height: 18px; margin-top: 2px; border-radius: 9px; text-align: center; }
.incidents b { background: var(--bad); color: var(--card); font-size: 11px; line-height: 18px; }
.row { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: end; gap: 6px 16px; }
.tabs { display: flex; flex-wrap: wrap; gap: 6px; margin: 10px 0 8px; padding: 2px; }
.tabs { max-height: 250px; overflow-y: auto; font-variant-numeric: tabular-nums; }
.tabs a, .zoom button { font: inherit; font-size: 13px; border: 1px solid var(--line); border-radius: 7px; }
.tabs a, .zoom button { cursor: pointer; }
.tabs a, .zoom button { background: var(--card); color: var(--ink); padding: 3px 10px; text-decoration: none; }
.tabs a:hover, .zoom button:hover { background: var(--soft); }
:focus-visible { outline: 2px solid var(--push); outline-offset: 1px; }
.js .tabs a[aria-selected=true], .zoom button[aria-pressed=true] { background: var(--push); border-color: var(--push); }
.js .tabs a[aria-selected=true], .js .tabs a[aria-selected=true] small, .zoom button[aria-pressed=true] { color: #fff; }
.tabs small { margin-left: 6px; color: var(--merge); font-weight: 600; }
.panel + .panel { border-top: 1px solid var(--line); margin-top: 20px; padding-top: 8px; }
.js .panel { border: 0; margin: 0; padding: 0; }
.js .panel:not(.on) { display: none; }
.zoom { display: none; gap: 4px; align-items: center; font-size: 13px; color: var(--muted); }
.js .zoom { display: flex; }
#tip { position: fixed; z-index: 9; left: 0; top: 0; max-width: 340px; padding: 7px 10px; opacity: 0; }
#tip { background: var(--ink); color: var(--card); font-size: 13px; line-height: 1.4; }
#tip { border-radius: 7px; pointer-events: none; }
#tip.on { opacity: 1; }
"""
_TABLES = """
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; margin-top: 12px; }
.wide.tall { max-height: 460px; overflow-y: auto; }
.wide table { min-width: 100%; }
th { font-weight: 600; color: var(--muted); font-size: 13px; line-height: 1.3; }
td, th { padding: 5px 9px; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { position: sticky; top: 0; background: var(--card); vertical-align: bottom; }
td, th { text-align: right; }
td { white-space: nowrap; }
td.s, th.s { text-align: left; white-space: normal; }
td.s:last-child { min-width: 190px; }
td.s:first-child { white-space: nowrap; }
@media (max-width: 960px) {
  table { font-size: 12.5px; }
  td, th { padding: 4px; }
  th { font-size: 12px; }
  td.s:last-child { min-width: 110px; }
}
tr.sum td { font-weight: 600; }
tr.hit td:first-child { box-shadow: inset 3px 0 var(--merge); }
tr.fault td:first-child { box-shadow: inset 3px 0 var(--bad); }
.flow { display: flex; flex-wrap: wrap; gap: 8px; margin: 12px 0 0; padding: 0; list-style: none; }
.flow li { flex: 1 1 110px; background: var(--soft); border-radius: 8px; padding: 8px 14px; }
.flow b { display: block; font-size: 20px; line-height: 1.25; white-space: nowrap; }
.flow span { font-size: 13px; color: var(--muted); }
"""
_PRINT = """
@media print {
  :root { --bg: #fff; }
  body { font-size: 12px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  section { padding: 10px 12px; break-inside: avoid; }
  section.long { break-inside: auto; }
  h2, h3 { break-after: avoid; }
  .cards div, tr, .timeline, .legend { break-inside: avoid; }
  .zoom, #tip { display: none !important; }
  .scroll, .wide, .wide.tall, .tabs { overflow: visible; max-height: none; }
  svg.plot { width: 100% !important; }
  thead th { position: static; }
  table { font-size: 10.5px; }
  td, th { padding: 3px 5px; }
}
"""
CSS = Markup(
    _COLOURS
    + f"@media screen and (prefers-color-scheme: dark) {{{_DARK}}}\n"
    + _PAGE
    + _HEADLINE
    + _TABLES
    + _PICTURES
    + _CONTROLS
    + _PRINT
)


def pattern(name: str, size: int, colour: str, shape: str, turn: int = 0) -> str:
    """A fill for ``url(#f-name)``: a square of ``size`` pixels in a colour of the style sheet, with ``shape`` on it."""
    turned = f' patternTransform="rotate({turn})"' if turn else ""
    ground = f'<rect width="{size}" height="{size}" style="fill:var(--{colour})"/>'
    return (
        f'<pattern id="f-{name}" width="{size}" height="{size}" patternUnits="userSpaceOnUse"{turned}>'
        f"{ground}{shape}</pattern>"
    )


# The patterns live in one hidden drawing; every picture of the page refers to them by name.
PATTERNS = Markup(
    '<svg class="defs" aria-hidden="true" width="0" height="0"><defs>'
    + pattern("pull", 7, "pull", '<rect width="2" height="7" style="fill:var(--pull-line)"/>', 45)
    + pattern("async", 7, "async", '<circle cx="3.5" cy="3.5" r="1.3" style="fill:var(--async-line)"/>')
    + pattern("mixed", 6, "pull", '<rect width="6" height="3" style="fill:var(--push)"/>')
    + pattern("wait", 6, "wait", '<rect width="1.3" height="6" style="fill:var(--wait-line)"/>', -45)
    + pattern("start", 14, "npu-soft", '<rect width="1.5" height="14" style="fill:var(--npu-line);opacity:.4"/>', 30)
    + pattern("dead", 10, "bad-soft", '<path d="M2 2l5 5M7 2l-5 5" style="stroke:var(--bad);opacity:.35"/>')
    + "</defs></svg>"
)
