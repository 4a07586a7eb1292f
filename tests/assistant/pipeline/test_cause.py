"""Why no right skill answered: recomputed turn by turn from the logs and the corpus, and the decision table by hand."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from skg_bench.assistant.pipeline.cause import causes
from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable
from skg_bench.core.assistant import GroundTruth, no_worth
from skg_bench.core.calendar import EPOCH
from skg_bench.core.deciding import Candidates
from skg_bench.core.grid import I32, I64
from skg_bench.core.texts import Texts
from skg_bench.core.types import CAUSES
from skg_bench.core.world import PROCEDURE, STORED, Supposing
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers.corpus import load_corpus
from skg_bench.simulator.answers.judging import Judging
from skg_bench.simulator.answers.procedures import Procedures, Running
from tests.core import samples
from tests.laws import world
from tests.simulator.users import earlier_answers, moment

USERS = 80
ARMS = (
    "skg", "answer", "sham", "without", "masked", "prompted", "epsilon", "always", "exact", "frequency", "random",
    "oracle", "never",
)  # fmt: skip
COLUMNS = ["user", "turn", "time", "intent", "request_type", "answerable", "answer_correct", "fallback_to_llm", "skill",
           "shortlist", "combined", "cause"]  # fmt: skip
Row = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A dense week."""
    return world.run(tmp_path_factory.mktemp("cause") / "run", USERS, 256, 1, ARMS)


@dataclass
class Entry:
    """What a skill stores, as the update log tells it."""

    kind: str | None
    intent: str | None
    right: bool
    born: int
    active: bool = True


def rows(table: Any) -> list[Row]:
    time = table["time"].to_numpy().astype("datetime64[s]").astype(np.int64) - EPOCH
    return [r | {"time": int(t)} for r, t in zip(table.drop_columns(["time"]).to_pylist(), time, strict=True)]


def expected(r: Row, book: dict[int, Entry], ttl: dict[str, int], *, prompted: bool) -> str:
    """The decision table in plain Python."""

    def about(e: Entry) -> bool:
        if r["intent"] is None or not e.active:
            return False
        return bool(
            e.intent == r["intent"] if prompted else e.kind == r["request_type"] and ttl[r["request_type"]]
        )  # no act

    def holds(e: Entry) -> bool:
        return prompted or int(r["time"]) - e.born < ttl[r["request_type"]]

    mine = {s: e for s, e in book.items() if about(e)}
    holding = {s for s, e in mine.items() if holds(e)}
    right = {s for s in holding if prompted or mine[s].right}
    if r["skill"] in right:
        return "none"
    if right:
        listed = right & set(r["shortlist"])
        best = {s for s, c in zip(r["shortlist"], r["combined"], strict=True) if c == max(r["combined"])}
        return "routing" if not listed else "threshold" if r["fallback_to_llm"] and listed & best else "score"
    if not r["fallback_to_llm"]:
        return "threshold" if r["skill"] not in mine else "wrong_source" if r["skill"] in holding else "staleness"
    if r["answerable"] == 0:
        return "novelty"
    return "capture" if not mine else "wrong_source" if holding else "staleness"


def recomputed(run: Run, arm: str) -> list[tuple[Row, str]]:
    corpus = load_corpus()
    ttl = {name: int(corpus.ttl[corpus.intent[i]]) for i, name in enumerate(corpus.types)}
    updates: dict[tuple[int, int], list[Row]] = {}
    for u in rows(run.updates(arm, ["user", "turn", "time", "op", "skill", "source_turn"])):
        updates.setdefault((u["user"], u["turn"]), []).append(u)
    results, book, turn_of = [], dict[int, Entry](), dict[int, Row]()
    for r in rows(run.turns(arm, COLUMNS)):
        if r["turn"] == 0:
            book, turn_of = {}, {}
        turn_of[r["turn"]] = r
        results.append((r, expected(r, book, ttl, prompted=arm == "prompted")))
        for u in updates.get((r["user"], r["turn"]), ()):
            if u["op"] in ("ADD", "UPDATE"):
                source = turn_of[u["source_turn"]]
                kind, intent, right = (source[c] for c in ("request_type", "intent", "answer_correct"))
                book[u["skill"]] = Entry(kind, intent, right, source["time"])
        for u in updates.get((r["user"], r["turn"]), ()):
            if u["op"] == "REMOVE":
                book[u["skill"]].active = False
    return results


