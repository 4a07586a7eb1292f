"""Jobs that take time: whatever their order, what each rule for conflicts keeps, loses and reports."""

from collections import Counter
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.app.compose import compose
from skg_bench.app.composed_arms import arms
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.pipeline.conflicts import OVERWRITTEN
from skg_bench.assistant.pipeline.in_time import InTime, jobs_left
from skg_bench.assistant.pipeline.learning_time import Conflict, LearningTime
from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable, Stamp, Stored
from skg_bench.assistant.pipeline.stack import stacked
from skg_bench.assistant.pipeline.under_way import BegunJobs, TurnJobs, UnderWay
from skg_bench.core.batch import ADD, REMOVE, TAG, TAKEN_BACK, UPDATE, Batch, blank
from skg_bench.core.content import Content
from skg_bench.core.draws import key
from skg_bench.core.errors import UsageError
from skg_bench.core.learning_jobs import APPLIED, NO_JOBS, REFUSED, UNDER_WAY, Jobs
from skg_bench.core.texts import Texts
from skg_bench.engine.vectors import Rows
from tests.core import samples

SAYS = ["wait a day", "wait a day please", "count your hours", "ask a friend", "look at last month", "write it down"]
FIRST = 3  # skills that the book begins with
CALLS = LearningTime(4.0, 0.43, 10.0, 6.0, "rebase", 0.7)


@dataclass
class Desk:
    """The book of one user, and the jobs that change it."""

    rule: Conflict
    clock: int = 0
    running: int = 0
    ended: list[Any] = field(default_factory=list)
    applied: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        texts = Texts(["message"], ["name"], None)
        self.keys = [texts.contents.add(Content("advice", issue)) for issue in SAYS]
        self.table = SkillbookTable(1).open(texts, Rows(samples.vectors(np.random.default_rng(0), 1, 384)))
        batch = self.batch([(ADD, -1, i) for i in range(FIRST)])
        zero, none = np.zeros(1, np.int64), np.full(1, -1, np.int32)
        self.table.apply(
            batch, Stamp(zero, zero, none, none), Stored(np.zeros(FIRST, np.int64), np.full(FIRST, -1, np.int32))
        )
        time = replace(CALLS, conflict=self.rule)
        stack = SimpleNamespace(shared=SimpleNamespace(jobs=time), reasons=("job", OVERWRITTEN))
        self.jobs = UnderWay(1)
        self.state: Any = SimpleNamespace(
            table=self.table, under_way=self.jobs, stack=stack,
            time=np.zeros((1, 1), np.int64), answer=np.full((1, 1), -1, np.int32),
        )  # fmt: skip
        self.query: Any = SimpleNamespace(
            turn=0, time=zero, local=zero, number=np.zeros(1, np.int32), text=np.zeros(1, np.int32), texts=texts
        )

    def batch(self, operations: list[tuple[int, int, int]]) -> Batch:
        """Operations from (op, skill, rating or what it says)."""
        made = blank(len(operations))
        for i, (op, skill, what) in enumerate(operations):
            made.op[i], made.skill[i], made.row[i], made.reason[i] = op, skill, 0, 0
            if op == TAG:
                made.rating[i] = what
            elif op != REMOVE:
                made.content[i], made.name[i] = self.keys[what], 1
        return made

    def begin(self, operations: list[tuple[int, int, int]], end: int) -> None:
        """A job reads the book now."""
        ops = self.batch(operations)
        row, begun = np.zeros((2, 1), np.int32)
        start, ending = np.array([self.clock]), np.array([end])
        table, writes = self.table, self.jobs.writes.copy()
        running = BegunJobs(row, begun, start, ending, writes, table.n_skills.copy(), table.version.copy())
        self.jobs.add(running, ops, job(len(operations)))

    def end(self, limit: int) -> None:
        """Those that end by then write."""
        turn_jobs = TurnJobs.begin(np.full(1, -1, np.int32))
        InTime(self.state, self.query, turn_jobs).end(np.array([limit]))
        self.ended += turn_jobs.ended
        self.applied += turn_jobs.applied
        self.clock = limit

    @property
    def active(self) -> list[int]:
        """Ids of active skills."""
        return np.flatnonzero(self.table.active[0, : self.table.n_skills[0]]).tolist()

    @property
    def book(self) -> Counter[tuple[int, ...]]:
        """What active skills say, with their ratings."""
        t = self.table
        return Counter(
            (int(t.content[0, s]), int(t.ok[0, s]), int(t.partial[0, s]), int(t.miss[0, s])) for s in self.active
        )

    def reported(self, name: str) -> int:
        """Over all jobs."""
        return sum(int(getattr(course, name).sum()) for _, course in self.ended)


