"""Runs on other machines: they run this very code, and ask no model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

from skg_bench.app.run_identity import code_digest, versions
from skg_bench.asking.asking import components_within, writes_texts
from skg_bench.core.abilities import UsesOtherMachines
from skg_bench.core.arms import Arm
from skg_bench.core.errors import UsageError
from skg_bench.core.launching import Launcher, Result, Tick, WorkerJob
from skg_bench.llm.scripted import Scripted


def checked_launcher(launcher: Launcher, arms: Sequence[Arm]) -> Launcher:
    """`launcher`; where it uses other machines, each of them checks its code first.

    Raises UsageError for arms that ask a model there, as one machine keeps budgets and recordings.
    """
    if not isinstance(launcher, UsesOtherMachines):
        return launcher
    asking = [arm.name for arm in arms if any(_asks(part) for part in components_within(arm))]
    if asking:
        raise UsageError(
            f"arms that ask a model cannot run on other machines, as one keeps budget and recording: "
            f"{', '.join(asking)}; take launcher=local for them, or llm=scripted"
        )
    return _SameCode(launcher)


def _asks(part: Any) -> bool:
    return writes_texts(part) and not isinstance(part, Scripted)


def _made_of() -> dict[str, str]:
    """Digest of the code, plug-ins included, and versions of what it calls."""
    return {"code": code_digest(), **versions()}


@dataclass(frozen=True)
class _SameCode:
    launcher: Launcher

    def carry_out(
        self,
        job: WorkerJob[Any, Result],
        tasks: Sequence[Any],
        workers: int,
        folder: Path,
        progress: Callable[[int], None],
    ) -> list[Result]:
        return self.launcher.carry_out(_CheckedJob(job, _made_of()), tasks, workers, folder, progress)


@dataclass(frozen=True)
class _CheckedJob:
    job: WorkerJob[Any, Any]
    made_of: Mapping[str, str]  # of the machine of the command

    def begin(self) -> Callable[[Any, Tick], Any]:
        here = _made_of()
        unlike = [
            f"{name} {here.get(name)}, not {mine}" for name, mine in self.made_of.items() if here.get(name) != mine
        ]
        if unlike:
            raise UsageError(
                f"node {gethostname()} has {'; '.join(unlike)}: install there what the machine of the command "
                "has, start the node again, and give the same command"
            )
        return self.job.begin()
