"""The toy assistants as an installed package, in a small world where users often say the same words again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import skg_bench
from skg_bench.runfolder.run import Run
from tests.app.lab import declare, forget, write
from tests.runs import changed

TOYS = Path(__file__).with_name("toy.py")
WORLD = (
    "profile=smoke", "users=6", "simulator.one_off_share=0.1", "simulator.concentration=1", "simulator.discount=0",
    "simulator.rated_share=0.6", "weeks=2", "simulator.messages_per_day=7", "simulator.volume_spread=0.2",
    "simulator.day_spread=0.2", "simulator.active_low=1",  # all have 80 to 111 turns, and a run 111 steps
)  # fmt: skip
LAST, CUT = 120, 60
ARMS = {
    "skg": ["policy.threshold=0.3"],
    "never": ["policy=never"],
    "toy": ["assistant=toy"],
    "diary": ["assistant=diary"],
    "frozen": ["assistant=toy", "freeze=all", f"freeze_at={CUT}"],
    "fork": ["assistant=toy", f"fork=toy@{CUT}"],
    "short": ["assistant=toy", "assistant.last=40", f"fork=toy@{CUT}"],
}


def install(site: Path) -> None:
    """Write the package and its metadata."""
    write(site / "toys" / "__init__.py", "")
    write(site / "toys" / "toy.py", TOYS.read_text("utf-8"))
    write(site / "toys" / "conf" / "assistant" / "toy.yaml", f"_target_: toys.toy.Echo\nlast: {LAST}\n")
    write(site / "toys" / "conf" / "assistant" / "diary.yaml", "_target_: toys.toy.Diary\nsorry: I do not know that.\n")
    declare(site, "toys")


@contextmanager
def installed(site: Path) -> Iterator[Path]:
    """The package on the search path of this process, and of those that it starts."""
    install(site)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        forget()
        yield site
        for name in [name for name in sys.modules if name.split(".")[0] == "toys"]:
            del sys.modules[name]
    forget()


def table(*names: str, **more: list[str]) -> str:
    """Arms as an override."""
    arms = {name: ARMS[name] for name in names} | more
    return "arms={" + ", ".join(f"{name}: [{', '.join(texts)}]" for name, texts in arms.items()) + "}"


def run(out: Path, *overrides: str) -> Run:
    """A run in that world."""
    return skg_bench.run([*WORLD, *overrides, f"out={out}"])


def as_if_committed(made: Run) -> Run:
    """The run, as if from a clean tree."""
    return changed(made, dirty=None)
