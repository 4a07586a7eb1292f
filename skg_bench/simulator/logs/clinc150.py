"""CLINC150 as a corpus: real people's messages to an assistant, with its out-of-scope ones as one-offs.

Larson et al., An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction, EMNLP-IJCNLP 2019. A file in
its format is a JSON object of splits (`train, val, test, oos_train, oos_val, oos_test`), each a list of [message,
intent] pairs.

* How long an answer holds, and which intents are acts, is not in it; a table of intent names says so
  (`data/clinc150.yaml`).
* Slot values are not annotated. An intent whose answers depend on them has its messages dealt, by their hashes, to so
  many `values` of equal size: messages of one value count as the same request in other words, those of two as requests
  of other slot values. So texts do not show which value they mean, and which of a user's own requests of such an intent
  comes again is for a router to guess: a lower bound of what it could know. `values=1`, where an intent's messages all
  ask for the same, is the upper one.
* A run draws from one split alone. Within it a user's k-th use of a request type takes its k-th wording in that user's
  own order: what is captured is what the user said, and what comes later was not said before, until wordings are used
  up. What is tuned outside the loop, or fitted on other people's ratings, is kept apart by the split.
* Nothing is known of the hour, the weekday and the intent before: all are as likely at any time.
"""

from dataclasses import dataclass
from typing import ClassVar, get_args

from skg_bench.core.errors import UsageError
from skg_bench.core.reach import Reach, Reaches
from skg_bench.simulator.answers.clinc150_file import Split, clinc150_corpus
from skg_bench.simulator.answers.corpus import Corpus


@dataclass(frozen=True)
class Clinc150:
    """A corpus in CLINC150's format. What each parameter means stands in its yaml."""

    file: str | None
    table: str | None
    split: Split
    values: int
    reaches: ClassVar[Reaches] = {"file": Reach(("reads",)), "table": Reach(("reads",))}

    def __post_init__(self) -> None:
        if self.split not in get_args(Split):
            raise UsageError(f"simulator.corpus.split={self.split!r}, valid are {', '.join(get_args(Split))}")
        if self.values < 1:
            raise UsageError(f"simulator.corpus.values={self.values} must be at least 1")

    def load(self) -> Corpus:
        """The corpus.

        Raises UsageError for a file that is absent, torn or of another format, for messages whose intent the table does
        not label, and for labels without messages.
        """
        return clinc150_corpus(self.file, self.table, self.split, self.values)
