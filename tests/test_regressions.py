"""Sessions that once showed something go on doing what they did: `skg-bench counterexample find RUN --out FILE`."""

from pathlib import Path

import pytest

from skg_bench.app.counterexample import cases

FILES = sorted((Path(__file__).parent / "regressions").glob("*.json"))


def test_there_are_cases() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_session_goes_as_it_went(path: Path) -> None:
    assert cases.deviations(cases.load_case(path)) == []