def job(operations: int) -> Jobs:
    """What is logged of one job."""
    blank_row = Jobs(**{name: np.zeros(1, getattr(NO_JOBS, name).dtype) for name in Jobs.__slots__})
    count = np.array([operations], np.int32)
    return replace(blank_row, result=np.array([APPLIED], np.int32), operations=count)


Wanted = list[tuple[int, int, list[tuple[int, int]]]]


@st.composite
def days(draw: st.DrawFn) -> Wanted:
    """Jobs: when they begin, how long they take, and what they do: an operation, and a number to choose with."""
    operation = st.tuples(st.sampled_from([ADD, UPDATE, TAG, TAG, REMOVE]), st.integers(0, 59))
    one = st.tuples(st.integers(0, 30), st.integers(1, 12), st.lists(operation, min_size=0, max_size=4))
    return sorted(draw(st.lists(one, min_size=2, max_size=7)))


def proposals(desk: Desk, wanted: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Operations on skills that are active now, each at most once updated or removed."""
    made, touched = [], set[int]()
    for op, number in wanted:
        active = [s for s in desk.active if s not in touched]
        if op == ADD:
            made.append((ADD, -1, number % len(SAYS)))
        elif active:
            skill = active[number % len(active)]
            if op != TAG:
                touched.add(skill)
            made.append((op, skill, number % (3 if op == TAG else len(SAYS))))
    return [o for o in made if o[0] != TAG or o[1] not in {s for op, s, _ in made if op == REMOVE}]


def lived(
    rule: Conflict, jobs: list[tuple[int, int, list[tuple[int, int]]]]
) -> tuple[Desk, list[tuple[int, int, int]]]:
    """All jobs, one beside the other, and all that they proposed."""
    desk, proposed, busy = Desk(rule), list[tuple[int, int, int]](), 0
    for begin, length, wanted in jobs:
        start = max(begin, busy) if rule == "serial" else begin
        desk.end(start)
        operations = proposals(desk, wanted)
        desk.begin(operations, start + length)
        proposed, busy = proposed + operations, max(busy, start + length)
    desk.end(10**9)
    return desk, proposed


@pytest.mark.req("P26")
@settings(deadline=None, max_examples=100)
@given(days())
def test_rebase_keeps_every_rating_once_loses_no_addition_and_accounts_for_every_operation(jobs: Any) -> None:
    desk, proposed = lived("rebase", jobs)
    applied = Counter(int(op) for _, batch, _ in desk.applied for op in batch.op)
    merged, aside, misdirected = (desk.reported(name) for name in ("merged", "aside", "misdirected"))
    assert sum(applied.values()) + aside + misdirected == len(proposed)
    wanted = Counter(op for op, _, _ in proposed)
    assert applied[ADD] + merged == wanted[ADD]
    t, n = desk.table, int(desk.table.n_skills[0])
    assert n == FIRST + applied[ADD]
    ratings = sum(int(column[0, :n].sum()) for column in (t.ok, t.partial, t.miss))
    assert ratings == applied[TAG]
    lost = misdirected - (wanted[UPDATE] - applied[UPDATE] - aside) - (wanted[REMOVE] - applied[REMOVE])
    assert applied[TAG] == wanted[TAG] + merged - lost
    assert desk.reported("duplicated") == desk.reported("overwritten") == 0


@pytest.mark.req("P42")
@settings(deadline=None, max_examples=100)
@given(days())
def test_a_blind_write_leaves_the_book_as_it_was_read_with_the_batch(jobs: Any) -> None:
    desk = Desk("blind")
    document: dict[object, list[int]] = {s: [desk.keys[s], 0, 0, 0] for s in range(FIRST)}
    shown: dict[int, object] = {s: s for s in range(FIRST)}  # skills of the table, in the document
    waiting: list[tuple[int, int, dict[object, list[int]], list[tuple[int, object, int]]]] = []

    def write(limit: int) -> None:
        nonlocal document
        for at in sorted(w for w in waiting if w[0] <= limit):
            waiting.remove(at)
            desk.end(at[0])
            _, _, read, operations = at
            if operations:
                document = {name: list(skill) for name, skill in read.items()}
            for op, name, what in sorted(operations, key=lambda o: (TAG, ADD, UPDATE, REMOVE).index(o[0])):
                if op == ADD:
                    document[object()] = [desk.keys[what], 0, 0, 0]
                elif op == TAG:
                    document[name][1 + what] += 1
                elif op == UPDATE:
                    document[name][0] = desk.keys[what]
                else:
                    del document[name]
            assert desk.book == Counter(map(tuple, document.values()))
        desk.end(limit)

    for number, (begin, length, wanted) in enumerate(jobs):
        write(10 * begin)
        left_over = Counter(map(tuple, document.values()))
        assert desk.book == left_over
        shown = {}
        unused = list(document.items())
        for s in desk.active:  # which skill of the document each of the table is: any that is the same
            t = desk.table
            same = (int(t.content[0, s]), int(t.ok[0, s]), int(t.partial[0, s]), int(t.miss[0, s]))
            name = next(name for name, skill in unused if tuple(skill) == same)
            unused = [(other, skill) for other, skill in unused if other is not name]
            shown[s] = name
        operations = proposals(desk, wanted)
        end = 10 * (begin + length) + number  # of no other job
        desk.begin(operations, end)
        read = {name: list(skill) for name, skill in document.items()}
        waiting.append((end, number, read, [(op, shown.get(s), what) for op, s, what in operations]))
    write(10**9)


@pytest.mark.req("P26")
def test_a_replayed_batch_adds_twice_and_rates_what_is_gone() -> None:
    desk = Desk("replay")
    desk.begin([(ADD, -1, 4), (REMOVE, 1, 0)], 10)
    desk.begin([(ADD, -1, 4), (TAG, 1, 2), (TAG, 0, 0)], 11)
    desk.end(20)
    assert (desk.reported("duplicated"), desk.reported("misdirected"), desk.reported("meanwhile")) == (1, 1, 2)
    assert desk.book == Counter({(desk.keys[0], 1, 0, 0): 1, (desk.keys[2], 0, 0, 0): 1, (desk.keys[4], 0, 0, 0): 2})


@pytest.mark.req("P26")
def test_what_says_nearly_the_same_is_a_rating_of_what_was_added_meanwhile() -> None:
    desk = Desk("rebase")
    desk.begin([(REMOVE, 0, 0)], 5)
    desk.end(6)
    desk.begin([(ADD, -1, 0)], 10)
    desk.begin([(ADD, -1, 1)], 11)
    desk.end(20)
    assert desk.reported("merged") == 1
    assert desk.book[(desk.keys[0], 1, 0, 0)] == 1


def test_jobs_that_wait_for_one_another_meet_nobody() -> None:
    desk, _ = lived("serial", [(0, 9, [(ADD, 3)]), (1, 9, [(ADD, 3)]), (2, 1, [(TAG, 0)])])
    assert desk.reported("meanwhile") == 0
    assert desk.table.n_skills[0] == FIRST + 2


def test_what_is_under_way_when_a_user_leaves_is_told_and_not_applied() -> None:
    desk = Desk("rebase")
    desk.begin([(ADD, -1, 3)], 50)
    told = jobs_left(desk.jobs, 0)
    assert told is not None
    jobs, course = told
    assert (jobs.result.tolist(), jobs.version_written.tolist(), course.end.tolist()) == ([UNDER_WAY], [-1], [50])
    desk.end(100)
    assert desk.table.n_skills[0] == FIRST


def test_durations_have_their_median_and_their_limit() -> None:
    took, late = CALLS.drawn(key(0, np.arange(20_000))) or (np.zeros(0), np.zeros(0))
    assert np.median(took) == pytest.approx(8350, rel=0.03)  # the median of a sum of two log-normals of median 4 s
    assert 0.02 < late.mean() < 0.05
    assert took.max() <= 20_000
    assert replace(CALLS, call_seconds=None).drawn(key(0, np.arange(3))) is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"call_seconds": -1}, "jobs.call_seconds=-1, valid are seconds from 0 to 86400"),
        ({"call_seconds": float("nan")}, "jobs.call_seconds=nan"),
        ({"spread": 9}, "jobs.spread=9"),
        ({"timeout_seconds": float("inf")}, "jobs.timeout_seconds=inf"),
        ({"apart_seconds": -3}, "jobs.apart_seconds=-3"),
        ({"conflict": "merge"}, "jobs.conflict='merge', valid are rebase, replay, blind, serial"),
        ({"alike": 0}, "jobs.alike=0"),
    ],
)
def test_what_no_job_can_take_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("(", r"\(")):
        replace(CALLS, **values)


def test_a_curator_that_asks_no_model_takes_no_time() -> None:
    with pytest.raises(UsageError, match="curator=SKG learns at once; take curator=reflective"):
        arms(compose(["jobs=model_calls"]).arms, COMMAND_LINE)


def test_a_rating_taken_back_that_is_not_there_is_misdirected_and_nothing_was_written() -> None:
    desk = Desk("rebase")
    desk.begin([(TAG, 0, TAKEN_BACK)], 10)
    desk.begin([(TAG, 1, 0)], 20)
    desk.begin([(TAG, 1, TAKEN_BACK), (TAG, 1, 2)], 30)
    desk.end(40)
    told = [
        (int(jobs.result[0]), int(jobs.operations[0]), int(jobs.refused[0]), int(jobs.version_written[0]) >= 0,
         int(course.misdirected[0]))
        for jobs, course in desk.ended
    ]  # fmt: skip
    assert told == [(REFUSED, 0, 1, False, 1), (APPLIED, 1, 0, True, 0), (APPLIED, 2, 0, True, 0)]
    assert desk.book[(desk.keys[1], 0, 0, 1)] == 1


def test_a_job_of_which_nothing_is_left_is_refused() -> None:
    desk = Desk("rebase")
    desk.begin([(REMOVE, 0, 0)], 10)
    desk.begin([(TAG, 0, 0), (UPDATE, 0, 4)], 20)
    desk.end(30)
    jobs, course = desk.ended[-1]
    assert (jobs.result.tolist(), jobs.operations.tolist(), jobs.refused.tolist()) == ([REFUSED], [0], [2])
    assert (jobs.version_written.tolist(), course.misdirected.tolist()) == ([-1], [2])


def test_a_fork_may_begin_to_wait_and_may_not_stop_while_jobs_are_under_way() -> None:
    slow, fork = "slow: [jobs=model_calls]", "fork=%s@3, policy=always"
    world = ["experiment=guardian", "reference=live", "contrasts=[]"]
    made = arms(compose([*world, f"arms={{live: [], later: [{fork % 'live'}, jobs=model_calls]}}"]).arms, COMMAND_LINE)
    assert OVERWRITTEN in stacked(made[1:]).reasons
    with pytest.raises(UsageError, match="learning jobs of slow under way at the fork would never end"):
        arms(compose([*world, f"arms={{live: [], {slow}, stopped: [{fork % 'slow'}]}}"]).arms, COMMAND_LINE)
