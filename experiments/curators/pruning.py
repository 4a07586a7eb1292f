"""Are the skills that a curator removes and rewords those that are bad for their user, beyond what a coin would hit?

The worth of a skill is that of its kind on the user's own triggers, to a user without a mood. It is computed from the
simulated world. A skill is bad if the generic question is worth more there. All skills with LEAST ratings are judged,
also those that were kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np

from skg_bench.app.building import build
from skg_bench.app.counterexample import cases
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun
from skg_bench.app.trust import FromFile
from skg_bench.core.batch import TAG_RATINGS, TAKEN_BACK
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F64, I32
from skg_bench.runfolder.run import Run, made_here
from skg_bench.simulator.advice.guardian import Guardian

LEAST = 4  # ratings of a skill that is judged; as remove_after of curator=reflective
COMMAND = "skg-bench run experiment=guardian; skg-bench experiment curators/pruning RUN"
HEADINGS = (
    "arm", "operation", "skills", "bad", "operations", "precision", "precision of a coin", "recall", "recall of a coin",
    "verdict", "AUC of ratings", "better afterwards", "worse afterwards",
)  # fmt: skip
_CODES = {name: (code % TAKEN_BACK, -1 if code >= TAKEN_BACK else 1) for code, name in enumerate(TAG_RATINGS)}


@dataclass(slots=True)
class Judged:
    """A skill of a user, as its log has it."""

    user: int
    content: Content | None
    ratings: list[int]  # ok, partial, miss
    removed: bool = False
    reworded: tuple[Content, Content] | None = (
        None  # by the first UPDATE of a skill with LEAST ratings: before and after
    )


@dataclass(frozen=True, slots=True)
class Worths:
    """Worth of kinds to users beyond the generic question, on their own triggers."""

    world: Guardian
    sound: F64  # [U, K] of well-made texts
    vague: F64  # [U, K] of others

    def of(self, pairs: Sequence[tuple[int, Content]]) -> F64:
        """Worth of contents to users, `[n]`."""
        texts = list(dict.fromkeys(content for _, content in pairs))
        kind, sound = self.world.read(texts) if texts else (np.zeros(0, np.int32), np.zeros(0, np.bool_))
        place = {content: i for i, content in enumerate(texts)}
        at = np.array([place[content] for _, content in pairs], np.int64)
        user = np.array([user for user, _ in pairs], np.int64)
        return np.where(sound[at], self.sound[user, kind[at]], self.vague[user, kind[at]])


def world_of(run: Run) -> tuple[Guardian, int]:
    """The world of a run, and the seed of its events.

    Raises UsageError for a run of another world, and for data that have changed.
    """
    made_here(run, "the truth of removals")
    scenario = cases.scenario_of(run, 0)
    origin = FromFile(str(run.path), trusted=False)
    cases.admit(origin, scenario, [])
    world: Any = build("simulator", scenario.simulator, origin)
    if not isinstance(world, Guardian):
        raise UsageError(f"{run.path} is no run of simulator=guardian, whose skills are advice: `{COMMAND}` makes one")
    if world.digest != run.manifest["data"]["simulator"]:
        raise UsageError(f"{run.path} was made from other data than are here now; run it again")
    return world, scenario.seed


def worths(world: Guardian, seed: int, users: int, weeks: int) -> Worths:
    """The worth of each kind to each user, mean over all triggers of the user."""
    kinds, user = len(world.kinds), np.arange(users, dtype=np.int32)
    count = world.count(seed, user, weeks)
    state, total = world.begin(seed, user, weeks), np.zeros((users, 2 * kinds + 1))
    about: I32 = np.array([*range(kinds), *range(kinds), -1], np.int32)
    shape, made = total.shape, np.arange(2 * kinds + 1) % (2 * kinds) < kinds  # the generic question is well made
    for turn in range(int(count.max(initial=0))):
        event = world.events(state, turn)  # padded for users who have fewer
        worth = world.worth(state, event, np.broadcast_to(about, shape), np.broadcast_to(made, shape))
        total += np.where((count > turn)[:, None], worth, 0.0)
    mean = total / np.maximum(count, 1)[:, None]
    gain = mean[:, :-1] - mean[:, -1:]
    return Worths(world, gain[:, :kinds], gain[:, kinds:])


def judged_skills(run: Run, arm: str) -> list[Judged]:
    """Skills of an arm that say something, with what became of them."""
    skills: dict[tuple[int, int], Judged] = {}
    for row in run.updates(arm).to_pylist():
        key = row["user"], row["skill"]
        content = None
        if row["section"] is not None:
            words = tuple(row["keywords"].split()) if row["keywords"] else ()
            content = Content(row["section"], row["issue"], row["insight"], words)
        if row["op"] == "ADD":
            skills[key] = Judged(row["user"], content, [0, 0, 0])
        elif row["op"] == "TAG" and row["rating"] is not None:
            code, gain = _CODES[row["rating"]]
            skills[key].ratings[code] += gain
        elif row["op"] == "REMOVE":
            skills[key].removed = skills[key].removed or sum(skills[key].ratings) >= LEAST
        elif row["op"] == "UPDATE" and content is not None:
            skill = skills[key]
            if skill.reworded is None and skill.content is not None and sum(skill.ratings) >= LEAST:
                skill.reworded = skill.content, content
            elif skill.reworded is None:
                skill.content = content  # before it was judged
    return [skill for skill in skills.values() if skill.content is not None and sum(skill.ratings) >= LEAST]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Precision and recall of operations, beside a coin's."""

    judged: int
    bad: int
    done: int
    hit: int

    @property
    def base(self) -> float:
        """Share of the judged that are bad: the precision of a coin."""
        return self.bad / self.judged if self.judged else float("nan")

    @property
    def precision(self) -> float:
        """Share of the operations that concern a bad skill."""
        return self.hit / self.done if self.done else float("nan")

    @property
    def recall(self) -> float:
        """Share of the bad that an operation concerns."""
        return self.hit / self.bad if self.bad else float("nan")

    @property
    def coin(self) -> tuple[float, float]:
        """Precisions between which 95 % of as many operations by a coin lie."""
        if not self.done or self.judged < 2:
            return float("nan"), float("nan")
        left = (self.judged - self.done) / (self.judged - 1)
        margin = 1.96 * sqrt(self.base * (1 - self.base) * left / self.done)
        return max(self.base - margin, 0.0), min(self.base + margin, 1.0)

    @property
    def word(self) -> str:
        """The verdict."""
        low, high = self.coin
        if not self.done or low >= high:
            return "nothing to tell"
        return "better than a coin" if self.precision > high else "worse" if self.precision < low else "like a coin"


