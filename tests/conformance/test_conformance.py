"""Every component that `conf/` offers: same bits however a run is cut, forked, stacked, killed; blind; what it says."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skg_bench.core.errors import UsageError
from tests.app.lab import declare, forget, write
from tests.app.test_extension import example
from tests.conformance import suite
from tests.conformance.shared import Shared, play
from tests.conformance.unlisted import unlisted
from tests.laws import shoppers, world

OF_ARMS = [case for case in suite.cases() if case.of_arms]
# Chosen by an arm of the two large cases, tests/laws/test_same_bits.py and test_shoppers.py: by one process and by two
# there, and blind there (test_blindness.py).
PLAYED = {text for arms in (world.ARMS, shoppers.ARMS) for overrides in arms.values() for text in overrides}
CURATOR = '''
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from skg_bench.core.batch import part
from skg_bench.curator.everything import Everything

@dataclass(frozen=True)
class FirstSixty:
    """Captures the first sixty answers of the LLM, and counts them where no state is."""
    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = Everything.reasons
    count: dict[str, int] = field(default_factory=lambda: {"answers": 0}, hash=False)

    def start(self, n: int) -> Any:
        return None

    def offers(self, seen, state):
        return Everything().offers(seen, None)

    def curate(self, seen, reaction, known, books, state):
        self.count["answers"] += int((seen.context.asks & ~seen.hit).sum())
        _, batch = Everything().curate(seen, reaction, known, books, None)
        return None, part(batch, (batch.source < 0) | (self.count["answers"] <= 60))

@dataclass(frozen=True)
class Listing(FirstSixty):
    """A state that is no dataclass of arrays."""
    def start(self, n: int) -> Any:
        return [0] * n

@dataclass(frozen=True)
class Short(FirstSixty):
    """It cannot be called as curators are."""
    def curate(self, seen, offer):
        return None
'''


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@contextmanager
def skipped_without_its_library() -> Iterator[None]:
    """For components that need an optional library, or a dataset."""
    try:
        yield
    except UsageError as error:
        if not suite.absent(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shared(once: Callable[..., Path]) -> Shared:
    """The runs that all components of arms share."""
    unplayed = [case for case in OF_ARMS if str(case) not in PLAYED]
    return Shared(once("conformance", lambda folder: play(OF_ARMS, unplayed, folder)))


@pytest.mark.parametrize("case", suite.cases(), ids=str)
def test_a_component_keeps_to_what_all_keep_to(tmp_path: Path, shared: Shared, case: suite.Case) -> None:
    if reason := suite.SKIPPED.get(str(case)):
        pytest.skip(reason)
    differing = shared.differing(case) if case in OF_ARMS and shared.plays(case) else None
    truth = str(case) not in PLAYED and not shared.blind(case)
    with skipped_without_its_library():
        assert suite.failures(case, tmp_path / "runs", truth=truth, keeps=differing == []) == []
    assert not differing


def test_components_that_no_law_plays_give_the_same_rows_in_one_process_and_in_two(shared: Shared) -> None:
    """And apart as together, killed and not."""
    here = [case for case in OF_ARMS if str(case) not in PLAYED and shared.plays(case)]
    assert len(here) > 20
    assert {str(case): differing for case in here if (differing := shared.differing(case))} == {}


@pytest.mark.parametrize("seam", ["simulator", "embedder", "router", "reranker", "policy", "curator", "llm"])
def test_no_component_escapes_the_suite_for_want_of_a_yaml(seam: str) -> None:
    made_by_code = {
        "router": ["skg_bench.router.shared.route.SharedMaxSim"],  # with an index
        "curator": ["skg_bench.curator.without.WithoutEach"],  # of one cohort; tests/curator plays it
        "simulator": ["skg_bench.simulator.logs.logged_world.LoggedWorld"],  # of a run's log; tests/app plays it
    }
    assert unlisted(seam) == made_by_code.get(seam, [])


def test_the_pages_components_are_found_in_their_package_and_keep_to_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in example().items():
        write(tmp_path / "site" / name, text)
    with joined(tmp_path / "site", "mine", monkeypatch) as cases:
        assert [str(case) for case in cases] == [
            "assistant=echo",
            "curator=one_call",
            "reranker=freshness",
            "signs=doorstep",
            "simulator=errands",
        ]
        for case in cases:
            assert suite.failures(case, tmp_path / "runs" / case.seam) == []


# -------------------------------------------------------------------------------------- that the suite can fail


@contextmanager
def joined(site: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[suite.Case]]:
    """The components of a package in `site`, which joins by an entry point."""
    declare(site, package)
    monkeypatch.syspath_prepend(str(site))
    forget()
    try:
        yield [case for case in suite.cases() if case.package == package]
    finally:
        forget()


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, suite.Case]]:
    """Curators of a package that joins by an entry point, by their options."""
    site = tmp_path / "site"
    write(site / "planted" / "__init__.py", "")
    write(site / "planted" / "curators" / "__init__.py", "")
    write(site / "planted" / "curators" / "memory.py", CURATOR)
    for option, name in (("first_sixty", "FirstSixty"), ("listing", "Listing"), ("short", "Short")):
        write(site / "planted" / "conf" / "curator" / f"{option}.yaml", f"_target_: planted.curators.memory.{name}\n")
    with joined(site, "planted", monkeypatch) as cases:
        yield {case.option: case for case in cases}


def test_a_component_that_hides_a_memory_fails_by_name(tmp_path: Path, planted: dict[str, suite.Case]) -> None:
    lines = suite.failures(planted["first_sixty"], tmp_path / "runs")
    assert all(line.startswith("curator=first_sixty of planted: ") for line in lines)
    broken = ("cohort=512 and cohort=3 differ", "killed and resumed differ", "alone and in a stack differ")
    assert all(any(what in line for line in lines) for what in broken), lines


def test_a_component_that_knows_the_truth_is_recognised(tmp_path: Path) -> None:
    oracle = suite.Case("curator", "oracle", "skg_bench")
    assert "turns skill_learned" in suite.changed_by_truth(oracle, tmp_path)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("listing", "Listing.start(5): its state is a list; return None"),
        ("short", "curate does not take what Curator.curate is given: too many positional arguments"),
    ],
)
def test_a_component_that_is_not_what_its_protocol_says_fails_by_name(
    tmp_path: Path, planted: dict[str, suite.Case], option: str, says: str
) -> None:
    (line,) = suite.failures(planted[option], tmp_path / "runs")
    assert line.startswith(f"curator={option} of planted: ")
    assert says in line
