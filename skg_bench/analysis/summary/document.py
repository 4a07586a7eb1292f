"""Content of `summary.json`: its types, how they are written, and how they are read and checked."""

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skg_bench.analysis.counts.metrics import Better, Utility
from skg_bench.analysis.summary.figures import DifferenceFigure, Figure
from skg_bench.analysis.summary.job_outcomes import LearningJobs
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import json_of, plain
from skg_bench.core.shapes import shaped
from skg_bench.runfolder.telling import Telling

SUMMARY_VERSION = 12


@dataclass(frozen=True)
class MetricWords:
    """A metric as a reader meets it."""

    label: str
    unit: str
    better: Better
    says: str


@dataclass(frozen=True)
class FreezeEffect:
    """Worth of learning after turn `since`: live - frozen over turns >= since; Holm over the frozen arms."""

    live: str
    since: int
    metrics: Mapping[str, DifferenceFigure]


@dataclass(frozen=True)
class Sensitivity:
    """Utility at other prices of a wrong answer, or of the mistake that the domain prices."""

    wrong: Sequence[float]  # the prices, lambda
    arms: Mapping[str, Sequence[Figure]]  # one figure a price
    differences: Mapping[str, Sequence[Figure]]  # arm - reference
    break_even: Mapping[str, float | None]  # lambda at which utility equals the reference's; None: at none >= 0
    pays_from: Mapping[str, Sequence[float | None]]  # share of right hits from which these pay, at each price


@dataclass(frozen=True)
class OfferPrices:
    """Utility at other prices of an offer to capture; empty where skills keep no answers or a log is replayed."""

    prices: Sequence[float]
    arms: Mapping[str, Sequence[Figure]]  # one figure a price
    differences: Mapping[str, Sequence[Figure]]  # arm - reference
    break_even: Mapping[str, float | None]  # price at which utility equals the reference's; None: at none >= 0


@dataclass(frozen=True)
class Waterfall:
    """Utility lost per request by `cause` of the turn log, and policy = score + threshold; or by link of the domain
    (`regret.py`).

    All but policy sum to ceiling - utility. `n_turns` of a figure: turns of the arm booked to the cause.
    """

    ceiling: float
    losses: Mapping[str, Figure]
    differences: Mapping[str, Figure] | None  # arm - reference, paired; None: of the reference


@dataclass(frozen=True)
class CorpusUse:
    """How much of the run the corpus forced; see `saturation.py`."""

    verbatim: float | None
    verbatim_last_week: float | None
    types_used_up: float | None
    one_offs_again: float | None
    limit: float
    testable: bool
    reasons: Sequence[str]  # why claims about curves and utility are not testable here


@dataclass(frozen=True)
class Summary:
    """The content of `summary.json`; arms, metrics and causes by name, in the order in which they are shown."""

    version: int
    question: str
    seed: int
    users: int
    weeks: int
    turns: int  # of one arm
    reference: str | None  # arms by role
    never: str | None
    learner: str
    changed: Sequence[str]  # arms that the command changed, or added to those of the experiment
    serving: Mapping[str, str]  # arm -> what a skill is: stored (its answer is returned), prompted or procedure
    incomplete: bool  # the run is unfinished
    utility: Utility
    metrics: Mapping[str, MetricWords]
    arms: Mapping[str, Mapping[str, Figure]]
    differences: Mapping[str, Mapping[str, DifferenceFigure]]  # arm - reference; Holm over the arms
    effects: Mapping[str, FreezeEffect]  # by frozen arm
    kinds: Mapping[
        str, Mapping[str, Figure]
    ]  # arm - reference: utility by kind of request, which sum to the difference
    sensitivity: Sensitivity
    offers: OfferPrices
    waterfall: Mapping[str, Waterfall]
    log: Mapping[str, Any] | None  # what a replayed log says of itself (`core/record.py`); None: users are simulated
    ceiling: Mapping[str, Figure]  # k -> share of requests with k or more earlier answers that still hold; and
    # `procedure`, if some arm runs them -> share of requests of an intent that the user asked for before
    saturation: CorpusUse
    totals: Mapping[str, Mapping[str, float | None]]  # arm -> count -> sum over all users
    learning: Mapping[str, LearningJobs]  # by arm; of arms that asked a model
    domain: str
    own: Sequence[str]  # metrics that the domain brings itself
    answers: bool  # do skills keep answers that are right or wrong?
    telling: Telling  # the words of the domain
    pending_feedback: int  # ratings of all arms that became known only after the end, and were used in nothing

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(asdict(self), indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Summary":
        """The content of a file's text.

        Raises ValueError saying what is wrong with it.
        """
        try:
            content = plain(json_of(text, "the file"), "the file")
        except UsageError as error:
            raise ValueError(str(error)) from error
        version = content.get("version") if isinstance(content, Mapping) else None
        if version != SUMMARY_VERSION:
            raise ValueError(f"version {reprlib.repr(version)}, this program reads version {SUMMARY_VERSION}")
        summary: Summary = shaped(cls, content, "summary")
        return summary
