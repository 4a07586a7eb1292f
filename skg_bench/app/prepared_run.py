"""A run that can start: what it is made of, what its folder holds, and what its manifest says."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skg_bench.analysis.summary.saturation import LIMIT, corpus
from skg_bench.app import salts
from skg_bench.app.compose import Composed
from skg_bench.app.run_identity import described, identity_differences, versions
from skg_bench.app.salts import PUBLIC, Salt
from skg_bench.asking.asking import components_within
from skg_bench.core.abilities import DrawsFromCorpus
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32
from skg_bench.core.launching import Launcher
from skg_bench.core.record import HasRecord, left_out, replay_of
from skg_bench.core.text import plural
from skg_bench.core.world import World
from skg_bench.engine.plan import Plan
from skg_bench.engine.tasks import WHOLE, Part
from skg_bench.llm.scripted import Scripted
from skg_bench.runfolder import schema, shards
from skg_bench.runfolder.manifest import BESIDE, MANIFEST, manifest_of, run_key
from skg_bench.runfolder.run import Run, flat
from skg_bench.runfolder.tracking import Sink
from skg_bench.runfolder.wholeness import faults

RunState = Literal["new", "unfinished", "finished"]
_SAMPLED = 64  # simulated users from whom the number of turns is estimated
_READS = " (digest of what it reads: a file was changed, or is another one)"
_TOLD_HERE = ("skg_bench.router.oracle.", "skg_bench.curator.oracle.", "skg_bench.assistant.recall.")  # as they say
_LISTED = 12  # differences from another run that an error lists


@dataclass(frozen=True)
class PreparedRun:
    """A run that can start: checked, its components made, its directory known."""

    composed: Composed
    plan: Plan
    identity: str
    data: Mapping[str, str]  # hashes of what the run draws from
    out: Path
    state: RunState
    launcher: Launcher
    sinks: Sequence[Sink] = ()  # where it is delivered when it is finished
    part: Part = WHOLE
    salt: Salt = PUBLIC

    @property
    def counted(self) -> bool:
        """Is `turns` exact?"""
        return isinstance(self.plan.simulator, HasRecord)

    @property
    def share(self) -> str:
        """Words behind the number of turns: whose they are where a part of the run is carried out."""
        return "" if self.part == WHOLE else " in all parts"

    def turns(self) -> int:
        """Turns of all arms: counted in a log, else estimated from the numbers of events of the first users."""
        counts = self.plan.simulator.count(self.plan.salted, self._sampled, self.plan.weeks)
        return round(float(counts.mean()) * self.plan.users * len(self.plan.arms))

    def cautions(self) -> list[str]:
        """Gaps of the corpus: what was left out, and what it lacks for this run, known before anything is computed."""
        published = published_corpus(self.plan.simulator)
        reasons = [] if published is None else left_out(published["left_out"])
        lines = [f"{published['source']}: left out {'; '.join(reasons)}"] if published and reasons else []
        lines += filter(None, [salts.caution(self.salt), self._scripted, self._rows_left_out, *self._late_cuts()])
        if seers := self.told_truth:
            lines.append(
                f"{', '.join(seers)}: a component of another package is told what is true (sees_truth), as an oracle "
                "is; no product can be, so that its lead is a ceiling and no finding"
            )
        share = 0.0
        if isinstance(world := self.plan.simulator, DrawsFromCorpus):
            share = world.one_offs_again(self.plan.salted, self._sampled, self.plan.weeks)
        if share <= LIMIT:
            return lines
        line = (
            f"{corpus(self.composed.root)} has too few one-offs for this run: about {share:.0%} of those that users "
            f"send in {plural(self.plan.weeks, 'week')} come again (limit {LIMIT:.0%}), so that claims about curves "
            "and utility are not testable; add one-offs, or lower weeks or simulator.one_off_share"
        )
        return [*lines, line]

    @property
    def told_truth(self) -> list[str]:
        """Arms that are told what is true, by components that are none of our oracles."""
        seers = [arm.name for arm in self.plan.arms if arm.assistant.sees_truth]
        targets = {name: [str(value) for value in flat(self.composed.arms[name]).values()] for name in seers}
        return [name for name in seers if not any(target.startswith(_TOLD_HERE) for target in targets[name])]

    @property
    def _rows_left_out(self) -> str | None:
        """Rows of a table of tasks that are none; None: all are. (The page of a replayed log says its own.)"""
        match self.plan.simulator:
            case HasRecord(record=record) if replay_of(self.plan.simulator) is None and record.left_out:
                return f"{record.file}: left out {'; '.join(left_out(record.left_out))}"
            case _:
                return None

    @property
    def _scripted(self) -> str | None:
        """Caution where a script answers tasks of somebody's own; None: there is no need for one."""
        domain = self.plan.simulator.domain
        models = [part for arm in self.plan.arms for part in components_within(arm.llm)]
        if not (domain.in_words and domain.recorded and any(isinstance(part, Scripted) for part in models)):
            return None
        return (
            "llm.llm=scripted answers these tasks with sentences of its prompt, word for word, and knows nothing else; "
            "for a model that does, take llm.llm=recorded or endpoint (docs/models.md)"
        )

    def _late_cuts(self) -> Iterator[str]:
        """Cautions on arms that fork, or stop to learn, at a turn to which nobody comes of those who are looked at."""
        cuts = [(arm, "forks", arm.fork.turn) for arm in self.plan.arms if arm.fork is not None]
        cuts += [(arm, "stops to learn", arm.freeze_at) for arm in self.plan.arms if arm.freeze_at is not None]
        if not cuts:
            return
        most = int(self.plan.simulator.count(self.plan.salted, self._sampled, self.plan.weeks).max())
        first = "" if len(self._sampled) == self.plan.users else "the first "
        for arm, does, turn in cuts:
            if turn >= most:
                yield (
                    f"arm {arm.name!r} {does} at turn {turn:,}, and the busiest of {first}"
                    f"{plural(len(self._sampled), 'user')} has {plural(most, 'turn')}, so that this changes nothing "
                    "there; name an earlier turn, or take more weeks"
                )

    @property
    def _sampled(self) -> I32:
        """Users from whom something is estimated; of a log all."""
        return np.arange(self.plan.users if self.counted else min(_SAMPLED, self.plan.users), dtype=np.int32)


