"""Skills that say something keep all laws: the same bits in any cohort, worker, stack, fork, and logs that replay."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from skg_bench.assistant.pipeline.components import components
from skg_bench.core.arms import Arm
from skg_bench.core.batch import ADD, UPDATE, Batch, blank, joined
from skg_bench.core.content import Content
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.grid import Bool
from skg_bench.core.types import Observation, Skillbooks
from skg_bench.core.world import Reaction
from skg_bench.curator.everything import Everything
from skg_bench.curator.sham import Sham
from skg_bench.embedder.hashing import Hashing
from skg_bench.engine.plan import Plan
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.skillbook import Skillbook, rebuild
from skg_bench.tracker import events, learning_traces
from tests.arms import changed
from tests.laws import world
from tests.laws.test_replay import logged
from tests.laws.writing import check_cohorts, shards
from tests.simulator.logs.logs import recorded, turn, write_csv

USERS, FEW = 24, 4


@dataclass(frozen=True)
class Advising:
    """Captures each answer of the LLM with advice, and words the advice of a skill anew each time that it serves.

    The first skill of a placebo has none: no other was to say anything.
    """

    sees_truth: ClassVar[bool] = False
    reasons: ClassVar[Sequence[str]] = (*Everything.reasons, "worded anew")

    def start(self, n: int) -> None:
        return None

    def offers(self, seen: Observation, state: None) -> Bool:
        return np.zeros(len(seen.text), np.bool_)

    def curate(
        self, seen: Observation, reaction: Reaction, known: KnownFeedback, books: Skillbooks, state: None
    ) -> tuple[None, Batch]:
        _, batch = Everything().curate(seen, reaction, known, books, None)
        hit, contents = np.flatnonzero(seen.hit), seen.context.texts.contents
        again = blank(len(hit))
        again.row[:], again.op[:], again.skill[:], again.reason[:] = hit, UPDATE, seen.skill[hit], 4
        earlier = contents.of(books.content[hit, seen.skill[hit]])
        again.content[:] = [0 if advice is None else contents.add(reworded(advice)) for advice in earlier]
        added = np.flatnonzero(batch.op == ADD)
        words = seen.context.texts.read(batch.text[added], batch.row[added])
        batch.content[added] = [contents.add(advice_on(message)) for message in words]
        return None, joined(batch, again)


def advice_on(message: str) -> Content:
    """What a skill that was captured from this message says."""
    section = "questions" if message.endswith("?") else "requests"
    keywords = tuple(dict.fromkeys("".join(filter(str.isalpha, word)) or "x" for word in message.lower().split()))
    return Content(section, f"asked: {message}", None if len(message) % 3 else f"answer «{message}»", keywords[:3])


def reworded(advice: Content) -> Content:
    """The same advice in other words."""
    return replace(advice, issue=f"{advice.issue}!", insight="worked before")


def advising(arm: Arm) -> Arm:
    """The arm with this curator, unless it captures nothing; inside a placebo where it had one."""
    curator = components(arm).curator
    if curator.reasons:
        curator = Sham(Advising(), curator.content, 0) if isinstance(curator, Sham) else Advising()
    return changed(arm, curator=curator, fork=arm.fork and replace(arm.fork, arm=advising(arm.fork.arm)))


def plan(*arms: str, users: int = USERS) -> Plan:
    """The dense world with arms whose skills say something."""
    made = world.plan(users, arms)
    return replace(made, seed=world.EVEN, embedder=Hashing(384, 0), arms=tuple(map(advising, made.arms)))


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One arm whose skills say something, and its placebo, in one cohort."""
    return world.carry_out(plan("skg", "sham"), tmp_path_factory.mktemp("advised") / "run", USERS, 1000)


def books_of(run: Run, arm: str) -> list[Skillbook]:
    """Each user's book at the end, every state hash on the way checked."""
    updates = logged(run, arm)
    return [rebuild(updates.get(user, []))[0] for user in range(USERS)]


