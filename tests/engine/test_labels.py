"""The words behind ids in logs: of the world, written in the run, or of no text."""

import numpy as np
import pyarrow as pa
import pytest

from skg_bench.core.texts import Texts
from skg_bench.engine.labels import Labels

MESSAGES, NAMES = ["to b", "to a", "to c"], ["b", "a"]
NOTHING = pa.array([], pa.string())


def labels(*written: str) -> Labels:
    """Of a world with three messages and two names, whose ids are 0 to 2 and 3 to 4; what is written is 5, ..."""
    texts = Texts(MESSAGES, NAMES, None)
    texts.add(list(written))
    return Labels(texts, pa.array(MESSAGES), pa.array(NAMES), NOTHING, NOTHING, NOTHING, NOTHING)


def column(*ids: int) -> np.ndarray:
    return np.array(ids, np.int32)


@pytest.mark.parametrize("ids", [(0, 1, 2, -1), (2, -1, 0), (0,), (2, 2), (-1,), ()])
def test_messages_of_the_world_stand_in_its_order(ids: tuple[int, ...]) -> None:
    """Their dictionary is that of the world, or what of it is used, in whatever order they were sent."""
    made = labels("to 0").message(column(*ids))
    assert made.to_pylist() == [None if i < 0 else MESSAGES[i] for i in ids]
    kept = MESSAGES if len(ids) >= len(MESSAGES) else [MESSAGES[i] for i in sorted({i for i in ids if i >= 0})]
    assert made.dictionary.to_pylist() == kept


@pytest.mark.parametrize("ids", [(3, 4, -1), (4, 3), (3,)])
def test_names_of_the_world_are_counted_from_the_end_of_its_messages(ids: tuple[int, ...]) -> None:
    made = labels("0").name(column(*ids))
    assert made.to_pylist() == [None if i < 0 else NAMES[i - 3] for i in ids]
    kept = NAMES if len(ids) >= len(NAMES) else [NAMES[i - 3] for i in sorted(ids)]
    assert made.dictionary.to_pylist() == kept


@pytest.mark.parametrize("column_of", ["message", "name"])
def test_with_a_text_of_another_kind_the_dictionary_is_in_order_of_the_words(column_of: str) -> None:
    """Ids of what is written follow from what a process did before."""
    made = getattr(labels("to z", "to 0"), column_of)(column(5, 0, -1, 6, 4))
    assert made.to_pylist() == ["to z", "to b", None, "to 0", "a"]
    assert made.dictionary.to_pylist() == ["a", "to 0", "to b", "to z"]
    first_written = getattr(labels("to 0"), column_of)(column(5, 4 if column_of == "name" else 0))
    assert first_written.to_pylist() == ["to 0", "a" if column_of == "name" else "to b"]
    below = getattr(labels(), column_of)(column(2, 4))
    assert below.to_pylist() == ["to c", "a"]