def state_of(job: PreparedRun) -> RunState:
    """Contents of the folder: nothing, a part of this run, or all of it.

    Raises UsageError for a file, for another run, and for one that was begun with other versions.
    """
    if not job.out.exists():
        return "new"
    if not job.out.is_dir():
        raise UsageError(f"out={job.out} is a file; name a folder")
    try:
        before = manifest_of(job.out / MANIFEST) if (job.out / MANIFEST).exists() else None
    except UsageError as error:  # torn or changed
        before = None
        if not _shards_are_ours(job):
            raise UsageError(f"{error}; these are of another run, or none is whole: name another folder") from error
    if before is None:
        if _shards_are_ours(job):
            return "unfinished"
        if any(not entry.name.startswith(".") for entry in job.out.iterdir()):
            raise UsageError(f"out={job.out} is not empty and holds no run; name another folder")
        return "new"
    known = Run(job.out)
    if before.get("identity") != job.identity:
        raise UsageError(
            f"out={job.out} holds another run; name another folder, or leave out away. What differs:\n  "
            + "\n  ".join(_shown(identity_differences(before, manifest_fields(job))) or ["identity"])
        )
    fault = next(faults(known), None)
    finished = not before.get("incomplete") and fault is None
    if not finished and before.get("removed_users"):
        raise UsageError(
            f"{(fault or str(job.out)).partition(';')[0]}, and users were removed from {job.out}, whom the log still "
            f"has: the run cannot go on without them. `skg-bench report {job.out}` makes tables and page again; turns "
            "come from a copy of the folder, or from a new run of a log without them"
        )
    if not finished and (changed := _changed(before.get("versions", {}), versions())):
        raise UsageError(
            f"{job.out} was begun with other versions ({changed}), and its turns must come from one set: go on with "
            "those, or delete the folder and start again"
        )
    return "finished" if finished else "unfinished"


def _shards_are_ours(job: PreparedRun) -> bool:
    """Are there whole shards, and all of this run? A manifest that was lost can then be written again."""
    labels = []
    for file in job.out.glob("turns/*.parquet"):
        with suppress(UsageError):
            labels.append(shards.shard_label(file).run)
    return bool(labels) and set(labels) == {run_key_of(job)}


def run_key_of(job: PreparedRun) -> str:
    """Key that the shards of this run bear."""
    return run_key({"identity": job.identity, "versions": versions(), **job.salt.told(ended=False)})


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {before[name]}, now {now.get(name)}" for name in before if before[name] != now.get(name))


def published_corpus(world: World[Any]) -> Mapping[str, Any] | None:
    """Publication of the world's messages, and what of it was left out; None: they are of no published corpus."""
    return world.published if isinstance(world, DrawsFromCorpus) else None


def manifest_fields(job: PreparedRun) -> dict[str, Any]:
    """Fields of the manifest that are known before the run begins."""
    root, log = job.composed.root, replay_of(job.plan.simulator)
    published = published_corpus(job.plan.simulator)
    return {
        "schema": schema.SCHEMA_VERSION,
        "identity": job.identity,
        "incomplete": True,
        "question": root["question"],
        "seed": root["seed"],
        **job.salt.told(ended=False),
        "users": root["users"],
        "weeks": root["weeks"],
        "overrides": [override.text for override in job.composed.given if override.head not in BESIDE],
        "arms": list(job.composed.arms),
        "changed": list(job.composed.changed),
        **described(root, job.composed.arms, job.data),
        "stream": job.plan.simulator.stream,
        "domain": job.plan.simulator.domain.plain(),
        **({} if log is None else {"log": asdict(log.record)}),
        **({} if published is None else {"corpus": published}),
        **({"told_truth": seers} if (seers := job.told_truth) else {}),
    }


def _shown(differences: Sequence[str]) -> list[str]:
    """The first of them, those that a command says before what it is resolved to, and how many more there are."""
    ordered = sorted(differences, key=lambda line: line.startswith("compositions."))
    rest = len(ordered) - _LISTED
    listed = [
        f"{line}{_READS if line.startswith(('data.simulator', 'data.embedder')) else ''}" for line in ordered[:_LISTED]
    ]
    return [*listed, *([f"and {rest:,} more"] if rest > 0 else [])]
