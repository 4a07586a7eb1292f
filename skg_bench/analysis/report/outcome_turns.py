"""Users of a domain with outcomes, packed for the page: what they brought, what was said, what came of it.

The words of the domain say which columns tell that (runfolder/telling.py: TurnPanel). A user is columns of small
integers and texts once, as in `people.py`; `outcome.js` shows them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from skg_bench.analysis.report.people import Words, columns_by_user, fitting_turns, local_times, thousandth, thousandths
from skg_bench.analysis.report.timeline import (
    Course,
    JobOnTimeline,
    LaterAnswer,
    OutcomeTimeline,
    ShownSkill,
    WrittenOperation,
)
from skg_bench.core.errors import UsageError
from skg_bench.core.learning_jobs import COURSE_COUNTS
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.telling import TurnPanel

_TURN = ("time", "message", "serving", "skill", "propensity", "shortlist", "combined", "answer_correct")
_SERVED = {"silent": 2, "prompted": 1}  # codes of the page; 0: somebody spoke without a skill
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NO_COLUMNS: Mapping[str, list[Any]] = {}
Columns = Mapping[str, list[Any]]


Endings = Mapping[str, Mapping[int, Mapping[str, list[Any]]]]  # arm -> user -> column


def endings(run: Run, users: Sequence[int]) -> Endings:
    """Acts of these users at their turns, by arm."""
    (panel,) = run.telling.turn
    return {arm: columns_by_user(run.turns(arm, [panel.did], users)) for arm in run.arms}


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels of the columns that a panel shows."""

    who: Sequence[str]
    did: Sequence[str]
    later: Sequence[str]

    @classmethod
    def of(cls, run: Run, panel: TurnPanel) -> "Levels":
        """Levels in a run's domain.

        Raises UsageError for a panel of a column or a kind of feedback that there is not.
        """
        known = {each.name: each.levels for each in run.domain.outcome}
        feedback = run.domain.feedback()
        for name, valid in ((panel.who, known), (panel.did, known), (panel.later, feedback)):
            if len(valid.get(name, ())) not in range(1, len(_DIGITS) + 1):
                raise UsageError(
                    f"the page of {run.path} shows {name!r}; valid are columns of words: {', '.join(valid)}"
                )
        return cls(known[panel.who], known[panel.did], feedback[panel.later])


def outcome_settings(run: Run, panel: TurnPanel) -> dict[str, Any]:
    """Words and levels for `outcome.js`."""
    return {**asdict(Levels.of(run, panel)), "words": asdict(panel)}


def outcome_turns(
    run: Run, arm: str, users: Sequence[int], cap: int, of_all: Endings | None = None
) -> dict[int, OutcomeTimeline]:
    """Turns of these users in `arm` as the page needs them, by user id. `of_all`: `endings` of these users, which are
    read if not given.
    """
    (panel,) = run.telling.turn
    levels = Levels.of(run, panel)
    shown = [panel.who, panel.did, panel.wanted, panel.kind, *(worth.column for worth in panel.worths)]
    turns = columns_by_user(run.turns(arm, [*_TURN, *shown], users))
    updates, feedback, jobs = (
        columns_by_user(log(arm, None, users)) for log in (run.updates, run.feedback, run.learning)
    )
    ended = endings(run, users) if of_all is None else of_all
    return {
        user: _packed(
            panel,
            levels,
            {**turns[user], "clock": local_times(run, turns[user]["time"])},
            updates.get(user, NO_COLUMNS),
            feedback.get(user, NO_COLUMNS),
            jobs.get(user, NO_COLUMNS),
            {other: by_arm[user][panel.did] for other, by_arm in ended.items() if user in by_arm},
            cap,
        )
        for user in users
        if user in turns
    }


