"""From a composed configuration to a finished run directory."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skg_bench.analysis.summary.saturation import LIMIT, corpus
from skg_bench.app import salts
from skg_bench.app.arms import arms
from skg_bench.app.caller import callers_script_left_alone
from skg_bench.app.components import build
from skg_bench.app.compose import Composed
from skg_bench.app.failures import Naming
from skg_bench.app.progress import plural
from skg_bench.app.run_identity import described, differences, provenance, versions, write_json
from skg_bench.app.said import said_only
from skg_bench.app.salts import PUBLIC, Salt
from skg_bench.app.skillbook import seeds
from skg_bench.app.tracking import DEADLINE, Deliveries, beside, export
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.app.watch import Watch
from skg_bench.assistant.pipeline.pretraining import models
from skg_bench.core import manifest, schema, shards
from skg_bench.core.advice import Advised
from skg_bench.core.arms import Arm
from skg_bench.core.asking import Prompted, parts
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import json_file
from skg_bench.core.grid import I32
from skg_bench.core.launching import Launcher
from skg_bench.core.lock import Lock, held, remove_dead
from skg_bench.core.manifest import BESIDE, NAME, identity_of, manifest_of, run_key
from skg_bench.core.record import Replay, left_out, replay
from skg_bench.core.run import Run
from skg_bench.core.temporary import sweep
from skg_bench.core.tracking import Sink, Stage
from skg_bench.core.wholeness import faults, lost_shards, lost_tables
from skg_bench.engine import pieces
from skg_bench.engine.comparing import Comparison
from skg_bench.engine.execute import execute
from skg_bench.engine.plan import Plan
from skg_bench.engine.tasks import WHOLE, Part, ours

Progress = Callable[[int, int], None]  # done turns, all turns; a turn of each arm counts
Say = Callable[[str], None]  # one line for the user
State = Literal["new", "unfinished", "finished"]
_TABLES = 600.0  # seconds to wait for another part that writes tables and page
_ENDED = ("shards", "files")  # what the manifest of a finished run has more
_SAMPLED = 64  # simulated users from whom the number of turns is estimated


@dataclass(frozen=True)
class PreparedRun:
    """A run that can start: checked, its components made, its directory known."""

    composed: Composed
    plan: Plan
    identity: str
    data: Mapping[str, str]  # hashes of what the run draws from
    out: Path
    state: State
    launcher: Launcher
    sinks: Sequence[Sink] = ()  # where it is delivered when it is finished
    part: Part = WHOLE
    salt: Salt = PUBLIC

    @property
    def counted(self) -> bool:
        """Whether `turns` is exact."""
        return replay(self.plan.simulator) is not None

    def turns(self) -> int:
        """Turns of all arms: counted in a log, else estimated from the numbers of events of the first users."""
        counts = self.plan.simulator.count(self.plan.salted, self._sampled, self.plan.weeks)
        return round(float(counts.mean()) * self.plan.users * len(self.plan.arms))

    def cautions(self) -> list[str]:
        """What was left out of the corpus and what it lacks for this run, known before anything is computed."""
        published = getattr(self.plan.simulator, "published", None)
        reasons = [] if published is None else left_out(published["left_out"])
        lines = [f"{published['source']}: left out {'; '.join(reasons)}"] if published and reasons else []
        lines += filter(None, [salts.caution(self.salt)])
        expected = getattr(self.plan.simulator, "one_offs_again", None)
        share = 0.0 if expected is None else expected(self.plan.salted, self._sampled, self.plan.weeks)
        if share <= LIMIT:
            return lines
        line = (
            f"{corpus(self.composed.root)} has too few one-offs for this run: about {share:.0%} of those that users "
            f"send in {self.plan.weeks} weeks come again (limit {LIMIT:.0%}), so that claims about curves and utility "
            "are not testable; add one-offs, or lower weeks or simulator.one_off_share"
        )
        return [*lines, line]

    @property
    def _sampled(self) -> I32:
        """Users from whom something is estimated; of a log all."""
        return np.arange(self.plan.users if self.counted else min(_SAMPLED, self.plan.users), dtype=np.int32)


def prepare(composed: Composed, parent: Path | None = None) -> PreparedRun:
    """Make the components and look at the directory; nothing is written. `parent`: folder of a sweep's runs.

    Raises UsageError for parameters that a component refuses, and for a directory that holds another run.
    """
    root = composed.root
    simulator, embedder = (build(seam, root[seam], COMMAND_LINE) for seam in ("simulator", "embedder"))
    root = {**root, **_sizes(root, replay(simulator))}
    composed, salt = replace(composed, root=root), salts.given(root["salt"])
    plan = Plan(root["seed"], root["users"], root["weeks"], simulator, embedder, arms(composed.arms, COMMAND_LINE))
    plan = replace(plan, comparison=Comparison(**root["comparison"]))
    files = {**models(plan.arms), **_prompts(plan.arms), **seeds.digests(plan.arms)}
    data = {"simulator": simulator.digest, "embedder": embedder.digest, **files, **salt.data}
    key = identity_of(described(root, composed.arms, data))
    name = f"{root['experiment']}-{key[:8]}"
    named = root["out"] is not None and parent is None
    out = Path(root["out"]) if named else (parent or Path("runs")) / name
    launcher = build("launcher", _launcher(composed), COMMAND_LINE)
    sinks = build("tracker", root["tracker"], COMMAND_LINE).sinks
    job = PreparedRun(composed, plan, key, data, out, "new", launcher, sinks, _part(root["part"]))
    job = _salted(job, salts.kept(salt, out))
    return replace(job, state=_state(job))


def _launcher(composed: Composed) -> Mapping[str, Any]:
    """The launcher's node, whose workers also see the variables that hold the keys of models."""
    node: Mapping[str, Any] = composed.root["launcher"]
    if "variables" not in node:  # another one
        return node
    return {**node, "variables": sorted({*node["variables"], *_keys([composed.root, composed.arms])})}


