"""Controls tell a planted curator that is useless but talkative from a planted one that is good, at known truth."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import skg_bench
from skg_bench.analysis.comparison.contrasts import ContrastResult, findings
from skg_bench.analysis.report import page
from skg_bench.runfolder.run import Run
from tests.app.lab import declare, forget, write

GAIN = 2.5  # logits of listening that the world adds to the good kind
KIND = "values-check"
PLANTED = '''
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skg_bench.core.reach import REACHES_NOTHING, Reaches
from skg_bench.curator.shared.learning_job import LearningJob, Proposal
from skg_bench.curator.shared.proposer import Proposer
from skg_bench.skillbook.library.strategies import strategies
from skg_bench.skillbook.proposals import Limits


@dataclass(frozen=True)
class Planted(Proposer):
    """Adds a sound text of `kind`, or of any kind, whatever a user did; rates nothing."""

    kind: str | None
    limits: Limits
    reaches: ClassVar[Reaches] = REACHES_NOTHING

    def propose(self, jobs: Sequence[LearningJob]) -> list[Proposal]:
        library = strategies(None)
        texts = [
            content for content, kind, sound in zip(library.contents, library.kind.tolist(), library.sound, strict=True)
            if sound and self.kind in (None, library.kinds[kind])
        ]
        proposals = []
        for job in jobs:
            new = texts[(job.key ^ job.turn) % len(texts)]
            add = {"type": "ADD", "section": new.section, "issue": new.issue, "insight": new.insight,
                   "keywords": list(new.keywords)}
            full = sum(skill.active for skill in job.book.skills) >= 20
            proposals.append(Proposal(None if full else {"operations": [add]}, "v2", {}))
        return proposals
'''
YAML = """
_target_: talkers.curators.Planted
kind: {kind}
limits: {{_target_: skg_bench.skillbook.proposals.Limits, adds: 1, removes: 0, tags: 3, ratings: 1, characters: 2000,
  operations: 10}}
"""


Found = dict[tuple[str, str], ContrastResult]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package of both curators that has joined, beside a library in which one kind is better by GAIN."""
    folder = tmp_path_factory.mktemp("planted")
    write(folder / "talkers" / "__init__.py", "")
    write(folder / "talkers" / "curators.py", PLANTED)
    for name, kind in (("talkative", "null"), ("good", KIND)):
        write(folder / "talkers" / "conf" / "curator" / f"{name}.yaml", YAML.format(kind=kind))
    for file in (Path(skg_bench.__file__).parents[1] / "data" / "guardian").glob("*.toml"):
        write(folder / "better" / file.name, file.read_text("utf-8"))
    kinds = (folder / "better" / "kinds.toml").read_text("utf-8")
    kind_line = rf"(\[kind\.{KIND}\][^\n]*\npersuades = )(-?[\d.]+)"
    raised, n = re.subn(kind_line, lambda match: f"{match[1]}{float(match[2]) + GAIN}", kinds)
    assert n == 1
    write(folder / "better" / "kinds.toml", raised)
    declare(folder, "talkers")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        forget()
        yield folder
    forget()


def contrasts(folder: Path, curators: str, *world: str) -> tuple[Run, Found]:
    """Contrasts in utility of planted curators, each against its controls."""
    arms = ", ".join(f"{name}: [curator={name}]" for name in curators.split(","))
    run = skg_bench.run([
        "experiment=guardian", *world, "contrasts=[]", "embedder=hashing", "reference=never",
        f"arms={{{arms}, never: [policy=never, curator=none]}}", f"controls_of=[{curators}]", f"out={folder / 'run'}",
    ])  # fmt: skip
    rows = [row for row in findings(Run(run.path)) if row.metric.name == "utility"]
    return Run(run.path), {(row.contrast.arm, row.contrast.reference.rpartition("_")[2]): row for row in rows}


@pytest.fixture(scope="module")
def both(site: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Found]:
    world = f"simulator.strategies={site / 'better'}", "users=24", "simulator.volume_spread=0.1"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "_timelines", lambda *_given: iter(()))  # of 120 stories none is looked at
        return contrasts(tmp_path_factory.mktemp("both"), "talkative,good", *world)


def interval(row: ContrastResult) -> tuple[float, float]:
    return row.estimate.interval(new=True)


def test_a_frozen_book_likes_a_useless_but_talkative_curator_and_its_sham_does_not(both: tuple[Run, Found]) -> None:
    _, rows = both
    low, high = interval(rows["talkative", "sham"])
    assert low < 0 < high < 0.015  # any other texts do as well
    assert interval(rows["talkative", "frozen"])[0] > 0.01  # variety alone: what is heard often wears off
    assert rows["talkative", "coin"].estimate.mean == 0  # it rates nothing


def test_a_planted_good_curator_is_found_by_every_control_that_could_find_it(both: tuple[Run, Found]) -> None:
    _, rows = both
    for control in ("empty", "frozen", "sham"):
        assert interval(rows["good", control])[0] > 0.03
        assert rows["good", control].verdict == "not equivalent"
    low, high = interval(rows["good", "random"])
    assert low < 0.01 < high + 0.01  # all of its skills are alike


def test_the_page_says_what_each_control_asks(both: tuple[Run, Found]) -> None:
    text = (Path(both[0].path) / "report.html").read_text("utf-8")
    for words in ("against other texts and ratings by a coin", "against the book as it begins"):
        assert text.count(words) >= 2


@pytest.mark.soak
def test_an_empty_memory_unmasks_it_where_the_question_alone_is_heeded(site: Path, tmp_path: Path) -> None:
    _, rows = contrasts(tmp_path, "talkative", "users=40", "simulator.generic=2")
    assert interval(rows["talkative", "empty"])[1] < -0.01
    low, high = interval(rows["talkative", "sham"])
    assert low < 0 < high