@pytest.mark.req("P40", "P38", "U01")
def test_the_log_alone_rebuilds_what_every_skill_says(advised: Run) -> None:
    last = {row["user"]: row for row in advised.turns("skg", ["user", "book_hash"]).to_pylist()}
    worded = 0
    for user, book in enumerate(books_of(advised, "skg")):
        assert book.hash == last[user]["book_hash"]
        for skill in book.skills:
            first = advice_on(skill.examples[0])
            assert skill.content is not None
            assert skill.content.issue.rstrip("!") == first.issue.rstrip("!")
            assert skill.content.keywords == first.keywords
            worded += skill.content != first
            assert skill.content.insight == (first.insight if skill.content == first else "worked before")
    assert worded > 20


def test_new_words_change_nothing_else_of_a_skill(advised: Run) -> None:
    """The same curator without words of its own takes the same decisions, and its books differ in contents alone."""
    bare = [replace(s, content=None) for book in books_of(advised, "skg") for s in book.skills]
    made = plan("skg")
    silent = replace(made, arms=tuple(changed(arm, curator=Everything()) for arm in made.arms))
    run = world.carry_out(silent, advised.path.parent / "silent", USERS, 1000)
    assert [s for book in books_of(run, "skg") for s in book.skills] == bare
    columns = ["user", "turn", "skill", "serving", "user_satisfaction", "combined"]
    assert run.turns("skg", columns).equals(advised.turns("skg", columns))


def test_the_skills_of_a_placebo_say_what_another_skill_was_to_say(advised: Run) -> None:
    others = 0
    for book in books_of(advised, "sham"):
        for skill in book.skills:
            if skill.content is not None:
                others += skill.content.issue.rstrip("!") != advice_on(skill.examples[0]).issue.rstrip("!")
                assert skill.content.issue.startswith("asked: ")
    assert others > 50


@pytest.mark.req("P38")
def test_traces_of_learning_hold_what_skills_say(advised: Run) -> None:
    assert advised.key  # kept, as that of the shards; only then an identity, which names of traces need
    advised.manifest["identity"] = "0"
    clear, _ = events.write_events(advised, 4, "full")
    operations = [op for op in learned(clear) if op["op"] in ("ADD", "UPDATE")]
    said = {(op["section"], op["issue"], op["insight"], op["keywords"]) for op in operations if "section" in op}
    users = events.traced_users(advised, 4).tolist()
    rows = [row for arm in ("skg", "sham") for user in users for row in logged(advised, arm).get(user, [])]
    assert said == {
        (row["section"], row["issue"], row["insight"], row["keywords"]) for row in rows if row["section"] is not None
    }
    assert len(said) > 20
    hidden, _ = events.write_events(advised, 4, "hash")
    assert not {op.get("issue") for op in learned(hidden)} & {issue for _, issue, _, _ in said}


def learned(path: Path) -> list[dict[str, Any]]:
    """The operations of all traces in a file."""
    traces = [json.loads(line)["trace"] for line in path.read_text("utf-8").splitlines()]
    return [
        op for trace in traces if trace["name"] == learning_traces.UPDATE_TRACE for op in trace["output"]["operations"]
    ]


def test_contents_are_the_same_bits_in_any_cohort_stack_and_fork(tmp_path: Path, advised: Run) -> None:
    arms = ("skg", "sham", "bm25", "probe", "knn", "exp4", "as_before", "donor", "hindsight")
    check_cohorts(tmp_path, plan, arms, FEW, advised, looked_up=False)


def test_workers_change_no_byte_of_shards_with_contents(tmp_path: Path) -> None:
    alone = shards(tmp_path, plan("skg"), USERS, workers=1)
    assert len(alone) == 4
    assert alone == shards(tmp_path, plan("skg"), USERS, workers=2)


def test_contents_on_a_redacted_log_are_redacted_and_their_books_are_rebuilt_all_the_same(tmp_path: Path) -> None:
    log = write_csv(
        tmp_path / "log.csv", [turn("ann", f"2024-03-0{day}T09:00:00", f"tea {day}") for day in range(4, 9)]
    )
    made = replace(plan("skg", users=1), simulator=recorded(log, redact=True), weeks=1)
    run = world.carry_out(made, tmp_path / "run", 1, 1000)
    rows = logged(run, "skg")[0]
    said: list[Any] = [row for row in rows if row["section"] is not None]
    assert said
    for row in said:
        assert "tea" not in "".join(str(row[name]) for name in ("section", "issue", "insight", "keywords"))
    rebuild(rows)
