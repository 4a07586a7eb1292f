"""Plug-in `-p tests.times`: prints the CPU time of the dearest modules and tests, child processes included.

A child counts in the test that waits for it; what a fixture makes counts in the first test that asks for it.
"""

from collections import Counter
from collections.abc import Generator
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import pytest

DEAREST = 40  # modules, and tests
_BEGUN = pytest.StashKey[float]()
_modules, _tests = Counter[str](), Counter[str]()


def used() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(time.ru_utime + time.ru_stime for time in (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[_BEGUN] = used()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report, now = (yield), used()
    report.user_properties.append(("cpu", now - item.stash[_BEGUN]))  # which reaches the controller of pytest-xdist
    item.stash[_BEGUN] = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, value in report.user_properties:
        if name == "cpu":
            _tests[report.nodeid] += value  # type: ignore[operator]
            _modules[report.nodeid.partition("::")[0]] += value  # type: ignore[operator]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section(f"CPU time: {_tests.total():.0f} s for {len(_tests)} tests")
    for dearest in (_modules, _tests):
        lines = [f"{seconds:8.2f} s  {name}" for name, seconds in dearest.most_common(DEAREST)]
        terminalreporter.write("\n".join([*lines, "", ""]))