def _keys(node: Any) -> Iterator[str]:
    """Variables that any `key_from` of a configuration names."""
    for key, inner in node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ():
        if key == "key_from" and isinstance(inner, str):
            yield inner
        yield from _keys(inner)


def _salted(job: PreparedRun, salt: Salt) -> PreparedRun:
    return replace(job, salt=salt, plan=replace(job.plan, salt=salt.number))


def _part(text: str | None) -> Part:
    """I/N as numbers."""
    if text is None:
        return WHOLE
    i, n = text.split("/")
    return int(i), int(n)


def _prompts(made: Sequence[Arm]) -> dict[str, str]:
    """Hashes of the prompt files of each arm that has some."""
    digests = {arm.name: [part.digest for part in parts(arm) if isinstance(part, Prompted)] for arm in made}
    return {f"prompts.{name}": " ".join(hashes) for name, hashes in digests.items() if hashes}


def _sizes(root: Mapping[str, Any], log: Replay | None) -> dict[str, int]:
    """`users` and `weeks`, those of the log where they are null or more.

    Raises UsageError where there is no log.
    """
    if log is not None:
        recorded = {"users": log.record.users, "weeks": log.record.weeks}
        return {key: n if root[key] is None else min(root[key], n) for key, n in recorded.items()}
    for key in ("users", "weeks"):
        if root[key] is None:
            raise UsageError(f"{key}=null is all of a recorded log, and there is none; give a number, or a simulator")
    return {}


def _state(job: PreparedRun) -> State:
    if not job.out.exists():
        return "new"
    if not job.out.is_dir():
        raise UsageError(f"out={job.out} is a file; name a folder")
    try:
        before = manifest_of(job.out / NAME) if (job.out / NAME).exists() else None
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
            + "\n  ".join(differences(before, _manifest(job)) or ["identity"])
        )
    finished = not before.get("incomplete") and next(faults(known), None) is None
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
            labels.append(shards.label(file).run)
    return bool(labels) and set(labels) == {_run_key(job)}


def _run_key(job: PreparedRun) -> str:
    return run_key({"identity": job.identity, "versions": versions(), **job.salt.told(ended=False)})


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {before[name]}, now {now.get(name)}" for name in before if before[name] != now.get(name))


