"""A model with a limit on what a run spends on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from skg_bench.asking import arrivals
from skg_bench.asking.asking import ASKS_FOLDER, Completion, Prices, Prompt, TextModel
from skg_bench.asking.spending import Spending, SpendingFile
from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.core.reach import Reach, Reaches


@dataclass(frozen=True)
class Budgeted:
    """`llm`, of which all processes of a run together take `tokens`, read and written, and `usd`; null: no limit.

    What an ask costs is known when its answer is there. From then on where the budget is spent, no process sends
    another ask; what is under way ends, is handed on and counts. So more than the budget is spent by the asks in flight
    at most: those of each process, or, of a model that answers a call as a whole, the asks of that call.

    Totals are kept in `folder`, null: in the run's own, and go on when the run does. Answers that a killed process was
    waiting for are not known, and not in them.
    """

    llm: TextModel
    tokens: int | None
    usd: float | None
    folder: str | None
    beside: ClassVar[Sequence[str]] = ("tokens", "usd", "folder")  # parameters that do not change what comes out
    reaches: ClassVar[Reaches] = {"folder": Reach(("reads", "writes"))}

    def __post_init__(self) -> None:
        for name in ("tokens", "usd"):
            if (limit := getattr(self, name)) is not None and not limit > 0:
                raise UsageError(f"curator.llm.{name}={limit} must be more than 0; null is no limit")
        if self.usd is not None and self.llm.prices is None:
            raise UsageError(
                f"curator.llm.usd={self.usd} needs the prices of its model: set usd_per_million_in, "
                "usd_per_million_cached and usd_per_million_out of the model inside, or limit curator.llm.tokens"
            )

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the model inside."""
        return self.llm.settings

    @property
    def prices(self) -> Prices | None:
        """Prices of the model inside."""
        return self.llm.prices

    def kept_in(self, folder: Path) -> "Budgeted":
        """Counted with the run in `folder`, where no other folder is given."""
        return self if self.folder is not None else replace(self, folder=str(folder / ASKS_FOLDER))

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers in order.

        Raises UsageError as `each` does.
        """
        return arrivals.complete(self.each, prompts)

    def each(self, prompts: Sequence[Prompt], done: arrivals.Done) -> None:
        """Call `done` for answers as they come.

        Raises BudgetReached where asks are left and the budget is spent, and UsageError for totals that cannot be read
        or written, and as the model inside does.
        """
        if not prompts:
            return
        ledger = self._ledger()
        self._check(ledger.total())
        left, reached = len(prompts), None

        def arrived(answers: arrivals.CompletionsByPlace) -> None:
            nonlocal left, reached
            try:
                spent = ledger.add(answers.values())
            finally:
                done(answers)
            left -= len(answers)  # not of a caller that failed: it has not got them
            if reached is None:  # once is enough: what is under way is to be handed on
                try:
                    self._check(spent)
                except BudgetReached as error:
                    reached = error
                    raise

        try:
            arrivals.ask_each(self.llm, prompts, arrived)
        except BudgetReached as error:
            if error is not reached:
                raise
            if left:  # none: the last asks were under way
                self._check(ledger.total())  # with what was under way

    def _ledger(self) -> SpendingFile:
        if self.folder is None:
            raise UsageError(
                "curator.llm=budgeted needs a folder outside of runs: set curator.llm.folder to where its file "
                "is to lie"
            )
        return SpendingFile(Path(self.folder) / "spent.jsonl")

    def _check(self, spent: Spending) -> None:
        tokens = self.tokens is not None and spent.tokens >= self.tokens
        if tokens or (self.usd is not None and spent.usd >= self.usd):
            limits = [f"{self.tokens:,} tokens"] if self.tokens is not None else []
            limits += [f"{self.usd:g} USD"] if self.usd is not None else []
            raise BudgetReached(
                f"the budget of {' and '.join(limits)} is spent: {spent.asks:,} asks took {spent.tokens:,} tokens and "
                f"{spent.usd:.4f} USD. Run the same command with a larger curator.llm.{'tokens' if tokens else 'usd'} "
                "to go on: what is recorded (curator.llm=recorded) is not asked again, finished users never"
            )
