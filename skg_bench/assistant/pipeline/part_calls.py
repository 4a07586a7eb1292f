"""Calls of routers, scorers and policies, whose answers are checked."""

from typing import Any

import numpy as np

from skg_bench.core.deciding import Candidates
from skg_bench.core.errors import RowError, UsageError, dotted_name, naming
from skg_bench.core.grid import F64, I64, kind_in_words
from skg_bench.core.types import Query, Reranker, Scorer, Shortlist, Skillbooks, TrainingRows

_LARGEST_LOGIT = 2.0**40


# ------------------------------------------------------------------------------------------------------- routers


def shortlist_by(router: Any, query: Query, books: Skillbooks, rows: I64 | None = None) -> Shortlist:
    """Shortlist of a router; `rows` `[B]`: places of these users in the cohort, None: 0 to B - 1.

    Raises UsageError, which names it, for one of other rows or numbers, and RowError for skills that are not the user's
    own active ones.
    """
    n = len(query.text)
    with naming(router):
        made: Shortlist = router.route(query, books)
        try:
            skill, similarity = made.skill, made.similarity
            numbers = skill.dtype.kind in "iu" and similarity.dtype.kind == "f"
        except AttributeError:
            numbers = False
        if not numbers:
            valid = "a Shortlist of an array of whole numbers and one of fractions"
            raise UsageError(f"{dotted_name(router)}.route gave {_listing(made)}; valid is {valid}")
        if skill.ndim != 2 or skill.shape[0] != n or similarity.shape != skill.shape:
            where, shapes = f"{dotted_name(router)}.route", f"{skill.shape} and {similarity.shape}"
            raise UsageError(f"{where} gave {shapes}; valid is [{n}, K] for both")
        if skill.shape[1] > router.top_k:
            raise UsageError(
                f"{dotted_name(router)}.route gave {skill.shape[1]} places; valid are at most "
                f"router.top_k={router.top_k}"
            )
        listed = skill >= 0
        theirs = (skill >= -1) & (skill < books.n_skills[:, None])
        rated = (similarity >= 0) & (similarity <= 1) & (listed | (similarity == 0))  # no NaN
        sound = theirs & rated & (books.active[np.arange(n)[:, None], skill * theirs] | ~listed)
        ordered = skill.copy()
        ordered.sort(axis=1)
        sound[:, 1:] &= ((ordered[:, 1:] != ordered[:, :-1]) | (ordered[:, 1:] < 0)) & (listed[:, :-1] | ~listed[:, 1:])
        if not np.logical_and.reduce(sound, axis=None):
            row, place = np.argwhere(~sound)[0].tolist()
            what = _fault(made, books, (row, place), theirs=bool(theirs[row, place]), rated=bool(rated[row, place]))
            raise RowError(_row(rows, row), what)
    return made


def _fault(made: Shortlist, books: Skillbooks, at: tuple[int, int], *, theirs: bool, rated: bool) -> str:
    """Fault of a shortlist at a place that is not sound, in words."""
    row, place = at
    skill = made.skill[at]
    if not theirs:
        valid = "valid are ids from 0 on, and -1 beyond the end"
        return f"listed skill {skill}, and this user's book has {books.n_skills[row]}; {valid}"
    if not rated:
        valid = "valid are numbers from 0 to 1, and 0 beyond the end of a shortlist"
        return f"gave skill {skill} at place {place} the similarity {made.similarity[at]}; {valid}"
    valid = "valid are active ones of this user, each once, and -1 only behind them"
    return f"listed the skills {made.skill[row].tolist()}; {valid}"


# ------------------------------------------------------------------------------------------------------- scorers


def scores_by(scorer: Scorer, features: F64) -> F64:
    """Logits of a scorer, `[B, K]`.

    Raises UsageError, which names it, for other shapes and for what is no finite number.
    """
    features.flags.writeable = False
    try:
        logits = scorer.score(features)
    except ValueError:
        with naming(scorer):
            raise
    try:
        shaped = logits.dtype.kind in "fiu" and logits.shape == features.shape[:2]
    except AttributeError:
        shaped = False
    if not shaped:
        valid = f"an array of numbers {list(features.shape[:2])}, a logit for each candidate"
        raise UsageError(f"{dotted_name(scorer)}.score gave {kind_in_words(logits)}; valid is {valid}")
    if not np.logical_and.reduce(sound := np.abs(logits) < _LARGEST_LOGIT, axis=None):  # nor NaN
        raise UsageError(
            f"{dotted_name(scorer)}.score gave the logit {logits[~sound][0]}; valid are numbers between -2**40 and "
            "2**40"
        )
    return logits


def fitted_by(reranker: Reranker, scorer: Scorer, rows: I64, training: TrainingRows) -> Scorer:
    """Scorer in which users `rows` have learned from `training`.

    Raises UsageError, which names the reranker, where there is none any more: the signal would be gone without a word.
    """
    with naming(reranker):
        fitted: Scorer | None = reranker.fit(scorer, rows, training)
    if fitted is None:
        raise UsageError(f"{dotted_name(reranker)}.fit gave None; valid is a scorer, such as the one that it was given")
    return fitted


# ------------------------------------------------------------------------------------------------------- policies


def distribution_by(policy: Any, candidates: Candidates, memory: Any, rows: I64 | None = None) -> F64:
    """Distributions of a policy, `[B, 1 + K]`; `rows` as above.

    Raises UsageError, which names it, for rows that are none.
    """
    with naming(policy):
        share: F64 = policy.propensities(candidates, memory)
        b, k = candidates.skill.shape
        try:
            numbers = share.dtype.kind in "fiub"
        except AttributeError:
            numbers = False
        if not numbers:
            valid = f"an array of numbers [{b}, {1 + k}]"
            raise UsageError(f"{dotted_name(policy)}.propensities gave {kind_in_words(share)}; valid is {valid}")
        if share.shape != (b, 1 + k):
            valid = f"[{b}, {1 + k}], column 0 the fallback"
            raise UsageError(f"{dotted_name(policy)}.propensities gave {share.shape}; valid is {valid}")
        nobody = candidates.skill < 0
        total = share[:, 0] + np.add.reduce(share[:, 1:] * ~nobody, axis=1)
        off = np.abs(total - 1.0)
        if b and not (np.maximum.reduce(off) < 1e-6 and np.minimum.reduce(share, axis=None) >= 0):  # nor NaN
            if (beyond := nobody & (share[:, 1:] > 0)).any():
                row, place = np.argwhere(beyond)[0].tolist()
                raise RowError(
                    _row(rows, row),
                    f"gave place {place} of the shortlist a probability of {share[row, 1 + place]:g}, and no skill "
                    "stands there; valid is 0, as column 0 has all that the LLM answers",
                )
            raise UsageError(
                f"{dotted_name(policy)}.propensities gave rows with sums from {total.min():g} to {total.max():g}; "
                "valid are rows without negative numbers that sum to 1"
            )
    return share


def _listing(given: object) -> str:
    if not isinstance(given, Shortlist):
        return kind_in_words(given)
    return f"a Shortlist of {kind_in_words(given.skill)} and {kind_in_words(given.similarity)}"


def _row(rows: I64 | None, row: int) -> int:
    return row if rows is None else int(rows[row])
