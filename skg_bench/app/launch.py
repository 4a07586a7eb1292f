"""Launch of a run: from a composed configuration to a finished run directory."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.app import salts
from skg_bench.app.asks import check_shared_recordings
from skg_bench.app.building import build
from skg_bench.app.caller import callers_script_left_alone
from skg_bench.app.compose import Composed
from skg_bench.app.composed_arms import arms
from skg_bench.app.domains import check_domain
from skg_bench.app.failures import Naming
from skg_bench.app.needed_messages import needed_only
from skg_bench.app.other_machines import checked_launcher
from skg_bench.app.outside_sources import outside_digests, outside_packages
from skg_bench.app.prepared_run import PreparedRun, manifest_fields, run_key_of, state_of
from skg_bench.app.run_identity import described, provenance, write_json
from skg_bench.app.run_trackers import DEADLINE, Deliveries, beside, deliver_all
from skg_bench.app.salts import Salt
from skg_bench.app.skillbook import seed_books
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.app.watch import Watch
from skg_bench.asking.asking import Prompted, components_within
from skg_bench.asking.prompts import load_prompt
from skg_bench.assistant.pipeline.pretraining import models
from skg_bench.core.abilities import ReadsTables
from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Keeping, Stackable
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import json_file
from skg_bench.core.record import HasRecord
from skg_bench.core.temporary import sweep
from skg_bench.core.text import plural
from skg_bench.core.world import World
from skg_bench.engine import pieces
from skg_bench.engine.agreement_judge import AgreementJudge
from skg_bench.engine.controls import wants_controls
from skg_bench.engine.execute import Progress, check_end, execute
from skg_bench.engine.plan import Plan
from skg_bench.engine.tasks import WHOLE, Part, ours
from skg_bench.engine.world_checks import check_events
from skg_bench.runfolder import manifest, shards
from skg_bench.runfolder.links import check_links
from skg_bench.runfolder.lock import Lock, held, remove_dead
from skg_bench.runfolder.manifest import MANIFEST, identity_of
from skg_bench.runfolder.measured_run import measured_run
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.tracking import Stage
from skg_bench.runfolder.wholeness import lost_shards, lost_tables

Say = Callable[[str], None]  # one line for the user
_TABLES = 600.0  # seconds to wait for another part that writes tables and page
_ENDED = ("shards", "files")  # what the manifest of a finished run has more


def prepare(composed: Composed, parent: Path | None = None) -> PreparedRun:
    """Make the components and look at the directory; nothing is written. `parent`: folder of a sweep's runs.

    Raises UsageError for parameters that a component refuses, and for a directory that holds another run.
    """
    load_prompt.cache_clear()  # files may be others than for the last run of this process
    root = composed.root
    simulator, embedder = (build(seam, root[seam], COMMAND_LINE) for seam in ("simulator", "embedder"))
    check_domain(simulator.domain)
    root = {**root, **_sizes(root, simulator)}
    composed, salt = replace(composed, root=root), salts.given_salt(root["salt"])
    plan = Plan(root["seed"], root["users"], root["weeks"], simulator, embedder, arms(composed.arms, COMMAND_LINE))
    check_shared_recordings(plan.arms)
    plan = replace(plan, comparison=AgreementJudge(**root["comparison"]))
    for assistant in (phase.assistant for arm in plan.arms for phase in arm.phases):
        if isinstance(assistant, Keeping) and not isinstance(assistant, Stackable):
            assistant.start(0)  # raises UsageError where nothing says what is played
    files = {
        **models(plan.arms),
        **_prompts(plan.arms),
        **_tables(plan.arms),
        **seed_books.seed_digests(plan.arms),
        **outside_digests(plan.arms),
    }
    data = {"simulator": simulator.digest, "embedder": embedder.digest, **files, **salt.data}
    key = identity_of(described(root, composed.arms, data))
    name = f"{root['experiment']}-{key[:8]}"
    named = root["out"] is not None and parent is None
    out = Path(root["out"]) if named else (parent or Path("runs")) / name
    launcher = checked_launcher(build("launcher", _launcher(composed), COMMAND_LINE), plan.arms)
    sinks = build("tracker", root["tracker"], COMMAND_LINE).sinks
    job = PreparedRun(composed, plan, key, data, out, "new", launcher, sinks, _part(root["part"]))
    job = _salted(job, salts.kept_salt(salt, out))
    return replace(job, state=state_of(job))


def _launcher(composed: Composed) -> Mapping[str, Any]:
    """The launcher's node, whose workers also see the variables that hold the keys of models."""
    node: Mapping[str, Any] = composed.root["launcher"]
    if not isinstance(node.get("variables"), list):  # another launcher, or what `build` refuses
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
    digests = {arm.name: [part.digest for part in components_within(arm) if isinstance(part, Prompted)] for arm in made}
    return {f"prompts.{name}": " ".join(hashes) for name, hashes in digests.items() if hashes}


def _tables(made: Sequence[Arm]) -> dict[str, str]:
    """Digests of the tables that components of each arm read, beside the world.

    Raises UsageError, with the name of the arm, for tables that they do not take.
    """
    digests = dict[str, str]()
    for arm in made:
        try:
            read = [part.tables_digest for part in components_within(arm) if isinstance(part, ReadsTables)]
        except UsageError as error:
            raise UsageError(f"arm {arm.name!r}: {error}") from error
        if whole := " ".join(filter(None, read)):
            digests[f"tables.{arm.name}"] = whole
    return digests


