"""A run with hostile texts, its pages, and a browser that may reach nothing but files."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from skg_bench.analysis import report, summary
from skg_bench.runfolder.run import Run
from tests.analysis.synthetic import World, make_run
from tests.runs import rewritten

HOSTILE = """</script><img src=x onerror="window.pwned=1"><!--<script>&amp;'"{{ 7*7 }}\u2028"""
ARMS = {
    "skg": World(hit=0.85, hit_right=0.8),
    "frozen_30": World(hit=0.85, hit_right=0.8, learns_until=30, overrides=("freeze=all", "freeze_at=30")),
    "never": World(hit=0.0, overrides=("policy=never",)),
}
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def spoil(run: Run) -> None:
    """Put markup into messages, skill names and reasons, as a recorded history may hold it."""
    for log, columns in (("turns", ("message", "matched_skill")), ("updates", ("message", "name", "reason"))):

        def spoiled(table: pa.Table, columns: tuple[str, ...] = columns) -> pa.Table:
            for column in columns:
                at = table.schema.get_field_index(column)
                texts = [None if text is None else f"{text} {HOSTILE}" for text in table[column].to_pylist()]
                hostile = pa.array(texts, pa.string()).dictionary_encode().cast(table.schema.field(at).type)
                table = table.set_column(at, table.schema.field(at), hostile)
            return table

        for file in (run.path / log).glob("*.parquet"):
            rewritten(file, spoiled)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Sixteen users, five weeks, three arms; every text hostile."""
    made = make_run(tmp_path_factory.mktemp("report") / "run", users=16, weeks=5, per_week=30.0, arms=ARMS)
    spoil(made)
    summary.write_summary(made)
    return made


@pytest.fixture(scope="session")
def page_path(run: Run) -> Path:
    return report.write_page(run)


@pytest.fixture(scope="module")  # its event loop runs in this thread as long: `asyncio.run` of other tests would fail
def browser() -> Iterator[Browser]:
    """Chromium of the system. Absent: the test is skipped, and in CI it fails."""
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if binary is None:
        missing = "no chromium on PATH; install it: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=binary, args=FLAGS)
        yield started
        started.close()


def turns_shown(page: Page) -> int:
    """The total that the timeline says it lists."""
    text = page.locator("#person .count").inner_text()
    return 0 if text == "0 turns" else int(text.split(" of ")[1].split(" ")[0].replace(",", ""))


@dataclass
class Visit:
    """An open page, and what it did that it must not do."""

    page: Page
    complaints: list[str] = field(default_factory=list)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages from disk; afterwards fails on any console message, error, or request for anything but a file."""
    visits: list[Visit] = []

    def opened(path: Path, fragment: str = "", **context: Any) -> Page:
        visited = Visit(browser.new_context(**{"viewport": {"width": 1366, "height": 768}, **context}).new_page())
        visits.append(visited)

        def log_console(message: ConsoleMessage) -> None:
            visited.complaints.append(f"console: {message.text}")

        def log_request(request: Request) -> None:
            if not request.url.startswith((path.as_uri(), "data:", "blob:")):
                visited.complaints.append(f"request: {request.url}")

        visited.page.on("console", log_console)
        visited.page.on("pageerror", lambda error: visited.complaints.append(f"error: {error}"))
        visited.page.on("request", log_request)
        visited.page.goto(path.as_uri() + fragment)
        return visited.page

    yield opened
    for visited in visits:
        visited.page.wait_for_timeout(50)
        assert visited.page.evaluate("window.pwned") is None
        visited.page.context.close()
        assert visited.complaints == []
