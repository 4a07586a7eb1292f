"""Causes why requests for facts are answered wrongly, from the logs of a run: the first link of the chain that failed.

    the fact            the prompt                  the book                cause
    told, holds         states it                   -                       model
                        states another value        -                       outdated, or mistaken
                        states nothing              a skill is about it     kept_not_found
                                                    none is                 told_not_kept
    never told, ended   states another value        -                       outdated, or mistaken
                        is about something else     -                       should_have_declined
                        there is none               -                       never_told

A turn counts by its chance of a wrong answer, so that causes add up to what an arm loses, free of luck. Of a request
for two facts both must be kept for `kept_not_found`. A stored answer has no prompt, and counts by its quality.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

FACT_CAUSES = (
    "model", "never_told", "told_not_kept", "kept_not_found", "outdated", "mistaken", "should_have_declined", "stored",
)  # fmt: skip
TURN_COLUMNS = ("user", "turn", "request_type", "need", "prompt", "serving", "chance", "answer_correct", "known_by")
Losses = dict[str, float]


def fact_losses(turns: pa.Table, updates: pa.Table, feedback: pa.Table, pairs: Mapping[str, Sequence[str]]) -> Losses:
    """Chances of wrong answers by cause, over all requests for facts of an arm, from its logs in order of user and
    turn. `pairs`: by the name of a request for two facts, their request types.
    """
    losses = dict.fromkeys(FACT_CAUSES, 0.0)
    stated = dict[tuple[int, int], str]()  # the fact of which the answer of a user's turn states a value
    corrected = {
        (row["user"], row["turn"]) for row in feedback.select(["user", "turn", "kind"]).to_pylist()
        if row["kind"] == "correction"
    }  # fmt: skip
    kept = _kept(updates)
    for row in turns.select(list(TURN_COLUMNS)).to_pylist():
        at, type_ = (row["user"], row["turn"]), row["request_type"]
        name, value, _ = (type_ or "").partition("=")
        if row["need"] is not None:
            sources = kept.get(at[0], ())
            has = {stated.get((at[0], source)) for skill in sources for source in skill.before(at[1])}
            needed = set(pairs.get(name, (name,)))
            lost = float(not row["answer_correct"]) if row["chance"] is None else 1.0 - row["chance"]
            losses[_cause(row, kept=needed <= has)] += lost
        if value and (row["known_by"] == "telling" or row["answer_correct"] or at in corrected):
            stated[at] = name
    return losses


@dataclass(frozen=True, slots=True)
class KeptSkill:
    """Sources of a skill of a user, in order: turn of the operation, and turn whose answer it stores (-1: none)."""

    sources: list[tuple[int, int]]

    def before(self, turn: int) -> Sequence[int]:
        """The turn whose answer it stores just before `turn`, if there is one."""
        earlier = [source for at, source in self.sources if at < turn]
        return earlier[-1:]


def _kept(updates: pa.Table) -> Mapping[int, Sequence[KeptSkill]]:
    """Skills by user."""
    skills = dict[tuple[int, int], KeptSkill]()
    for row in updates.select(["user", "turn", "op", "skill", "source_turn"]).to_pylist():
        if row["op"] == "REMOVE" or row["source_turn"] >= 0:
            skill = skills.setdefault((row["user"], row["skill"]), KeptSkill([]))
            skill.sources.append((row["turn"], row["source_turn"]))
    by_user = dict[int, list[KeptSkill]]()
    for (user, _), skill in skills.items():
        by_user.setdefault(user, []).append(skill)
    return by_user


def _cause(row: Mapping[str, object], *, kept: bool) -> str:
    match row["prompt"], row["need"]:
        case None, _:
            return "stored"
        case ("outdated" | "mistaken") as stated, _:
            return str(stated)
        case "fact", _:
            return "model"
        case _, "told":
            return "kept_not_found" if kept else "told_not_kept"
        case _:
            return "should_have_declined" if row["serving"] == "prompted" else "never_told"