def test_the_cause_is_what_the_logs_and_the_corpus_say(run: Run) -> None:
    seen: Counter[str] = Counter()
    for arm in ARMS:
        for r, cause in recomputed(run, arm):
            assert r["cause"] == cause, (arm, r["user"], r["turn"])
            seen[cause] += 1
    assert set(seen) == set(CAUSES) - {"generality", "slot", "tool"}  # those of procedures, see below
    assert min(seen.values()) > 15


def test_a_turn_without_a_cause_is_a_hit_and_where_answers_are_stored_a_right_one(run: Run) -> None:
    for arm in ARMS:
        for r in run.turns(arm, ["cause", "fallback_to_llm", "answer_correct", "serving"]).to_pylist():
            assert (r["cause"] == "none") <= (not r["fallback_to_llm"])
            if r["serving"] == "stored":
                assert (r["cause"] == "none") == r["answer_correct"]


def test_an_oracle_never_chooses_wrongly_nor_serves_what_does_not_hold(run: Run) -> None:
    counts = Counter(run.turns("oracle", ["cause"])["cause"].to_pylist())
    assert set(counts) == {"none", "novelty", "capture", "staleness"}
    assert counts["staleness"] + counts["capture"] < 0.1 * counts["novelty"]
    assert set(run.turns("never", ["cause"])["cause"].to_pylist()) >= {"novelty", "capture"}


# ------------------------------------------------------------------------------------------ the table, row by row


DAILY = Judging(
    np.append(np.arange(9), -2).astype(np.int32), np.append(np.full(9, 86_400), 0),
    Running(Procedures(1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), load_corpus()),
)  # fmt: skip
"""Each request type is an intent of its own; answers hold for a day."""
HOUR = 3600
RIGHT, OTHER, OLD, FALSE = (5, True, HOUR), (6, True, HOUR), (5, True, 90_000), (5, False, HOUR)
Stored = tuple[int, bool, int]  # type, rightness and age of the source


