"""A run with hostile texts, its pages, and a browser that may reach nothing but files."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, ViewportSize, sync_playwright

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


@dataclass
class Chromium:
    """A browser, the event loop that it waits in, and its empty pages by whether they run scripts."""

    browser: Browser
    loop: asyncio.AbstractEventLoop
    free: dict[bool, list[Page]] = field(default_factory=lambda: {True: [], False: []})

    def page(self, *, scripts: bool) -> Page:
        """An empty page. Each has a process, whose start takes more CPU time than opening a report in it."""
        if self.free[scripts]:
            return self.free[scripts].pop()
        return self.browser.new_context(java_script_enabled=scripts).new_page()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """Chromium of the system, started once, which takes a second. Absent: the test is skipped, and in CI it fails."""
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if binary is None:
        missing = "no chromium on PATH; install it: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        started = Chromium(playwright.chromium.launch(executable_path=binary, args=FLAGS), asyncio.get_running_loop())
        asyncio._set_running_loop(None)
        yield started
        asyncio._set_running_loop(started.loop)
        started.browser.close()


@pytest.fixture(scope="module")
def browser(chromium: Chromium) -> Iterator[Chromium]:
    """Its event loop counts as running in this thread for a module: `asyncio.run` of other tests would fail."""
    asyncio._set_running_loop(chromium.loop)
    yield chromium
    asyncio._set_running_loop(None)


def turns_shown(page: Page) -> int:
    """The total that the timeline says it lists."""
    text = page.locator("#person .count").inner_text()
    return 0 if text == "0 turns" else int(text.split(" of ")[1].split(" ")[0].replace(",", ""))


@dataclass
class Visit:
    """An open page, and what it did that it must not do."""

    page: Page
    address: str
    scripts: bool
    complaints: list[str] = field(default_factory=list)

    def log_console(self, message: ConsoleMessage) -> None:
        self.complaints.append(f"console: {message.text}")

    def log_error(self, error: Error) -> None:
        self.complaints.append(f"error: {error}")

    def log_request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"request: {request.url}")

    def begin(self, fragment: str, viewport: ViewportSize, scheme: Any) -> None:
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(media="null", color_scheme=scheme)
        for event, log in self._logs().items():
            self.page.on(event, log)  # type: ignore[call-overload]
        self.page.goto(self.address + fragment)

    def end(self) -> None:
        """Leave the page empty, nothing stored, and the pointer beside it."""
        for event, log in self._logs().items():
            self.page.remove_listener(event, log)
        self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.page.mouse.move(-1, -1)
        self.page.goto("about:blank")

    def _logs(self) -> dict[str, Any]:
        return {"console": self.log_console, "pageerror": self.log_error, "request": self.log_request}


@pytest.fixture
def visit(browser: Chromium) -> Iterator[Callable[..., Page]]:
    """Opens pages from disk; afterwards fails on any console message, error, or request for anything but a file."""
    visits: list[Visit] = []

    def opened(
        path: Path,
        fragment: str = "",
        *,
        viewport: ViewportSize | None = None,
        color_scheme: str = "light",
        java_script_enabled: bool = True,
    ) -> Page:
        visited = Visit(browser.page(scripts=java_script_enabled), path.as_uri(), java_script_enabled)
        visits.append(visited)
        visited.begin(fragment, viewport or {"width": 1366, "height": 768}, color_scheme)
        return visited.page

    yield opened
    for visited in visits:
        visited.page.wait_for_timeout(50)
        assert visited.page.evaluate("window.pwned") is None
        visited.end()
        assert visited.complaints == []
        browser.free[visited.scripts].append(visited.page)
