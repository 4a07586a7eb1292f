"""Cause of a turn that no right skill answered: the first link of the chain that failed. It is truth, for logs alone.

A skill is *about* the request if an answer to its source's request, given rightly just now, would be right; it *holds*
if that answer is not too old; it is *right* if it holds and its source answer was right. Where a skill's prompt is
served, which stores no answer, every skill of the intent is right. A procedure is about every request of its intent,
and holds for all of them if it is general. Active skills count, no others.

    a right skill       what was done                               cause
    answered            -                                           none
    is not shortlisted  -                                           routing
    is shortlisted      the LLM answered, and it was the best       threshold
                        else: another was served, or was better     score
    there is none       a skill about it that holds was served      wrong_source
                        another skill about it was served           staleness
                        a skill about something else was served     threshold
                        the LLM answered; and the user has
                          no earlier answer that still holds        novelty
                          no skill about it                         capture
                          a skill about it that holds               wrong_source
                          other skills about it                     staleness

For procedures *generality* stands for staleness, and *novelty* where the user asked for nothing of the intent before.
One that is right can still fail when it is run: then the engine writes *slot* or *tool* in the place of *none*.

*score* and *threshold* are the policy's: the choice among skills, and that between a skill and the LLM. A wrong skill
that answered where no right one was is booked to what was served: the LLM would have lost less.
"""

import numpy as np

from skg_bench.assistant.pipeline.skillbook_table import SkillbookTable
from skg_bench.core.assistant import GroundTruth
from skg_bench.core.deciding import Candidates
from skg_bench.core.grid import I32
from skg_bench.core.world import NEAR, PROCEDURE, RIGHT, STORED, Supposing

_NONE, _NOVELTY, _CAPTURE, _ROUTING, _SCORE, _THRESHOLD, _STALENESS, _WRONG_SOURCE, _GENERALITY = range(9)  # in CAUSES

_SUPPOSINGS: dict[int, tuple[Supposing, Supposing]] = {
    STORED: ("rightly", "as given"), PROCEDURE: ("run rightly", "run"),
}  # fmt: skip
"""How skills are judged to hold, and to be right; where they are PROMPTED, all of the intent do and are."""


def causes(truth: GroundTruth, table: SkillbookTable, candidates: Candidates, *, skill: I32, how: I32) -> I32:
    """Codes in CAUSES `[B]` of turns that `skill` answered (-1: the LLM), chosen from the candidates, before the book
    learns from them. `how` `[B]`: skills are served as STORED, PROMPTED or PROCEDURE.
    """
    judge = truth.judge
    shortlist, combined, a = candidates.skill, candidates.combined, len(skill)
    active = table.active[:a]
    row, s = np.divmod(active.reshape(-1).nonzero()[0], active.shape[1])  # np.nonzero of both takes longer
    answer = table.answer[row, s]
    about = judge(row, answer, "rightly now") >= np.where(how[row] == STORED, RIGHT, NEAR)
    row, s, answer = row[about], s[about], answer[about]
    holds, right = np.ones((2, len(row)), np.bool_)
    for way, supposings in _SUPPOSINGS.items():
        if len(at := (how[row] == way).nonzero()[0]):
            holds[at], right[at] = (judge(row[at], answer[at], supposing) == RIGHT for supposing in supposings)
    run = how == PROCEDURE
    outgrown = np.where(run, _GENERALITY, _STALENESS)

    hit, served = skill >= 0, skill[row] == s
    listed = shortlist[row] == s[:, None]
    at_best = listed & (combined[row] == np.maximum.reduce(combined, axis=1)[row, None])
    some = np.zeros((8, a), np.bool_)  # rows with such a skill
    some[0, row] = True
    for kind, mask in enumerate((holds, served, served & holds, right, right & served), 1):
        some[kind, row[mask]] = True
    for kind, places in ((6, listed), (7, at_best)):
        some[kind, row[right & np.logical_or.reduce(places, axis=1)]] = True
    about_it, holding, about_served, holding_served, right_one, right_served, right_listed, right_best = some
    fallback = np.where(about_it, np.where(holding, _WRONG_SOURCE, outgrown), _CAPTURE)
    fallback[np.where(run, ~truth.familiar, truth.answerable == 0)] = _NOVELTY
    wrong_hit = np.where(about_served, np.where(holding_served, _WRONG_SOURCE, outgrown), _THRESHOLD)
    missed = np.where(~hit & right_best, _THRESHOLD, _SCORE)
    missed[~right_listed] = _ROUTING
    cause = np.where(right_one, missed, np.where(hit, wrong_hit, fallback))
    cause[right_served] = _NONE
    return cause.astype(np.int32)