def _manifest(job: PreparedRun) -> dict[str, Any]:
    root, log = job.composed.root, replay(job.plan.simulator)
    published = getattr(job.plan.simulator, "published", None)
    return {
        "schema": schema.VERSION,
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
        "advice": isinstance(job.plan.simulator, Advised),
        **({} if log is None else {"log": asdict(log.record)}),
        **({} if published is None else {"corpus": published}),
    }


def start(
    job: PreparedRun, progress: Progress | None = None, say: Say | None = None, embedding: Progress | None = None
) -> Run:
    """Run to the end, or go on where an earlier attempt was stopped; then write tables and page. A finished run is
    delivered to its trackers: what is not there yet. With `part` a part of the turns is made; the part that ends last
    goes on to tables and page.

    `say` is told what the corpus lacks, what is made again, and what became of each tracker; default: it is logged.
    `embedding(done, total)` counts texts that are embedded before the first turn. Raises Locked where another process
    works on the run.
    """
    say = say or logging.getLogger("skg_bench").warning
    if job.state == "finished":
        return _delivered(job, say)
    try:
        job.out.mkdir(mode=0o700, parents=True, exist_ok=True)  # logs hold messages
        with held(job.out, "run" if job.part == WHOLE else f"part {job.part[0]}/{job.part[1]}") as lock:
            job = _begun(job)
            job = replace(job, state=_state(job))  # another process may have ended it meanwhile
            if job.state != "finished":
                watch = Watch(progress or _quiet, lock)
                if job.part == WHOLE:
                    with callers_script_left_alone(), beside(job.sinks, job.out) as deliveries:
                        _simulate(job, watch, say, embedding)
                        return _end(job, lock, deliveries, say)
                with callers_script_left_alone():
                    _simulate(job, watch, say, embedding)
        return _delivered(job, say) if job.state == "finished" else _after_part(job, say)
    except OSError as error:  # a full disk does not say which one it is
        if not job.out.exists():
            raise UsageError(
                f"{job.out} was moved or deleted while the run was at work; what is finished lies where the folder is "
                "now: move it back, and run the same command again"
            ) from error
        error.filename = error.filename or str(job.out)
        raise


def _begun(job: PreparedRun) -> PreparedRun:
    """The run with the salt that the first of its processes drew."""
    if not job.salt.drawn:
        return job
    alone = nullcontext() if job.part == WHOLE else held(job.out, "tables", wait=_TABLES)
    with alone:  # another part may begin at the same moment
        job = _salted(job, salts.kept(job.salt, job.out))
        salts.keep(job.salt, job.out)
    return job


def _delivered(job: PreparedRun, say: Say) -> Run:
    remove_dead(job.out)  # a process may have been killed while it delivered
    with suppress(OSError):  # a folder that is only read
        sweep(job.out)
    finished = Run(job.out)
    with callers_script_left_alone():
        export(job.sinks, finished, DEADLINE, say)
    return finished


def _after_part(job: PreparedRun, say: Say) -> Run:
    """Tables and page, where no part has a shard left to make."""
    run, places = Run(job.out), _places(job.plan, WHOLE)
    absent = sum(not shards.path(run.path, "turns", arm, number).exists() for arm, number in places)
    if left := absent or sum(1 for _ in lost_shards(run, places)):  # all bytes are read once all shards are there
        say(
            f"part {job.part[0]}/{job.part[1]} is done; other parts have {plural(left, 'shard')} to make. The part "
            "that ends last writes tables and page, and so does the same command without part"
        )
        return run
    with held(job.out, "tables", wait=_TABLES) as lock:
        job = replace(job, state=_state(job))
        if job.state == "finished":
            pieces.end(job.out)
            return Run(job.out)
        with callers_script_left_alone(), beside(job.sinks, job.out) as deliveries:
            return _end(job, lock, deliveries, say)