@pytest.mark.parametrize(
    ("skills", "combined", "served", "answerable", "cause"),
    [
        ([RIGHT], [0.9], 0, 1, "none"),
        ([OTHER, RIGHT], [0.9], -1, 1, "routing"),
        ([OTHER, RIGHT], [0.9], 0, 1, "routing"),
        ([RIGHT, OTHER], [0.4, 0.3], -1, 1, "threshold"),
        ([RIGHT, OTHER], [0.4, 0.4], -1, 1, "threshold"),
        ([RIGHT, OTHER], [0.3, 0.4], -1, 1, "score"),
        ([RIGHT, OTHER], [0.8, 0.9], 1, 1, "score"),
        ([RIGHT, OLD], [0.8, 0.9], 1, 1, "score"),
        ([OTHER], [0.9], 0, 0, "threshold"),
        ([OTHER, OLD], [0.9, 0.8], 0, 1, "threshold"),
        ([OLD], [0.9], 0, 0, "staleness"),
        ([FALSE], [0.9], 0, 1, "wrong_source"),
        ([], [], -1, 0, "novelty"),
        ([OLD], [0.1], -1, 0, "novelty"),
        ([OTHER], [0.1], -1, 1, "capture"),
        ([OLD], [0.1], -1, 1, "staleness"),
        ([OLD, FALSE], [0.1], -1, 1, "wrong_source"),
    ],
)
def test_the_first_link_that_failed_is_the_cause(
    skills: list[Stored], combined: list[float], served: int, answerable: int, cause: str
) -> None:
    """Candidates are the first skills of the book, as many as there are scores."""
    words, similarity = Texts([""] * 9, [], None), samples.table(np.random.default_rng(0), 9, 8)
    table, event, n = SkillbookTable(1).open(words, similarity), moment(np.array([5], np.int32)), len(skills)
    kind, right, age = np.array([*skills, OTHER]).T  # what skills store, and an answer that none does
    ledger = earlier_answers(1, kind.astype(np.int32), right.astype(np.bool_), age)
    table.active[0, :n], table.answer[0, :n] = True, np.arange(n)

    def judge(row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        return DAILY.judge(ledger, event, row, answer, supposing)

    pad, none, blank = 3 - len(combined), np.zeros((1, 3), np.int32), np.zeros((1, 3))
    shortlist = np.array([[*range(len(combined)), *[-1] * pad]], np.int32)
    scores = np.array([[*combined, *[-1.0] * pad]])
    candidates = Candidates(shortlist, blank, blank, None, scores, none, blank, none, none[0, :1], none)
    skill, before = np.array([served], np.int32), np.array([answerable], np.int32)
    truth = GroundTruth(judge, event.type, before, before > 0, no_worth)
    (code,) = causes(truth, table, candidates, skill=skill, how=np.array([STORED], np.int32))
    assert CAUSES[code] == cause


KIND = np.append(np.array([0, 0, 1, 1]), -2).astype(np.int32)  # two intents, of two request types each
MEANT, TWIN, ELSE, LIE, DULL = (0, True, True), (1, True, True), (2, True, True), (1, False, True), (1, True, False)


@pytest.mark.parametrize(
    ("skills", "combined", "served", "familiar", "cause"),
    [
        ([MEANT], [0.9], 0, True, "none"),
        ([TWIN], [0.9], 0, True, "none"),
        ([TWIN], [0.2], -1, True, "threshold"),
        ([ELSE, TWIN], [0.9], 0, True, "routing"),
        ([ELSE], [0.9], 0, True, "threshold"),
        ([DULL], [0.9], 0, True, "generality"),
        ([LIE], [0.9], 0, True, "wrong_source"),
        ([DULL], [0.1], -1, True, "generality"),
        ([LIE], [0.1], -1, True, "wrong_source"),
        ([ELSE], [0.1], -1, True, "capture"),
        ([ELSE], [0.1], -1, False, "novelty"),
    ],
)
def test_the_first_link_that_failed_is_the_cause_of_procedures_too(
    skills: list[tuple[int, bool, bool]], combined: list[float], served: int, familiar: bool, cause: str
) -> None:
    """Skills are request type, rightness and generality of what they were made of; asked is for type 0."""
    procedures = Running(Procedures(1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), load_corpus())
    judging = Judging(KIND, np.append(np.full(4, 60), 0), procedures)
    words, similarity = Texts([""] * 9, [], None), samples.table(np.random.default_rng(0), 9, 8)
    table, event, n = SkillbookTable(1).open(words, similarity), moment(np.array([0], np.int32)), len(skills)
    kind, right, general = np.array([*skills, ELSE]).T
    ledger = earlier_answers(
        1, kind.astype(np.int32), right.astype(np.bool_), np.full(n + 1, HOUR), None, general.astype(np.bool_)
    )
    table.active[0, :n], table.answer[0, :n] = True, np.arange(n)

    def judge(row: I64, answer: I32, supposing: Supposing = "as given") -> I32:
        return judging.judge(ledger, event, row, answer, supposing)

    pad, none, blank = 3 - len(combined), np.zeros((1, 3), np.int32), np.zeros((1, 3))
    shortlist = np.array([[*range(len(combined)), *[-1] * pad]], np.int32)
    scores = np.array([[*combined, *[-1.0] * pad]])
    candidates = Candidates(shortlist, blank, blank, None, scores, none, blank, none, none[0, :1], none)
    truth = GroundTruth(judge, event.type, np.zeros(1, np.int32), np.array([familiar]), no_worth)
    (code,) = causes(truth, table, candidates, skill=np.array([served], np.int32), how=np.array([PROCEDURE], np.int32))
    assert CAUSES[code] == cause