def verdict(bad: Sequence[bool], done: Sequence[bool]) -> Verdict:
    """Counts of skills that are bad, and that an operation concerned."""
    hits = sum(b and d for b, d in zip(bad, done, strict=True))
    return Verdict(len(bad), sum(bad), sum(done), hits)


def auc(skills: Sequence[Judged], bad: Sequence[bool]) -> float:
    """Probability that the helpful share of a good skill is larger than that of a bad one, ties counted half."""
    share = np.array([(skill.ratings[0] + 1) / (skill.ratings[0] + skill.ratings[2] + 2) for skill in skills])
    good, ill = share[~np.array(bad, np.bool_)], share[np.array(bad, np.bool_)]
    if not len(good) or not len(ill):
        return float("nan")
    pairs = good[:, None] - ill[None]
    return float((pairs > 0).mean() + (pairs == 0).mean() / 2)


@dataclass(frozen=True, slots=True)
class Truth:
    """Removals and rewordings of an arm, held against the world."""

    removed: Verdict
    reworded: Verdict
    auc: float  # of ratings
    bad_of_removed: tuple[float, float, float]  # share, and its 95 % interval over users
    better_of_reworded: tuple[
        float, float, float
    ]  # share that is worth more afterwards, of those that changed in worth
    gains: F64  # [n] of rewordings

    @classmethod
    def of(cls, run: Run, arm: str, known: Worths) -> "Truth":
        """Counts of an arm."""
        skills = judged_skills(run, arm)
        before = known.of([(skill.user, skill.content) for skill in skills if skill.content is not None])
        bad = [bool(worth < 0) for worth in before]
        reworded = [(skill.user, *skill.reworded) for skill in skills if skill.reworded is not None]
        gains = known.of([(u, new) for u, _, new in reworded]) - known.of([(u, old) for u, old, _ in reworded])
        hits = [(skill.user, hit) for skill, hit in zip(skills, bad, strict=True) if skill.removed]
        better = [(user, bool(gain > 0)) for (user, _, _), gain in zip(reworded, gains, strict=True) if gain != 0]
        return cls(
            verdict(bad, [skill.removed for skill in skills]),
            verdict(bad, [skill.reworded is not None for skill in skills]), auc(skills, bad), share_over_users(hits),
            share_over_users(better), gains,
        )  # fmt: skip

    def rows(self, arm: str) -> Iterator[tuple[str, ...]]:
        """Rows of the table: removals, and rewordings."""
        tell = f"{self.auc:.2f}" if isfinite(self.auc) else "-"
        yield _row(arm, "REMOVE", self.removed, tell, ("", ""))
        shares = (f"{(self.gains > 0).mean():.0%}", f"{(self.gains < 0).mean():.0%}") if len(self.gains) else ("", "")
        yield _row(arm, "UPDATE", self.reworded, tell, shares)


