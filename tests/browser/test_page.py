"""The page in a real Chromium: it shows graphs and jobs, a form submits one, and it fits a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import PROGRAM, Browser
from tests.service.conftest import GRAPH, Running, running

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here: apt-get install chromium")
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture
def browser(service: Running, tmp_path: Path) -> Iterator[Browser]:
    found = Browser(tmp_path / "profile")
    try:
        yield found
    finally:
        found.close()


def test_a_job_is_submitted_by_form_and_watched(service: Running, browser: Browser) -> None:
    browser.open(service.client.address)
    browser.until(f"document.getElementById('graphs').textContent.includes('{GRAPH}')")
    browser.until("document.querySelectorAll('#core-picture polyline').length === 2")
    browser.value("document.querySelector('#job-form [name=source]').focus()")
    browser.press("Enter", 13)  # by keyboard alone
    browser.until("document.querySelector('#jobs td.done')")
    browser.until("document.querySelectorAll('#frontier rect').length > 1")
    browser.until("document.querySelectorAll('#timeline rect').length > 2")
    browser.until("document.querySelectorAll('#rows tbody tr').length === 20")
    assert "yes (proof)" in browser.value("document.getElementById('job-facts').textContent")
    shown = browser.value("[...document.querySelectorAll('#levels tbody tr')].map((row) => row.cells[1].textContent)")
    assert set(shown) <= {"push", "pull"}
    assert browser.console == []


def test_a_mistake_is_told_with_its_fix(service: Running, browser: Browser) -> None:
    browser.open(service.client.address)
    browser.value("document.querySelector('#job-form [name=source]').value = '99999999'")
    browser.value("document.querySelector('#job-form').requestSubmit()")
    browser.until("document.getElementById('refused').textContent.includes('Fix:')")


def test_other_algorithms_have_their_options(service: Running, browser: Browser) -> None:
    browser.open(service.client.address)
    browser.value(
        "(() => { const one = document.querySelector('#job-form [name=algorithm]'); one.value = 'pagerank';"
        " one.dispatchEvent(new Event('change')); document.querySelector('[name=\"pagerank.iterations\"]').value = '3';"
        " document.querySelector('#job-form').requestSubmit(); })()"
    )
    browser.until("document.getElementById('job-headline').textContent.includes('ranks highest')")
    assert "pagerank.iterations3" in browser.value("document.getElementById('job-facts').textContent")


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_and_everything_has_a_name(service: Running, browser: Browser, dark: bool) -> None:
    service.client.wait(service.client.submit(GRAPH, "bfs", source=1))
    browser.open(service.client.address, width=375, height=800, dark=dark)
    browser.until("document.querySelectorAll('#frontier rect').length > 1")
    assert browser.value(FITS)
    unnamed = (
        "[...document.querySelectorAll('button, input, select, a, [role=img]')]"
        ".filter((one) => !one.closest('[hidden]')"
        " && !(one.textContent.trim() || one.getAttribute('aria-label') || (one.labels && one.labels.length))).length"
    )
    assert browser.value(unnamed) == 0
    ground = browser.value("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 24, 27)") == dark


def test_the_api_describes_itself_without_a_network(service: Running, browser: Browser) -> None:
    browser.open(service.client.address + "/docs")
    assert browser.value("document.querySelectorAll('h3').length") > 15
    sources = browser.value("performance.getEntriesByType('resource').map((one) => one.name)")
    assert all(name.startswith((service.client.address, "data:")) for name in sources)
    assert browser.console == []


def test_rounds_merges_and_the_gain_beside_a_device(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path, "npu.mode=share", "npu.device=simulated:oracle", "compare.repeats=1") as beside:
        beside.client.wait(beside.client.submit(GRAPH, "bfs", source=5))
        browser.open(beside.client.address)
        browser.until("document.querySelector('#workers .ready')")
        assert "no device is there" in browser.value("document.getElementById('workers').textContent")
        browser.until("document.querySelectorAll('#timeline rect.round').length > 0")
        assert browser.value("document.querySelectorAll('#timeline rect.merge').length") > 0
        told = browser.value("document.querySelector('#timeline rect.round title').textContent")
        assert "simulated:oracle, no real NPU" in told
        facts = browser.value("document.getElementById('job-facts').textContent")
        assert "Gain over CPU-onlysimulated:oracle: CPU-only" in facts
        browser.value(
            "(() => { const form = document.querySelector('#job-form'); form.elements['npu.mode'].value = 'off';"
            " form.elements.source.value = '5'; form.requestSubmit(); })()"
        )
        browser.until("document.getElementById('job-facts').textContent.includes('the CPU worked alone')")
        assert browser.console == []
