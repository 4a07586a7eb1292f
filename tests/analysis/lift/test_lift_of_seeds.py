"""Planted skills with which all users begin: the harmful one has the lowest lift, the good one the highest, and the
sham is shown equivalent to nothing; by right answers to tasks, and by worth where skills are advice.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.comparison.contrasts import MARGINS
from skg_bench.analysis.lift.disclosure import prompt_words
from skg_bench.analysis.lift.first_order import first_order
from skg_bench.analysis.lift.seed_lifts import seed_lifts
from skg_bench.app.skill_lift import SkillWorths, show_worths
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.library.strategies import packaged, strategies
from skg_bench.skillbook.skill_files import SKILL_FILE, skill_text
from tests.analysis.lift.test_lift_of_advice import planted
from tests.app.test_cli import call
from tests.simulator.tasks.test_tasks import played

SERVED = "serving=prompted, policy.threshold=0.3, curator=none, reranker=identity, signals.preference=0"
NAMES = ("harmful", "sham", "good")
USERS = 10
DOCS = Path(__file__).parents[3] / "docs/skillbooks.md"
MADE = {"harmful": "values-check", "sham": "budget-goal", "good": "total-cost"}  # kinds of advice


def asks(user: int, place: int) -> int:
    """Times that a user asks for a task: users differ."""
    return 3 + (user + place) % 3


def folder_of(root: Path, says: Mapping[str, tuple[str, str]]) -> Path:
    """Skills with these descriptions and bodies."""
    for name, (description, body) in says.items():
        (root / name).mkdir(parents=True)
        (root / name / SKILL_FILE).write_text(skill_text(name, description, {}, body), "utf-8")
    return root


@pytest.fixture(scope="module")
def tasks(once: Callable[..., Path]) -> Run:
    """Each user has three tasks. The model alone solves the first two, as their messages say how."""
    how = 'Procedure for tasks with the words "{}": work it out.\ntask: {}'
    task = {"harmful": "arithmetic problem 3 4", "sham": "multiplication 5 6", "good": "prime numbers 10 20"}
    message = {
        "harmful": how.format("arithmetic problem", task["harmful"]),
        "sham": how.format("multiplication", task["sham"]),
        "good": f"task: {task['good']}",
    }
    right = {"harmful": "7", "sham": "30", "good": "4"}
    says = {
        "harmful": (f"The answer is here for {task['harmful']}", f"5 to the task: {task['harmful']}"),
        "sham": (f"Of interest for {task['sham']}", "Keys are made of metal."),
        "good": (f"The answer is here for {task['good']}", f"4 to the task: {task['good']}"),
    }
    rows = [
        {"user": f"u{user}", "time": f"2026-01-{5 + ask:02d}T{9 + place:02d}:00:00", "message": message[name],
         "reference": right[name], "kind": name}
        for user in range(USERS) for place, name in enumerate(NAMES) for ask in range(asks(user, place))
    ]  # fmt: skip

    def make(folder: Path) -> Run:
        seeds = folder_of(folder.with_name("seeds-of-tasks"), says)
        folder.parent.mkdir(parents=True, exist_ok=True)
        arms = f"arms={{never: [policy=never, curator=none], seeded: [seeds={seeds}, {SERVED}]}}"
        return played(folder.parent, arms, f"out={folder}", rows=rows)

    return Run(once("tasks-of-seeds", make))


@pytest.fixture(scope="module")
def advised(once: Callable[..., Path]) -> Run:
    """Kinds of advice that users listen to about always, one of them also where that does harm, and a sham that moves
    them as much as the generic question does; nothing wears off.
    """

    def make(folder: Path) -> Run:
        kinds = folder.with_name("kinds-of-seeds")
        shutil.copytree(packaged(), kinds)
        text = (kinds / "kinds.toml").read_text()
        for name, effects in (("harmful", (3.0, 0.0)), ("sham", (-0.6, 0.0)), ("good", (3.0, 6.0))):
            text = planted(text, MADE[name], *effects)
        (kinds / "kinds.toml").write_text(text)
        table = strategies(str(kinds))
        place = {name: table.kinds.index(kind) for name, kind in MADE.items()}
        texts = {name: table.contents[int(np.flatnonzero(table.kind == at)[0])] for name, at in place.items()}
        says = {name: (each.issue, f"{each.insight} {' '.join(each.keywords)}") for name, each in texts.items()}
        generic = -0.4 + table.persuades[place["sham"]] - table.persuades.mean()
        seeds = folder_of(folder.with_name("seeds-of-advice"), says)
        alike = [f"simulator.{key}=0" for key in ("liking", "liking_here", "fits", "habit", "annoyance")]
        return skg_bench.run([
            "simulator=guardian", f"simulator.strategies={kinds}", *alike, f"simulator.generic={generic:.12f}",
            "simulator.blocked=3", "simulator.wanted_share=0.6",
            "embedder=guardian_minilm", "serving=prompted", "reranker=identity", "signs=pause",
            "router=described", "policy=uniform", "curator=none", "contrasts=[]", "reference=never",
            f"arms={{never: [policy=never], seeded: ['seeds={seeds}']}}",
            "users=60", "weeks=10", "seed=4", "workers=1", f"out={folder}",
        ], progress=False)  # fmt: skip

    return Run(once("advised-seeds", make))


@pytest.mark.parametrize("world", ["tasks", "advised"])
def test_harmful_is_lowest_good_is_highest_and_a_sham_is_equivalent_to_nothing(
    world: str, request: pytest.FixtureRequest
) -> None:
    run: Run = request.getfixturevalue(world)
    seeds = seed_lifts(first_order(run, "seeded", "never"), MARGINS["utility"])
    assert [seed.name.split("/")[-1] for seed in seeds] == list(NAMES)
    assert [seed.verdict for seed in seeds] == ["hurts", "equivalent to nothing", "helps"]
    assert all(seed.served > 30 for seed in seeds)
    assert seeds[0].high < 0 < seeds[2].low
    code, printed, _ = call("skills", str(run.path), "--arm", "seeded")
    assert code == 0
    lines = [line for line in printed.splitlines() if line.startswith(NAMES) and "lift" not in line]
    assert [re.split(r"\s{2,}", line.strip())[-1] for line in lines[-3:]] == [seed.verdict for seed in seeds]


def test_the_docs_have_the_figures_of_these_worlds(tasks: Run, advised: Run) -> None:
    worlds = {f"tasks, {USERS} users, 12 turns each": tasks, "advice by worth, 60 users, 10 weeks": advised}
    for name, run in worlds.items():
        seeds = seed_lifts(first_order(run, "seeded", "never"), MARGINS["utility"])
        cells = [f"`{seed.a_turn.mean:+z.3f}`, {seed.verdict}" for seed in seeds]
        row = " | ".join([name, f"{sum(seed.served for seed in seeds):,}", *cells])
        assert f"| {row} |" in DOCS.read_text("utf-8")


def test_what_differs_from_user_to_user_is_inconclusive(tasks: Run) -> None:
    """A skill that helps half of the users as much as it hurts the others is shown to do neither, nor nothing."""
    lifts = first_order(tasks, "seeded", "never")
    signs = np.where(lifts.user % 2, 1.0, -1.0)[:, None]
    assert {seed.verdict for seed in seed_lifts(replace(lifts, lift=lifts.lift * signs), 1e-9)} == {"inconclusive"}


def test_users_who_are_all_alike_and_skills_that_nobody_was_served_give_no_verdict(tasks: Run) -> None:
    lifts = first_order(tasks, "seeded", "never")
    alike = replace(lifts, lift=np.ones_like(lifts.lift), turns=np.full_like(lifts.turns, 5))
    assert {seed.verdict for seed in seed_lifts(alike, 0.005)} == {"inconclusive"}
    assert {seed.verdict for seed in seed_lifts(replace(lifts, served=0 * lifts.served), 0.005)} == {"never served"}


def test_two_users_are_said_to_decide_nothing(tasks: Run, capsys: pytest.CaptureFixture[str]) -> None:
    lifts = first_order(tasks, "seeded", "never")
    two = lifts.user < 2
    names = ("user", "skill", "born", "served", "right", "lift", "squares", "decisive", "ratings")
    rows = {name: getattr(lifts, name)[two] for name in names}
    name = [each for each, kept in zip(lifts.name, two, strict=True) if kept]
    few = replace(lifts, users=lifts.users[:2], turns=lifts.turns[:2], name=name, **rows)
    for each in (few, lifts):
        show_worths(SkillWorths(tasks, "seeded", "never", each, np.full(len(each.skill), np.nan), None), None)
        assert ("2 users decide nothing" in capsys.readouterr().out) == (each is few)


def test_books_that_began_empty_have_no_such_table(tasks: Run) -> None:
    lifts = first_order(tasks, "seeded", "never")
    assert seed_lifts(replace(lifts, born=lifts.born + 2), 0.005) == ()


def test_words_of_descriptions_and_of_bodies_are_counted_apart(tasks: Run, advised: Run) -> None:
    words = prompt_words(tasks, "seeded")
    assert words is not None
    times = [sum(asks(user, place) for user in range(USERS)) for place in range(len(NAMES))]
    assert words.turns == sum(times)
    assert words.read == np.dot(times, (8, 5, 8))  # the body of the skill that was served
    assert words.listed == np.dot(times, (9, 6, 9))  # and its description: others are compared, not read
    assert prompt_words(tasks, "never") is None
    listed = prompt_words(advised, "seeded")
    assert listed is not None
    issues = advised.updates("seeded", ["issue", "insight"], [0]).slice(0, 3).to_pylist()
    assert listed.listed == listed.turns * sum(len(each["issue"].split()) for each in issues)
    assert listed.whole == listed.turns * sum(len(each["insight"].split()) for each in issues)
    assert 0 < listed.read < listed.whole / 2