def share_over_users(marked: Sequence[tuple[int, bool]]) -> tuple[float, float, float]:
    """Share of entries of (user, mark) that are marked, with its 95 % interval if users are drawn, not entries; NaN
    with fewer than two users.
    """
    users = sorted({user for user, _ in marked})
    if len(users) < 2:
        return float("nan"), float("nan"), float("nan")
    size, hit = (np.zeros(len(users)) for _ in range(2))
    place = np.array([users.index(user) for user, _ in marked])
    np.add.at(size, place, 1.0)
    np.add.at(hit, place, [float(mark) for _, mark in marked])
    share = hit.sum() / size.sum()
    error = sqrt(float(((hit - share * size) ** 2).sum()) * len(users) / (len(users) - 1)) / size.sum()
    return float(share), max(float(share - 1.96 * error), 0.0), min(float(share + 1.96 * error), 1.0)


def as_percent(share: float) -> str:
    """The share, or a dash where there is none."""
    return f"{share:.1%}" if isfinite(share) else "-"


def _row(arm: str, operation: str, counts: Verdict, tell: str, shares: tuple[str, str]) -> tuple[str, ...]:
    low, high = counts.coin
    return (
        arm, operation, f"{counts.judged:,}", as_percent(counts.base), f"{counts.done:,}",
        as_percent(counts.precision), f"{as_percent(low)} to {as_percent(high)}", as_percent(counts.recall),
        f"{counts.done / max(counts.judged, 1):.1%}", counts.word, tell, *shares,
    )  # fmt: skip


def analyse(run: OneRun) -> Report:
    """Counts for each arm how many of the skills that it removed or reworded were bad."""
    world, seed = world_of(run)
    known = worths(world, seed, int(run.manifest["users"]), int(run.manifest["weeks"]))
    rows = [row for arm in run.arms if judged_skills(run, arm) for row in Truth.of(run, arm, known).rows(arm)]
    rows = [row for row in rows if row[4] != "0"]
    if not rows:
        raise UsageError(
            f"{run.path} has no arm that removes or rewords a skill with {LEAST} ratings; run it for longer"
        )
    read = texts_read(run, run.arms, known)
    table = Table("Removed and reworded", HEADINGS, rows)
    return Report([table, read], page("What is removed and reworded", COMMAND, table, read))


def texts_read(run: Run, arms: Sequence[str], known: Worths) -> str:
    """Sentence on the texts whose kind had to be read."""
    texts = {skill.content for arm in arms for skill in judged_skills(run, arm)}
    unknown = len(texts - {*known.world.texts})
    if not unknown:
        return f"All {len(texts):,} texts are of the library, so that their kinds are known."
    return (
        f"{unknown:,} of {len(texts):,} texts are not of the library. Their kinds are estimated from their words; "
        "`skg-bench experiment curators/reader` says how well. Many vague texts are taken for sound ones, which "
        "favours curators that write such texts."
    )


EXPERIMENT = Experiment(analyse)
