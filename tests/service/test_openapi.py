"""Whatever a client sends, the service answers as its OpenAPI document says: generated requests, none ends in a 500."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.service.conftest import Running, running

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install schemathesis")
LEFT_OUT = r"/v1/events"  # a stream does not end
EXAMPLES = int(os.environ.get("TANDEM_OPENAPI_EXAMPLES", "12"))  # of each operation


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    limits = ("service.max_vertices=4096", "service.max_sources=8", "service.job_queue=8", "service.max_graphs=6")
    with running(tmp_path_factory.mktemp("openapi"), *limits, "service.drain_s=0") as found:
        yield found


@pytest.mark.heavy
def test_the_document_is_kept_to(service: Running) -> None:
    from schemathesis.specs.openapi import checks

    kept_to = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
    quick = settings(
        max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    seen: dict[str, set[int]] = {}

    def send(case: schemathesis.Case) -> None:
        case.query = {name: value for name, value in (case.query or {}).items() if name != "wait_s"}
        answer = case.call(timeout=30)
        seen.setdefault(f"{case.method} {case.path}", set()).add(answer.status_code)
        assert answer.status_code != 500, answer.text
        case.validate_response(answer, checks=kept_to)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the generator about itself
        schema = schemathesis.openapi.from_url(f"{service.client.address}/v1/openapi.json")
        for found in schema.exclude(path_regex=LEFT_OUT).get_all_operations():
            quick(given(case=found.ok().as_strategy())(send))()
    assert len(seen) >= 20, seen
    assert {status for statuses in seen.values() for status in statuses} >= {200, 202, 404, 422}, seen
    assert service.process.poll() is None
