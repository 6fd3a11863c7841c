"""The numbers that Prometheus reads. Counted on the computing thread and on the HTTP thread.

Invariant: a query that is answered in the middle of a job never waits for a lock of its own thread, because jobs and
passes count in different metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

Gauges = dict[str, tuple[str, float]]  # name to (meaning, value); a name that ends in _total is a counter

_LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Metrics:
    def __init__(self) -> None:
        self._counted = CollectorRegistry()
        kept: dict[str, Any] = {"namespace": "tandem", "registry": self._counted}
        self._requests = Counter("requests", "answers by route", ["method", "route", "status"], **kept)
        self._latency = Histogram("request_seconds", "time to answer", ["route"], buckets=_LATENCY, **kept)
        self._batch_size = Histogram("batch_queries", "queries in a pass", buckets=_SIZES, **kept)
        self._batch_seconds = Histogram("batch_seconds", "time of a pass", buckets=_LATENCY, **kept)
        self._jobs = Counter("jobs", "jobs that ended", ["algorithm", "state"], **kept)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._latency.labels(route).observe(seconds)

    def count_batch(self, size: int, seconds: float) -> None:
        self._batch_size.observe(size)
        self._batch_seconds.observe(seconds)

    def count_job(self, algorithm: str, state: str) -> None:
        self._jobs.labels(algorithm, state).inc()

    def render(self, gauges: Gauges) -> bytes:
        """The page in Prometheus' text form: ``gauges``, which are true right now, and what was counted."""
        return generate_latest(_Page(gauges, self._counted))


class _Page(CollectorRegistry):
    def __init__(self, gauges: Gauges, counted: CollectorRegistry) -> None:
        super().__init__()
        self._gauges, self._counted = gauges, counted

    def collect(self) -> Iterator[Any]:
        for name, (meaning, value) in self._gauges.items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(f"tandem_{name}", meaning, value=value)
        for family in self._counted.collect():
            family.samples = [_plain(one) for one in family.samples if not one.name.endswith("_created")]
            yield family


def _plain(sample: Any) -> Any:
    """Bounds of buckets without a trailing ``.0``: the labels are part of the series' names."""
    bound = sample.labels.get("le", "")
    return sample._replace(labels={**sample.labels, "le": bound.removesuffix(".0")}) if bound else sample
