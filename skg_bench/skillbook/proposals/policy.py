"""Operations of those that a model proposes which are applied (P23)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.ace.changes import Change
from skg_bench.skillbook.proposals.forbidden_words import flaw_of
from skg_bench.skillbook.proposals.parsing import Batches, Step, steps_of
from skg_bench.skillbook.proposals.verdicts import Admitted, Code, Limits, Proposed, Refused, reason_of
from skg_bench.skillbook.skillbook import Skill

_RATING = {"helpful": 0, "neutral": 1, "harmful": 2}
_RATING |= {f"{name}_count": rating for name, rating in _RATING.items()}
_TEXTS = ("content", "issue", "insight", "keywords")


def admitted_operations(
    batch: Any,
    skills: Sequence[Skill],
    used: Collection[int],
    limits: Limits,
    batches: Batches,
    *,
    frozen: bool = False,
) -> Admitted:
    """Operations of a batch of parsed JSON that are applied, and those that are refused.

    `skills`: the user's, archived ones too, that say something. `used`: ids of those that the turn showed; only these
    may be TAGged. An UPDATE or REMOVE needs a skill that is active and had `limits.tags` ratings before this batch. Of
    an UPDATE and a REMOVE of one skill the first one holds; a TAG goes with both. A `frozen` skillbook takes TAGs
    alone. What is refused counts for no limit.

    Batches that are taken as a published engine takes them go through the same rules after that. What the engine does
    and a skillbook of a run cannot do is among the refusals as "no counterpart".

    Raises UsageError for a kind of batches that does not exist.
    """
    steps, refusals = steps_of(batch, skills, limits, batches)
    policy = _Policy(skills, used, limits, purges=batches in ("compat-v1", "compat-v09"), frozen=frozen)
    for step in steps:
        policy.take(step)
    return Admitted(tuple(policy.operations), (*policy.refusals, *refusals))


class _Policy:
    """The operations of one batch on their way through the rules."""

    def __init__(
        self, skills: Sequence[Skill], used: Collection[int], limits: Limits, *, purges: bool, frozen: bool
    ) -> None:
        self._skills = {skill.shown_id: skill for skill in skills if skill.content is not None}
        self._says = {skill.id: skill.content for skill in skills if skill.content is not None}
        self._used, self._limits, self._purges, self._frozen = used, limits, purges, frozen
        self._added: set[Content] = set()
        self._updated: set[int] = set()
        self._removed: set[int] = set()
        self._ratings: Counter[int] = Counter()
        self.operations: list[Proposed] = []
        self.refusals: list[Refused] = []

    def take(self, step: Step) -> None:
        """Admit or refuse what an operation comes to."""
        for change in step.changes:
            if self._frozen and change.type != "TAG":
                self._refuse(step, "frozen", "the skillbook takes ratings alone")
                continue
            handle = {"ADD": self._add, "TAG": self._tag, "REMOVE": self._remove, "SKIP": self._skip}
            handle.get(change.type, self._update)(step, change)
            if change.sources or change.reflections:
                self._refuse(step, "no counterpart", "where it comes from is not kept")
        if step.refusal:
            self.refusals.append(step.refused(step.refusal))

    def _refuse(self, step: Step, code: Code, details: str = "") -> None:
        self.refusals.append(step.refused(reason_of(code, details)))

    def _admit(self, op: int, skill: int, content: Content | None = None, rating: int = -1) -> None:
        self.operations.append(Proposed(op, skill, content, rating))

    # ----------------------------------------------------------------------------------------------- operations

    def _add(self, step: Step, change: Change) -> None:
        if change.replaces:
            self._replace(step, change)
            return
        content = self._content(step, change.values, None)
        if content is None:
            return
        if content in self._added:
            self._refuse(step, "said twice")
        elif len(self._added) == self._limits.adds:
            self._refuse(step, "too many ADDs", f"at most {self._limits.adds}")
        else:
            self._added.add(content)
            self._admit(ADD, -1, content)
            self._note_others(step, change.values)
            if change.skill_id is not None:
                self._skills.pop(change.skill_id, None)  # from now on the id is another skill's there
                self._refuse(step, "no counterpart", "an explicit id; ids are numbered here")

    def _replace(self, step: Step, change: Change) -> None:
        """An ADD in place of a skill: the policy sees what it is, an UPDATE of all that the skill says."""
        skill = self._open(step, change)
        content = self._content(step, change.values, None) if skill else None
        if skill and content:
            self._say(skill, content)
            self._refuse(step, "no counterpart", "counters of a replaced skill begin again; here they go on")
            self._note_others(step, change.values)

    def _update(self, step: Step, change: Change) -> None:
        """An UPDATE, or fields that an engine has overwritten."""
        texts = {n: v for n, v in change.values.items() if n in _TEXTS and (v is None or isinstance(v, str | tuple))}
        others = sorted(change.values.keys() - texts.keys())
        if others:
            self._refuse(step, "no counterpart", f"sets {', '.join(others)}")
        elif not texts:
            self._refuse(step, "no effect", "only the time of the last change")
        skill = self._open(step, change) if texts else None
        if skill is None:
            return
        content = self._content(step, texts, self._says[skill.id])
        if content == self._says[skill.id]:
            self._refuse(step, "no effect", "the skill says that already")
        elif content is not None:
            self._say(skill, content)

    def _tag(self, step: Step, change: Change) -> None:
        skill = self._skills.get(change.skill_id or "")
        if skill is None or skill.id not in self._used:
            self._refuse(step, "not shown")
            return
        gains = {name: gain for name, gain in change.values.items() if gain > 0}
        if len(gains) < len(change.values):
            self._refuse(step, "no counterpart", "a counter that falls")
        elif not gains:
            self._refuse(step, "no effect", "no counter gains")
        if self._ratings[skill.id] + sum(gains.values()) > self._limits.ratings:
            self._refuse(step, "too many ratings", f"at most {self._limits.ratings} of one skill")
            return
        for name, gain in gains.items():
            self._ratings[skill.id] += gain
            for _ in range(gain):
                self._admit(TAG, skill.id, rating=_RATING[name])

    def _remove(self, step: Step, change: Change) -> None:
        skill = self._open(step, change)
        if skill is None:
            return
        if len(self._removed) == self._limits.removes:
            self._refuse(step, "too many REMOVEs", f"at most {self._limits.removes}")
            return
        self._removed.add(skill.id)
        self._admit(REMOVE, skill.id)
        if self._purges:
            self._refuse(step, "no counterpart", "the published engine deletes the skill; here it is archived")

    def _skip(self, step: Step, change: Change) -> None:
        self._refuse(step, "no counterpart", "a number that is used up")

    # ---------------------------------------------------------------------------------------------------- rules

    def _open(self, step: Step, change: Change) -> Skill | None:
        """The skill, if it may be changed."""
        skill = self._skills.get(change.skill_id or "")
        if skill is None:
            self._refuse(step, "not shown", "the batch itself adds it")
            return None
        removes, ratings = change.type == "REMOVE", skill.ok + skill.partial + skill.miss
        if skill.id in (self._updated if removes else self._removed):
            self._refuse(step, "contradiction", "UPDATE and REMOVE; the first one holds")
        elif skill.id in self._removed:
            self._refuse(step, "said twice")
        elif not skill.active:
            self._refuse(step, "archived")
        elif ratings < self._limits.tags:
            self._refuse(step, "too few ratings", f"{ratings}, at least {self._limits.tags}")
        else:
            return skill
        return None

    def _say(self, skill: Skill, content: Content) -> None:
        self._says[skill.id] = content
        self._updated.add(skill.id)
        self._admit(UPDATE, skill.id, content)

    def _content(self, step: Step, values: Mapping[str, Any], before: Content | None) -> Content | None:
        """Content of a skill with these values; refused: None."""
        try:
            content = _said(values, before)
        except UsageError as error:
            self._refuse(step, "invalid", str(error))
            return None
        texts = [content.section, content.issue, content.insight or "", *content.keywords]
        flaw = flaw_of(texts, self._limits.characters)
        if flaw is not None:
            self._refuse(step, *flaw)
            return None
        return content

    def _note_others(self, step: Step, values: Mapping[str, Any]) -> None:
        """Refuse what would be set beside texts: counters, and fields that no skill of a run has."""
        others = sorted(name for name in values.keys() - {*_TEXTS, "section"} if values[name])
        if others:
            self._refuse(step, "no counterpart", f"sets {', '.join(others)}")


def _said(values: Mapping[str, Any], before: Content | None) -> Content:
    """`before`, or what a new skill says, with these values. The single text of v1 and v09 takes the place of issue and
    insight.

    Raises UsageError for what no skill can say.
    """
    texts = {name: value for name, value in values.items() if name in _TEXTS}
    if "content" in texts:
        texts = {"issue": texts["content"], "insight": None}
    return Content(values["section"], **texts) if before is None else replace(before, **texts)