def _sizes(root: Mapping[str, Any], world: World[Any]) -> dict[str, int]:
    """`users` and `weeks`, those of the world's table where they are null or more.

    Raises UsageError where it has none.
    """
    if isinstance(world, HasRecord):
        recorded = {"users": world.record.users, "weeks": world.record.weeks}
        return {key: n if root[key] is None else min(root[key], n) for key, n in recorded.items()}
    for key in ("users", "weeks"):
        if root[key] is None:
            raise UsageError(
                f"{key}=null means all of a recorded log, and this simulator replays none; give a number, or "
                "simulator=recorded"
            )
    return {}


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
    except OSError as error:
        raise UsageError(
            f"cannot make {error.filename or job.out}: {error.strerror or error}; out=FOLDER writes elsewhere"
        ) from error
    try:
        check_links(job.out)
        with held(job.out, "run" if job.part == WHOLE else f"part {job.part[0]}/{job.part[1]}") as lock:
            job = _begun(job)
            job = replace(job, state=state_of(job))  # another process may have ended it meanwhile
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
        job = _salted(job, salts.kept_salt(job.salt, job.out))
        salts.keep_salt(job.salt, job.out)
    return job


def _delivered(job: PreparedRun, say: Say) -> Run:
    remove_dead(job.out)  # a process may have been killed while it delivered
    with suppress(OSError):  # a folder that is only read
        sweep(job.out)
    finished = Run(job.out)
    with callers_script_left_alone():
        deliver_all(job.sinks, finished, DEADLINE, say)
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
        job = replace(job, state=state_of(job))
        if job.state == "finished":
            pieces.end(job.out)
            return Run(job.out)
        with callers_script_left_alone(), beside(job.sinks, job.out) as deliveries:
            return _end(job, lock, deliveries, say)


def _simulate(job: PreparedRun, watch: Watch, say: Say, embedding: Progress | None) -> None:
    """All turns of the run, or of its part, that are not there."""
    if not type(job.plan.simulator).__module__.startswith("skg_bench."):  # those are held by tests/conformance
        check_events(job.plan)
    for line in job.cautions():
        say(line)
    _say_what_is_made_again(job, say)
    if job.part == WHOLE:
        _write_manifest(job)
    else:
        with held(job.out, "tables", wait=_TABLES):  # another part may begin at the same moment, in other versions
            if _run_before(job) is None:
                _write_manifest(job)
        state_of(job)
    root = job.composed.root
    plan = _needed(job)
    execute(
        plan, job.out, run=run_key_of(job), cohort=root["cohort"], workers=root["workers"],
        launcher=Naming(job.launcher, plan.arms), progress=watch, embedding=embedding, part=job.part,
    )  # fmt: skip
    timings = watch.timings(root["workers"], root["cohort"])
    if timings["turns"] or not _timed(Run(job.out)):  # an attempt without turns leaves those of another one
        write_json(job.out / "timings.json", timings)


def _needed(job: PreparedRun) -> Plan:
    return needed_only(job.plan, job.turns() // len(job.plan.arms))


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
    """Run that an earlier attempt left; None: there is no manifest, or it is torn."""
    with suppress(UsageError):
        return Run(job.out)
    return None


def _say_what_is_made_again(job: PreparedRun, say: Say) -> None:
    try:
        before = Run(job.out)
    except UsageError as error:
        if (job.out / MANIFEST).exists():
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
    made = provenance()
    if outside := outside_packages(job.plan.arms):
        made["packages"] = {**made.get("packages", {}), **outside}
    manifest.write_manifest(job.out, {**manifest_fields(job), **made, **ended})


def _end(job: PreparedRun, lock: Lock, deliveries: Deliveries, say: Say) -> Run:
    """Tables and page of a run whose turns are all there, and what trackers get of it.

    Raises UsageError where a shard is missing or torn after all, and where the lock was lost.
    """
    run = Run(job.out)
    if fault := next(lost_shards(run, _places(job.plan, WHOLE)), None):
        raise UsageError(fault)
    if any(map(wants_controls, job.plan.arms)):
        check_end(_needed(job), job.out, lambda _: lock.check())
    numbers, before = range(shards.count(run.manifest["users"])), run.manifest.get("shards", {})
    digests = {arm: [shards.belonging(run.path, run.key, "turns", arm, k).digest for k in numbers] for arm in run.arms}
    lock.check()
    for arm in before.keys() & digests.keys():
        if before[arm] != digests[arm]:
            say(f"arm {arm}: shards that were made again are not the same bits; was one changed, or the processor?")
    pieces.end(job.out)
    # not the tables: `report` may have written some of the users so far
    pools = [f"pool/{file.name}" for file in sorted(job.out.glob("pool/*.json"))]
    files = manifest.file_digests(job.out, ["timings.json", *pools])
    manifest.write_manifest(
        job.out, {**run.manifest, **job.salt.told(ended=True), "incomplete": False, "shards": digests, "files": files}
    )
    salts.tell(job.out)
    deliveries.reached("turns")
    described = write_outputs(job.out, deliveries.reached)
    for line in deliveries.lines():
        say(line)
    return described


def _quiet(_done: int, _total: int) -> None:
    """Ignores progress."""


def _unwatched(_stage: Stage) -> None:
    """Ignores the attempt."""


def write_outputs(out: Path, reached: Callable[[Stage], None] = _unwatched) -> Run:
    """Write `summary.json`, `curves.csv` and `report.html` of a run whose turns are all there."""
    from skg_bench.analysis import report, summary

    run = Run(out)
    summary.write_summary(measured_run(run))
    reached("tables")
    report.write_page(run)
    reached("page")
    return run
