"""The page for Prometheus: names, labels and values as a scraper reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from hybrid.service.metrics import Metrics


def test_a_scraper_reads_what_was_counted() -> None:
    metrics, odd = Metrics(), 'a "route"\\ of\ntwo lines'
    metrics.count_request("GET", odd, 404, 0.3)
    metrics.count_batch(3, 0.002)
    metrics.count_job("bfs", "done")
    text = metrics.render({"graphs": ("graphs in memory", 2), "busy_seconds_total": ("time", 1.5e9)}).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    every = [one for family in families.values() for one in family.samples]
    samples = {(one.name, *sorted(one.labels.items())): one.value for one in every}
    assert samples["tandem_requests_total", ("method", "GET"), ("route", odd), ("status", "404")] == 1
    assert samples["tandem_request_seconds_bucket", ("le", "0.25"), ("route", odd)] == 0
    assert samples["tandem_request_seconds_bucket", ("le", "0.5"), ("route", odd)] == 1
    assert samples["tandem_batch_queries_bucket", ("le", "2")] == 0  # not le="2.0": labels are names
    assert samples["tandem_batch_queries_bucket", ("le", "+Inf")] == 1
    assert samples[("tandem_batch_queries_sum",)] == 3
    assert samples["tandem_jobs_total", ("algorithm", "bfs"), ("state", "done")] == 1
    assert samples[("tandem_graphs",)] == 2
    assert samples[("tandem_busy_seconds_total",)] == 1.5e9
    assert {family.type for family in families.values()} == {"gauge", "counter", "histogram"}
    assert "_created" not in text