def _packed(
    panel: TurnPanel,
    levels: Levels,
    turns: Columns,
    updates: Columns,
    feedback: Columns,
    jobs: Columns,
    arms: Mapping[str, Sequence[str]],
    cap: int,
) -> OutcomeTimeline:
    n, words = len(turns["turn"]), Words()
    keep = fitting_turns(n, cap)
    start, run_start = turns["clock"][0], turns["time"][0]
    operations = _rows(updates)
    texts = _Texts(operations, _begun(jobs))
    spoken = [texts.at(turns["skill"][i], turns["turn"][i]) for i in keep]
    shown_turns = {turns["turn"][i] for i in keep}
    return OutcomeTimeline(
        n=n,
        start=start.isoformat(),
        turn=[turns["turn"][i] for i in keep],
        time=[int((turns["clock"][i] - start).total_seconds()) for i in keep],
        message=[words(turns["message"][i]) for i in keep],
        who=[levels.who.index(turns[panel.who][i]) for i in keep],
        did=[levels.did.index(turns[panel.did][i]) for i in keep],
        served=[_SERVED.get(turns["serving"][i], 0) for i in keep],
        skill=[words(text) for text in spoken],
        propensity=thousandths(turns["propensity"][i] for i in keep),
        shown=[_shown(turns, i, texts, words) for i in keep],
        correct=[int(turns["answer_correct"][i]) for i in keep],
        wanted=[int(turns[panel.wanted][i]) for i in keep],
        kind=[words(turns[panel.kind][i]) for i in keep],
        worths=[thousandths(turns[worth.column][i] for i in keep) for worth in panel.worths],
        later=_later(panel, levels, feedback),
        jobs=[_job(job, words, run_start) for job in _rows(jobs)],
        updates=[
            WrittenOperation(
                op["turn"], op["op"], words(texts.at(op["skill"], op["turn"] + 1)), words(op["section"]),
                words(op["rating"]), op["uses"], words(op["reason"]), op["about"], op["book_version"],
            )
            for op in operations
            if op["turn"] < 0 or op["turn"] in shown_turns
        ],
        arms={arm: "".join(_DIGITS[levels.did.index(did[i])] for i in keep) for arm, did in arms.items()},
        causes={},
        words=words.texts,
    )  # fmt: skip


def _begun(jobs: Columns) -> dict[tuple[int, int], int]:
    """Turn at which the job began that learned from a turn and wrote a version, by (about, version)."""
    return {(job["about"], job["version_written"]): job["turn"] for job in _rows(jobs)}


class _Texts:
    """Texts of each skill, turn by turn. What a job wrote that began at an earlier turn (`_begun`) was there before
    the decision of the turn at which it is logged.
    """

    def __init__(self, operations: Sequence[Mapping[str, Any]], begun: Mapping[tuple[int, int], int]) -> None:
        self._since: dict[int, list[tuple[int, str]]] = {}
        for op in operations:
            if op["section"] is not None:
                between = " " if op["issue"].endswith((".", "!", "?")) else ": "
                text = op["issue"] if op["insight"] is None else between.join((op["issue"], op["insight"]))
                turn, job = op["turn"], (op["about"], op["book_version"])
                since = turn - 1 if begun.get(job, turn) < turn else turn
                self._since.setdefault(op["skill"], []).append((since, text))

    def at(self, skill: int, turn: int) -> str | None:
        """Words of the skill when turn `turn` began; None: no skill. A skill without a text is named by its number."""
        if skill < 0:
            return None
        known = [text for since, text in self._since.get(skill, ()) if since < turn]
        return known[-1] if known else f"skill {skill}"


def _rows(log: Columns) -> list[dict[str, Any]]:
    return [dict(zip(log, values, strict=True)) for values in zip(*log.values(), strict=True)]


def _shown(turns: Columns, i: int, texts: _Texts, words: Words) -> list[ShownSkill]:
    """The skills that could be chosen, best first."""
    skills, combined = turns["shortlist"][i] or (), turns["combined"][i]
    return [
        ShownSkill(words(texts.at(skill, turns["turn"][i])), thousandth(combined[k]), int(skill == turns["skill"][i]))
        for k, skill in enumerate(skills)
        if skill is not None and skill >= 0
    ]


def _later(panel: TurnPanel, levels: Levels, feedback: Columns) -> list[LaterAnswer]:
    """Later answers of the user."""
    return [
        LaterAnswer(row["turn"], levels.later.index(row["value"]), int((row["known_at"] - row["time"]).total_seconds()))
        for row in _rows(feedback)
        if row["kind"] == panel.later
    ]


def _job(job: Mapping[str, Any], words: Words, start: datetime) -> JobOnTimeline:
    try:
        reflection = json.loads(job["reflection"] or "{}")
    except ValueError:  # in its own words, or hashed
        reflection = {"analysis": job["reflection"]}
    if not isinstance(reflection, Mapping):
        reflection = {}
    helpful, harmful = (
        [words(str(skill)) for skill in reflection.get(f"{which}_skill_ids") or ()] for which in ("helpful", "harmful")
    )
    return JobOnTimeline(
        job["turn"], job["about"], words(job["channel"]), words(job["value"]), words(job["result"]),
        words(reflection.get("analysis")), helpful, harmful, len(reflection.get("new_learnings") or ()),
        _course(job, start),
    )  # fmt: skip


def _course(job: Mapping[str, Any], start: datetime) -> Course | None:
    """Course of a job that takes time: when it read the skillbook, in seconds since `start`, after how many seconds it
    wrote, the versions that it read and wrote, and COURSE_COUNTS; None where learning takes no time.
    """
    if job["meanwhile"] is None:
        return None
    began, took = (
        (until - since).total_seconds() for since, until in ((start, job["start"]), (job["start"], job["end"]))
    )
    counts = [job[name] for name in COURSE_COUNTS]
    return [round(began, 1), round(took, 1), job["version_read"], job["version_written"], *counts]