def _simulate(job: PreparedRun, watch: Watch, say: Say, embedding: Progress | None) -> None:
    """All turns of the run, or of its part, that are not there."""
    for line in job.cautions():
        say(line)
    _say_what_is_made_again(job, say)
    if job.part == WHOLE:
        _write_manifest(job)
    else:
        with held(job.out, "tables", wait=_TABLES):  # another part may begin at the same moment, in other versions
            if _run_before(job) is None:
                _write_manifest(job)
        _state(job)
    root = job.composed.root
    plan = said_only(job.plan, job.turns() // len(job.plan.arms))
    execute(
        plan, job.out, run=_run_key(job), cohort=root["cohort"], workers=root["workers"],
        launcher=Naming(job.launcher, plan.arms), progress=watch, embedding=embedding, part=job.part,
    )  # fmt: skip
    timings = watch.timings(root["workers"], root["cohort"])
    if timings["turns"] or not _timed(Run(job.out)):  # an attempt without turns leaves those of another one
        write_json(job.out / "timings.json", timings)


def _timed(run: Run) -> bool:
    """Are there timings of an earlier attempt, as they were written?"""
    name, known = "timings.json", run.manifest.get("files", {})
    try:
        return manifest.accepted(run.path, name, known) if name in known else bool(json_file(run.path / name))
    except UsageError:
        return False


def _places(plan: Plan, part: Part) -> list[tuple[str, int]]:
    """Arms and numbers of the shards that a part makes."""
    return [(plan.arms[arm].name, number) for arm, number in np.argwhere(ours(plan, part)).tolist()]


def _run_before(job: PreparedRun) -> Run | None:
    """What an earlier attempt left; None: there is no manifest, or it is torn."""
    with suppress(UsageError):
        return Run(job.out)
    return None


def _say_what_is_made_again(job: PreparedRun, say: Say) -> None:
    try:
        before = Run(job.out)
    except UsageError as error:
        if (job.out / NAME).exists():
            say(f"{str(error).partition(';')[0]}: it is written again")
        return
    here = {arm: set(before.numbers(arm)) for arm in before.arms}
    places = [(arm, number) for arm, number in _places(job.plan, job.part) if number in here[arm]]
    for line in chain(lost_shards(before, places), lost_tables(before)):
        say(f"{line.partition(';')[0]}: it is made again")


def _write_manifest(job: PreparedRun) -> None:
    """Writes the manifest of an unfinished run.

    Fields of an earlier finished attempt are kept, to detect lost files.
    """
    before = _run_before(job)
    ended = {} if before is None else {key: before.manifest[key] for key in _ENDED if key in before.manifest}
    manifest.write(job.out, {**_manifest(job), **provenance(), **ended})


def _end(job: PreparedRun, lock: Lock, deliveries: Deliveries, say: Say) -> Run:
    """Tables and page of a run whose turns are all there, and what trackers get of it.

    Raises UsageError where a shard is missing or torn after all, and where the lock was lost.
    """
    run = Run(job.out)
    if fault := next(lost_shards(run, _places(job.plan, WHOLE)), None):
        raise UsageError(fault)
    numbers, before = range(shards.count(run.manifest["users"])), run.manifest.get("shards", {})
    digests = {arm: [shards.belonging(run.path, run.key, "turns", arm, k).digest for k in numbers] for arm in run.arms}
    lock.check()
    for arm in before.keys() & digests.keys():
        if before[arm] != digests[arm]:
            say(f"arm {arm}: shards that were made again are not the same bits; was one changed, or the processor?")
    pieces.end(job.out)
    # not the tables: `report` may have written some of the users so far
    pools = [f"pool/{file.name}" for file in sorted(job.out.glob("pool/*.json"))]
    files = manifest.digests(job.out, ["timings.json", *pools])
    manifest.write(
        job.out, {**run.manifest, **job.salt.told(ended=True), "incomplete": False, "shards": digests, "files": files}
    )
    salts.tell(job.out)
    deliveries.reached("turns")
    described = describe(job.out, deliveries.reached)
    for line in deliveries.lines():
        say(line)
    return described


def _quiet(_done: int, _total: int) -> None:
    """Nobody is watching."""


def _unwatched(_stage: Stage) -> None:
    """Nobody follows."""


def describe(out: Path, reached: Callable[[Stage], None] = _unwatched) -> Run:
    """Write `summary.json`, `curves.csv` and `report.html` of a run whose turns are all there."""
    from skg_bench.analysis import report, summary

    run = Run(out)
    summary.write(run)
    reached("tables")
    report.write(run)
    reached("page")
    return run
