"""Counters and histograms in Prometheus' text form. Written by both threads; each number by one of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

_LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Histogram:
    """Observations in buckets."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total, self.sum = bounds, [0] * (len(bounds) + 1), 0, 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += 1
        self.sum += value

    def lines(self, name: str, labels: str = "") -> Iterable[str]:
        so_far, comma = 0, "," if labels else ""
        for bound, count in zip(self.bounds, self.counts, strict=False):
            so_far += count
            yield f'{name}_bucket{{{labels}{comma}le="{bound:g}"}} {so_far}'
        yield f'{name}_bucket{{{labels}{comma}le="+Inf"}} {self.total}'
        inside = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{inside} {self.sum:.6f}"
        yield f"{name}_count{inside} {self.total}"


class Metrics:
    """All of the service's own numbers."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = {}
        self.latency: dict[str, Histogram] = {}
        self.batch_size, self.batch_seconds = Histogram(_SIZES), Histogram(_LATENCY)
        self.jobs: dict[tuple[str, str], int] = {}

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        known = (method, route, status)
        self.requests[known] = self.requests.get(known, 0) + 1
        self.latency.setdefault(route, Histogram(_LATENCY)).observe(seconds)

    def count_batch(self, size: int, seconds: float) -> None:
        self.batch_size.observe(size)
        self.batch_seconds.observe(seconds)

    def count_job(self, algorithm: str, state: str) -> None:
        self.jobs[algorithm, state] = self.jobs.get((algorithm, state), 0) + 1

    def render(self, gauges: dict[str, tuple[str, float]]) -> str:
        """The page that Prometheus reads; ``gauges`` are what is true right now: name to (meaning, value)."""
        lines = []
        for name, (meaning, value) in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP tandem_{name} {meaning}", f"# TYPE tandem_{name} {kind}", f"tandem_{name} {value:.12g}"]
        lines += ["# HELP tandem_requests_total answers by route", "# TYPE tandem_requests_total counter"]
        for (method, route, status), count in sorted(self.requests.items()):
            lines.append(f'tandem_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines += ["# HELP tandem_request_seconds time to answer", "# TYPE tandem_request_seconds histogram"]
        for route, histogram in sorted(self.latency.items()):
            lines += histogram.lines("tandem_request_seconds", f'route="{route}"')
        lines += ["# HELP tandem_batch_queries queries in a pass", "# TYPE tandem_batch_queries histogram"]
        lines += self.batch_size.lines("tandem_batch_queries")
        lines += ["# HELP tandem_batch_seconds time of a pass", "# TYPE tandem_batch_seconds histogram"]
        lines += self.batch_seconds.lines("tandem_batch_seconds")
        lines += ["# HELP tandem_jobs_total jobs that ended", "# TYPE tandem_jobs_total counter"]
        for (algorithm, state), count in sorted(self.jobs.items()):
            lines.append(f'tandem_jobs_total{{algorithm="{algorithm}",state="{state}"}} {count}')
        return "\n".join(lines) + "\n"
