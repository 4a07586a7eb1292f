"""Truth of what is removed and reworded: the worth of a skill, which skills are judged, and what a coin would hit."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import skg_bench
from experiments.curators.pruning import Verdict, analyse, auc, judged_skills, verdict, world_of, worths
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.library.strategies import packaged, strategies

TELLS = (  # counters tell: kinds lie far apart, many are bad, and nothing wears off or discerns
    "simulator.kinds_apart=3", "simulator.generic=0", "simulator.persuades=-0.2", "simulator.wanted_share=0.15",
    "simulator.habit=0", "simulator.annoyance=0", "simulator.discerns=0",
)  # fmt: skip


@pytest.mark.req("U14")
def test_the_worth_of_a_skill_is_what_saying_it_at_every_trigger_is_worth_beyond_the_question(tmp_path: Path) -> None:
    table = strategies(None)
    sound, vague = (next(i for i in range(len(table.contents)) if table.sound[i] == well) for well in (True, False))
    arms = []
    for name, i in (("sound", sound), ("vague", vague)):
        said = table.contents[i]
        book = json.loads((packaged() / "rookie.v2.json").read_text("utf-8"))
        (label, skill), *_ = book["skills"].items()
        skill |= {"issue": said.issue, "insight": said.insight, "keywords": list(said.keywords)}
        (tmp_path / f"{name}.json").write_text(
            json.dumps({**book, "skills": {label: skill}, "sections": {"context": [label]}})
        )
        arms.append(f"{name}: [curator=none, seeds={tmp_path / name}.json, router=in_prompt, policy=always]")
    run = skg_bench.run([
        "experiment=guardian", "contrasts=[]", "users=7", "weeks=6", "reference=never", "mood=fresh",
        f"arms={{{', '.join(arms)}, never: [curator=none, policy=never, seeds=null]}}", f"out={tmp_path / 'run'}",
    ])  # fmt: skip
    world, seed = world_of(Run(run.path))
    known = worths(world, seed, 7, 6)
    never = run.turns("never").to_pandas().groupby("user")["worth_fresh"].mean()
    for name, i in (("sound", sound), ("vague", vague)):
        gain = (run.turns(name).to_pandas().groupby("user")["worth_fresh"].mean() - never).to_numpy()
        assert known.of([(user, table.contents[i]) for user in range(7)]) == pytest.approx(gain, abs=1e-9)
    assert len(set(known.sound.round(6).ravel().tolist())) > 50


@dataclass(frozen=True)
class Updates:
    """The update log of an arm."""

    rows: Sequence[dict[str, Any]]

    def updates(self, _arm: str) -> "Updates":
        return self

    def to_pylist(self) -> list[dict[str, Any]]:
        return list(self.rows)


def row(op: str, skill: int, text: str | None = None, rating: str | None = None) -> dict[str, Any]:
    section = None if text is None else "context"
    says = {"section": section, "issue": text, "insight": None, "keywords": None}
    return {"user": 0, "skill": skill, "op": op, "rating": rating, **says}


def test_skills_with_enough_ratings_are_judged_whatever_became_of_them() -> None:
    log = [row("ADD", skill, f"text {skill}") for skill in range(5)] + [row("ADD", 5)]
    log += [row("TAG", skill, rating="miss") for skill in (0, 1, 2, 4, 5) for _ in range(3)]
    log += [row("UPDATE", 2, "early"), row("REMOVE", 4)]  # before there are enough ratings
    log += [row("TAG", skill, rating="ok") for skill in (0, 1, 2, 4, 5)]
    log += [
        row("TAG", 1, rating="ok taken back"),
        row("REMOVE", 0),
        row("UPDATE", 2, "late"),
        row("UPDATE", 2, "later"),
    ]
    skills = judged_skills(cast("Run", Updates(log)), "any")
    assert [skill.content for skill in skills] == [Content("context", text) for text in ("text 0", "early", "text 4")]
    assert [skill.removed for skill in skills] == [True, False, False]
    assert [skill.reworded for skill in skills] == [
        None,
        (Content("context", "early"), Content("context", "late")),
        None,
    ]
    assert [skill.ratings for skill in skills] == [[1, 0, 3]] * 3


def test_precision_and_recall_stand_beside_what_a_coin_would_hit() -> None:
    bad = [i % 5 == 0 for i in range(100)]
    perfect = verdict(bad, bad)
    assert (perfect.base, perfect.precision, perfect.recall, perfect.word) == (0.2, 1.0, 1.0, "better than a coin")
    wrong = verdict(bad, [not each for each in bad])
    assert (wrong.precision, wrong.recall, wrong.word) == (0.0, 0.0, "worse")
    half = verdict(bad, [i % 2 == 0 for i in range(100)])
    assert (half.precision, half.recall, half.word) == (0.2, 0.5, "like a coin")
    for nothing in (verdict(bad, [False] * 100), verdict([], []), verdict([False] * 9, [True] * 9)):
        assert nothing.word == "nothing to tell"


def test_of_coins_nineteen_in_twenty_are_called_coins() -> None:
    rng = np.random.default_rng(0)
    bad = rng.random(300) < 0.15
    words = [verdict(bad.tolist(), (rng.permutation(300) < 80).tolist()).word for _ in range(400)]
    assert 0.92 < words.count("like a coin") / 400 < 0.98


@pytest.mark.req("U14")
def test_where_counters_tell_what_is_removed_is_bad(tmp_path: Path) -> None:
    arms = "arms={live: [], never: [policy=never, curator=none]}"
    run = skg_bench.run([
        "experiment=guardian", "contrasts=[]", "users=40", "simulator.volume_spread=0", *TELLS, arms, "reference=never",
        f"out={tmp_path / 'run'}",
    ])  # fmt: skip
    report = analyse(Run(run.path))
    removed = next(line for line in report.page.splitlines() if line.startswith("| live | REMOVE"))
    cells = [cell.strip() for cell in removed.split("|")[1:-1]]
    base, precision = (float(cells[i].rstrip("%")) for i in (3, 5))
    assert precision > base + 15
    assert cells[9] == "better than a coin"
    assert float(cells[10]) > 0.65


def test_a_run_of_another_world_or_without_removals_is_refused_by_name(tmp_path: Path) -> None:
    other = skg_bench.run(["users=1", "weeks=1", "arms={skg: []}", "reference=skg", f"out={tmp_path / 'other'}"])
    with pytest.raises(UsageError, match="is no run of simulator=guardian, whose skills are advice"):
        analyse(Run(other.path))
    short = ["experiment=guardian", "contrasts=[]", "users=1", "weeks=1", "arms={live: []}", "reference=live"]
    idle = skg_bench.run([*short, f"out={tmp_path / 'idle'}"])
    with pytest.raises(UsageError, match="no arm that removes or rewords a skill with 4 ratings; run it for longer"):
        analyse(Run(idle.path))


def test_ratings_that_part_good_from_bad_have_an_auc_of_one_and_a_coin_has_half() -> None:
    log = [row("ADD", skill, f"text {skill}") for skill in range(4)]
    log += [row("TAG", skill, rating="ok" if skill < 2 else "miss") for skill in range(4) for _ in range(4)]
    skills = judged_skills(cast("Run", Updates(log)), "any")
    assert auc(skills, [False, False, True, True]) == 1
    assert auc(skills, [True, True, False, False]) == 0
    assert auc(skills, [False, True, False, True]) == 0.5
    assert np.isnan(auc(skills, [False] * 4))
    assert Verdict(0, 0, 0, 0).word == "nothing to tell"


@pytest.mark.soak
@pytest.mark.req("U14")
@pytest.mark.parametrize(
    ("world", "changes"), [("as it is", ()), ("kinds far apart, nothing wears off or discerns", TELLS)]
)
def test_the_table_of_the_docs_is_what_is_counted(tmp_path: Path, world: str, changes: Sequence[str]) -> None:
    run = skg_bench.run([
        "experiment=guardian", "contrasts=[]", "users=100", "weeks=26", "arms={live: []}", "reference=live", *changes,
        f"out={tmp_path / 'run'}",
    ])  # fmt: skip
    table: Any = analyse(Run(run.path)).parts[0]
    _, _, skills, bad, removed, precision, coin, *_, tell, _, _ = next(row for row in table.rows if row[1] == "REMOVE")
    cells = (world, skills, bad, removed, precision, coin, tell)
    line = f"| {' | '.join(cells)} |".replace("%", " %")
    assert line in (Path(__file__).parents[2] / "docs/guardian.md").read_text("utf-8")
