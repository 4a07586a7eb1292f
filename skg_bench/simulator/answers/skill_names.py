"""Names that users give a skill: by the request, by its intent where slot values differ, or one that says nothing."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from skg_bench.core.grid import F64, I32
from skg_bench.core.world import OFFERS, Event
from skg_bench.simulator.answers.corpus import Corpus

_VAGUE = ("stuff", "the-usual", "question", "that-thing", "misc")
_NAMELESS = "unnamed"
_WORDS = 6  # of a message, in the name of a skill made from it
_BADLY, _DECLINED = OFFERS.index("badly_named"), OFFERS.index("declined")


class SkillNames:
    """Names of request types, one-offs, vague ones, and intents with slot values; the last one for no name."""

    def __init__(self, corpus: Corpus) -> None:
        slotted = np.flatnonzero(np.bincount(corpus.intent, minlength=len(corpus.intents)) > 1)
        one_offs = [" ".join(corpus.messages[i].split()[:5]) for i in corpus.one_offs]
        types, intents = (
            [name.replace("_", "-").replace("|", "-").replace(" ", "-").lower() for name in names]
            for names in (corpus.types, [corpus.intents[i] for i in slotted])
        )
        self.all = [*types, *one_offs, *_VAGUE, *intents, _NAMELESS]
        self._vague, self._first_one_off = len(types) + len(one_offs), len(corpus.messages) - len(one_offs)
        place = np.full(len(corpus.intents), -1)
        place[slotted] = len(self.all) - 1 - len(slotted) + np.arange(len(slotted))
        name = place[corpus.intent]
        self._general = np.where(name < 0, np.arange(len(types)), name).astype(np.int32)  # of each request type
        self._types = len(types)

    def given(self, event: Event, code: I32, among: F64) -> tuple[I32, I32]:
        """The name of this request and that of all of its intent, `[B]` each, as indices into `all`; -1: none.

        `code`: in OFFERS, -1 where nobody was asked; `among`: where between 0 and 1 a vague name lies among all.
        """
        type_ = event.type
        proper = np.where(type_ >= 0, type_, self._types + event.text - self._first_one_off)
        general = np.where(type_ >= 0, self._general[type_], proper)
        vague = self._vague + np.minimum((among * len(_VAGUE)).astype(np.int64), len(_VAGUE) - 1)
        gives = (code >= 0) & (code != _DECLINED)
        name, of_intent = (
            np.where(gives, np.where(code == _BADLY, vague, some), -1).astype(np.int32) for some in (proper, general)
        )
        return name, of_intent


def distinct(messages: Sequence[str], taken: set[str]) -> Iterator[str]:
    """A name of its own for each message, from its first words."""
    count = Counter[str]()
    for message in messages:
        words = "".join(sign if sign.isalnum() else " " for sign in message.lower()).split()[:_WORDS]
        name = stem = "-".join(words) or "message"
        while name in taken:
            count[stem] += 1
            name = f"{stem}-{count[stem] + 1}"
        taken.add(name)
        yield name
