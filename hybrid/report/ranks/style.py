"""The look of what only a job on ranks has: colours, patterns and rules. Constants only, added to pages that need them.

The grounds of the patterns are strong colours, as lanes are low. The lowest lanes have the colours alone; there the
order of the stack (compute, pack, wait) says the same. Invariant: as in ``style``.
"""

from __future__ import annotations

from hybrid.charts.markup import Markup
from hybrid.report.style import pattern

_COLOURS = """
:root { --r-pull: #56b4e9; --r-async: #6a7fd0; --r-other: #44546a; --r-dot: #e4eaff; --r-stripe: #d9f0fd;
  --r-wait: #dde1e8; }
@media screen and (prefers-color-scheme: dark) {
  :root { --r-pull: #3f93c4; --r-async: #6477c8; --r-other: #93a1b5; --r-dot: #c9d4ff; --r-stripe: #174866;
    --r-wait: #3c4655; }
}
"""
_RULES = """
.r-push { fill: var(--push); }
.r-pull { fill: url(#f-r-pull); }
.r-async { fill: url(#f-r-async); }
.r-compute { fill: var(--push); }
svg.ranks .r-compute, .legend .r-compute { fill: var(--r-other); }
.r-pack { fill: var(--pack); }
.r-wait { fill: url(#f-wait); }
.dense .r-pull { fill: var(--r-pull); }
.dense .r-async { fill: var(--r-async); }
.dense .r-wait { fill: var(--r-wait); }
.r-bytes { fill: var(--push); }
.r-messages { fill: var(--coord); }
.point rect { fill: transparent; stroke: none; }
.point:hover rect { stroke: var(--ink); stroke-width: 1.5; }
svg .t-host { font-weight: 600; paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
svg text.lane.small { font-size: 10px; font-weight: 400; }
.point text { fill: var(--on-dark); paint-order: stroke; stroke-width: 4px; stroke-linejoin: round; }
.r-t-push { stroke: var(--push); }
svg .r-t-pull { fill: var(--ink); stroke: var(--r-pull); }
.r-t-async { stroke: var(--r-async); }
.r-t-compute { stroke: var(--r-other); }
.r-t-pack { stroke: var(--pack); }
.legend .band { stroke: var(--line); }
.tabs .took { margin-left: 6px; color: var(--muted); }
.js .tabs a[aria-selected=true] .took { color: #fff; }
.traffic table { min-width: 100%; }
.traffic td:nth-child(3), .traffic td:nth-child(5) { width: 24%; min-width: 60px; vertical-align: middle; }
.traffic svg, svg.times { display: block; }
.each td.s { white-space: nowrap; max-width: 200px; overflow: hidden; text-overflow: ellipsis; }
td:has(svg.times) { vertical-align: middle; }
#ranks td, #ranks th { padding: 5px 7px; }
.traffic td.s:first-child { white-space: normal; }
@media (max-width: 960px) {
  #ranks td, #ranks th { padding: 4px; }
  .traffic td:nth-child(3), .traffic td:nth-child(5) { min-width: 34px; }
}
@media print { #ranks .flow, #ranks .panel { break-inside: avoid; } }
"""
CSS = Markup(_COLOURS + _RULES)

PATTERNS = Markup(
    '<svg class="defs" aria-hidden="true" width="0" height="0"><defs>'
    + pattern("r-pull", 6, "r-pull", '<rect width="1.6" height="6" style="fill:var(--r-stripe)"/>', 45)
    + pattern("r-async", 6, "r-async", '<circle cx="3" cy="3" r="1.1" style="fill:var(--r-dot)"/>')
    + "</defs></svg>"
)
