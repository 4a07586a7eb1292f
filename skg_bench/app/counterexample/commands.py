"""Output of `counterexample find` and `counterexample replay`."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from skg_bench.app import table_blocks
from skg_bench.app.counterexample import cases, shrink
from skg_bench.app.counterexample.cases import Case, answer_in_words
from skg_bench.app.progress import console
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run, made_here


def find(
    runs: Sequence[Path],
    arm: str,
    reference: str | None,
    *,
    user: int | None,
    turn: int | None,
    metric: str | None,
    out: Path | None,
    trust: bool = False,
) -> None:
    """Find the smallest session, show it, and write it to `out`.

    Raises UsageError, OSError.
    """
    if len(runs) > 2:
        raise UsageError(f"{len(runs)} runs; give that of the arm and, if it is another, that of the reference")
    opened = [Run(path) for path in runs]
    for run in opened:
        made_here(run, "a counterexample")
    case = shrink.smallest_case(
        opened[0], arm, reference, against=opened[-1], user=user, turn=turn, metric=metric,
        trust=trust,
    )  # fmt: skip
    screen = console()
    screen.print(case.says, soft_wrap=True)
    _show(screen, case)
    n = len(case.events)
    screen.print(f"{n} event{'' if n == 1 else 's'}: leave any one out, and it does not show any more")
    if out is not None:
        cases.save_case(case, out)
        screen.print(f"{out}: replay it with skg-bench counterexample replay {out}", soft_wrap=True)


def replay(paths: Sequence[Path], *, trust: bool = False) -> bool:
    """Replay cases; returns whether all do what they did.

    Raises UsageError.
    """
    screen, whole = console(), True
    for path in paths:
        case = cases.load_case(path, trust=trust)
        try:
            wrong = cases.deviations(case)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error
        screen.print(f"{path}: {'changed' if wrong else 'as it was'}", soft_wrap=True)
        for line in wrong:
            screen.print(f"  {line}", soft_wrap=True)
        whole = whole and not wrong
    return whole


def _show(screen: Console, case: Case) -> None:
    headings = ["event", "time", "message", *(f"{role}: {case.specs[role].name}" for role in case.expected)]
    table = []
    for i, event in enumerate(case.events):
        when = (FIRST_MONDAY + timedelta(seconds=event["time"])).strftime("%a %Y-%m-%d %H:%M")
        did = [answer_in_words(rows[i]) for rows in case.expected.values()]
        table.append([str(event["number"]), when, event["message"], *did])
    table_blocks.show_table(screen, headings, table)
