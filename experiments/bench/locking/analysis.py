"""Losses where several learn into one skillbook: in runs whose learning takes time, and by real processes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from experiments.bench.locking import event_time, processes
from experiments.bench.locking.bursts import learners
from experiments.bench.locking.event_time import (
    AT_ONCE,
    MOMENT,
    SITTINGS,
    Setting,
    against_at_once,
    lived,
    serial_of,
    settings,
)
from experiments.bench.locking.processes import WRITERS, Outcome, outcomes
from skg_bench.analysis.comparison.assay import Measured, claim_verdict
from skg_bench.analysis.comparison.findings import Evidence, Finding
from skg_bench.app.experiment_report import Report, page
from skg_bench.app.experiments import Experiment
from skg_bench.runfolder.run import Run

COMMAND = "skg-bench experiment locking --profile demo --write reports"
WEEKLY = max(SITTINGS)
_SAFE = ("rebase", "replay")  # rules that look at the version


def findings(
    made: Sequence[Setting], results: Sequence[Outcome], waits: dict[str, Measured], command: str
) -> list[Finding]:
    """Findings of both halves on P18, P25, P26 and P42."""
    weekly = next(each.run for each in made if each.days == WEEKLY)
    evidence = Evidence.of([weekly], command)
    return [
        _nobody_waits(waits, made, evidence), _versions(results, evidence), _three_tries(made, evidence),
        _three_tries_at_once(results, evidence), _blind(made, results, evidence), _nothing_lost(made, evidence),
    ]  # fmt: skip


def _of(made: Sequence[Setting], rule: str, days: int = WEEKLY, *, slow: bool = False) -> Setting:
    return next(each for each in made if (each.rule, each.days, each.slow) == (rule, days, slow))


def _nobody_waits(waits: dict[str, Measured], made: Sequence[Setting], evidence: Evidence) -> Finding:
    wait, job = waits["latency_ms"], _seconds(_of(made, "rebase"))
    hundredth = 10 * job  # of a job, in ms
    says, _ = claim_verdict(holds=wait.high < hundredth, fails=wait.low > hundredth, assay=None)
    words = (
        f"A learning job takes {job:.1f} s, and the wait at a purchase differs by {wait.value:.0f} ms from that under "
        f"learning that takes no time; that learning comes later is worth {waits['utility']}."
    )
    return Finding("P18", "nobody waits for learning", wait, says, words, evidence)


def _seconds(setting: Setting) -> float:
    jobs = setting.run.learning(setting.arm, ["latency_ms"])
    return float(jobs["latency_ms"].to_numpy().mean()) / 1000.0


def _versions(results: Sequence[Outcome], evidence: Evidence) -> Finding:
    safe = [each for each in results if each.rule in _SAFE]
    stored, wrong = sum(each.stored for each in safe), sum(each.lost + each.doubled for each in safe)
    kills = sum(each.kills for each in safe)
    words = (
        f"{WRITERS} processes that write only over the version that they read lost or doubled {wrong} of {stored:,} "
        f"stored operations in {' and '.join(dict.fromkeys(each.database for each in safe))}, with {kills} backends "
        "killed."
    )
    says, _ = claim_verdict(holds=wrong == 0, fails=wrong > 0, assay=None)
    return Finding("P25", "a version check keeps all that is stored", _share(wrong, stored), says, words, evidence)


def _three_tries(made: Sequence[Setting], evidence: Evidence) -> Finding:
    every = [_of(made, "replay", days) for days in SITTINGS]
    met, jobs = (sum(each.losses.total(name) for each in every) for name in ("met", "jobs"))
    words = (
        f"Of {jobs:,} jobs of the simulated users, {met} wrote within {MOMENT / 1000:g} s of three other jobs of the "
        "same user, so that three tries could fail: a try takes milliseconds."
    )
    says, _ = claim_verdict(holds=met == 0, fails=met > jobs / 1000, assay=None)
    return Finding("P26", "three tries suffice for one user's jobs", _share(met, jobs), says, words, evidence)


def _three_tries_at_once(results: Sequence[Outcome], evidence: Evidence) -> Finding:
    dense = [each for each in results if each.rule == "replay"]
    given_up, operations = (sum(each.given_up for each in dense), sum(each.operations for each in dense))
    words = (
        f"Where {WRITERS} jobs of 8 ms begin at the same moment, {given_up} of {operations:,} operations were given up "
        "after the third try; `rebase` tries on, and gave up none."
    )
    says, _ = claim_verdict(holds=given_up == 0, fails=given_up > 0, assay=None)
    claimed = f"three tries suffice for {WRITERS} writers at the same moment"
    return Finding("P26", claimed, _share(given_up, operations), says, words, evidence)


def _blind(made: Sequence[Setting], results: Sequence[Outcome], evidence: Evidence) -> Finding:
    setting = _of(made, "blind")
    lost = setting.losses.share("overwritten")
    shares = ", ".join(
        f"{1000 * _of(made, 'blind', days).losses.share('overwritten').value:.1f} {words}"
        for days, words in SITTINGS.items()
    )
    dense = [each for each in results if each.rule == "blind"]
    stored, gone = sum(each.stored for each in dense), sum(each.lost for each in dense)
    words = (
        f"Blind writes lose, per 1,000 operations, where later answers are given: {shares}. {WRITERS} processes at the "
        f"same moment lost {gone} of {stored:,}. Conflicts come from answers given together.{_worth(setting)}"
    )
    says, _ = claim_verdict(holds=lost.low > 0, fails=False, assay=None)
    return Finding("P42", "without locks later writes overwrite earlier ones", lost, says, words, evidence)


def _worth(setting: Setting) -> str:
    if setting.cost is None:
        return ""
    worth = Measured.of(setting.cost.estimate, "utility per purchase")
    return f" Against `{serial_of(setting.arm)}` that is worth {worth}."


def _nothing_lost(made: Sequence[Setting], evidence: Evidence) -> Finding:
    replay = _of(made, "replay").losses
    late, slow = replay.share("timed_out"), _of(made, "replay", slow=True).losses.share("timed_out")
    words = (
        f"Reload and retry lose {replay.total('overwritten')} operations to conflicts; time limits, which nothing "
        f"retries, lose {1000 * late.value:.0f} per 1,000, and {1000 * slow.value:.0f} with a model that takes 15 s a "
        f"call. {replay.total('misdirected')} operations went to skills that another job had removed, and "
        f"{replay.total('duplicated')} added what another job had added."
    )
    says, _ = claim_verdict(holds=late.high < 0.001, fails=late.low > 0, assay=None)
    return Finding("P42", "with reload and retry nothing learned is lost", late, says, words, evidence)


def _share(count: int, total: int) -> Measured:
    """A share with an interval of its count: that of Wilson at 95 %."""
    n, p, z = max(total, 1), count / max(total, 1), 1.96
    middle, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return Measured(p, max(0.0, min(low, p)), min(1.0, max(high, p)), "share")


def analyse(
    profile: Annotated[str, typer.Option(help="Of the runs.")] = "demo",
    users: Annotated[int, typer.Option(help="Of each run.", min=2)] = 40,
    store_users: Annotated[int, typer.Option(help="Whose learning processes repeat.", min=1)] = 3,
    kill_every: Annotated[float, typer.Option(help="Seconds until another backend is killed.", min=0.1)] = 0.5,
    folder: Annotated[Path, typer.Option(help="On the disk of the databases.")] = Path("runs"),
) -> Report:
    """Runs the Guardian's users with three ways to answer, and repeats what some of them learned in databases; the exit
    code is 1 where a rule that looks at versions loses or doubles something.
    """
    runs: dict[int, Run] = {days: lived(profile, users, days) for days in SITTINGS}
    made = settings(runs)
    folder.mkdir(exist_ok=True)
    people = learners(runs[WEEKLY], AT_ONCE, store_users, WRITERS)
    results = list(outcomes(people, folder, kill_every))
    waits = against_at_once(runs[WEEKLY])
    first, second = event_time.table(made), processes.table(results)
    command = COMMAND.replace("demo", profile)
    verdicts = findings(made, results, waits, command)
    sentences = "\n".join(
        f"* {each.id}, {each.claimed}: {each.measured}, {each.verdict}. {each.words}" for each in verdicts
    )
    text = page(
        "What is lost where several learn into one skillbook?",
        command,
        _about(runs),
        first,
        second,
        "## verdicts\n\n" + sentences,
    )
    holds = not any(each.lost + each.doubled for each in results if each.rule in _SAFE)
    return Report([first, second, sentences], text, holds, findings=lambda: verdicts)


def _about(runs: dict[int, Run]) -> str:
    m = runs[WEEKLY].manifest
    return (
        f"{m['users']} users, {m['weeks']} weeks, seed {m['seed']}. A learning job calls a model twice; `serial` waits "
        "for the user's job before, and is what the others are held against. Conflicts are per 1,000 jobs; lost, "
        "duplicated, misdirected, merged, aside and timed out are operations per 1,000. The interval of the utility is "
        "for new purchases of the same users."
    )


EXPERIMENT = Experiment(analyse, one_thread=True)
