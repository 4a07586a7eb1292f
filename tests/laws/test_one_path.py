"""Law 4: answering one message online is the call that a simulation makes for a thousand; law 7: values are frozen."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from skg_bench.assistant.pipeline import decision, ensemble
from skg_bench.assistant.pipeline.components import components
from skg_bench.assistant.pipeline.decision import Memory, ServingChoice
from skg_bench.assistant.pipeline.stack import Stack
from skg_bench.core.grid import I16, I32, U64
from skg_bench.core.types import Query, Skillbooks, WrittenTexts
from skg_bench.core.world import World
from skg_bench.engine.plan import Plan
from skg_bench.engine.relabel import Relabelled
from skg_bench.engine.vectors import Pinned, Rows, SimilarityTable
from skg_bench.runfolder.run import Run
from tests.arms import changed
from tests.core import samples
from tests.laws import world

SOME, MORE = 10, 16  # users; the last of more learns the most before an arm freezes


def alone(value: Any, row: int) -> Any:
    """One row of a value of whatever shape."""
    if isinstance(value, np.ndarray):
        return value[row : row + 1]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: alone(getattr(value, f.name), row) for f in fields(value)})
    if isinstance(value, tuple):
        return tuple(alone(part, row) for part in value)
    return value


def same(a: Any, b: Any) -> bool:
    """The same bits, of the same type and shape."""
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b)


def checking(plan: Plan, checked: list[int]) -> Callable[..., ServingChoice]:
    """Choices of many, of which some are made again, one message at a time: with a book of its own, in order of skills,
    and with all three ways to come by similarities. Sizes of those books are noted.
    """
    vectors: I16 = plan.embedder.embed(Relabelled(plan.simulator, plan.seed).messages)  # by the text ids of the run
    many, rng = decision.choose_skills, np.random.default_rng(0)

    def decide(
        stack: Stack, query: Query, books: Skillbooks, memory: Memory, event: U64, *, texts: WrittenTexts | None = None
    ) -> ServingChoice:
        choice = many(stack, query, books, memory, event, texts=texts)
        for row in rng.permutation(len(query.text))[: 3 if query.turn % 4 == 0 else 0].tolist():
            single_book, single_query, own_memory = (
                samples.one(books, row),
                samples.some_queries(query, [row]),
                alone(memory, row),
            )
            used = np.concatenate([single_query.text, single_book.examples.text[0]])
            few = vectors[used].astype(np.float32)
            table = np.zeros((len(vectors), 1), np.float32)  # only what this message needs of the table
            table[used, 0] = few @ few[0]
            for similarity in (
                Pinned(vectors, single_book.examples.text[0]),
                Rows(vectors),
                _Column(vectors, table, int(single_query.text[0])),
            ):
                single = many(
                    stack,
                    samples.asked_with(single_query, single_book, similarity),
                    single_book,
                    own_memory,
                    event[[row]],
                    texts=texts,
                )
                assert same(single, alone(choice, row))
            checked.append(int(books.n_skills[row]))
        return choice

    return decide


@dataclass(frozen=True)
class _Column:
    """One column of the table of all pairs."""

    vectors: I16
    table: np.ndarray
    query: int

    def dots(self, query: I32, example: I32, row: Any = None) -> np.ndarray:
        assert query.tolist() == [self.query]
        return SimilarityTable(self.table).dots(np.zeros(1, np.int32), example * 1)

    def gram(self, text: I32) -> np.ndarray:
        return Rows(self.vectors).gram(text)

    def pairs(self, text: I32, other: I32) -> np.ndarray:
        return Rows(self.vectors).pairs(text, other)


# ------------------------------------------------------------------------------------------------ frozen values


def sealed(value: Any) -> Any:
    """The same value, seen through arrays that cannot be written to."""
    if isinstance(value, np.ndarray):
        seen = value.view()
        seen.setflags(write=False)
        return seen
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: sealed(getattr(value, f.name)) for f in fields(value)})
    if type(value).__name__ == "Positions":
        places = copy(value)
        for name, part in vars(value).items():
            setattr(places, name, sealed(part))
        return places
    return value


def arrays(value: Any) -> Iterator[np.ndarray]:
    """All arrays in a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif is_dataclass(value):
        for f in fields(value):
            yield from arrays(getattr(value, f.name))


class Sealed:
    """A component that is handed sealed values only, and may not hand back what it was given to change."""

    def __init__(self, component: Any, calls: dict[str, int]) -> None:
        self._component, self._calls = component, calls

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._component, name)
        if not callable(member):
            return member

        def call(*values: Any, **options: Any) -> Any:
            states = {"learn": 1, "curate": 5, "respond": 1, "offer": 1, "merge": 1}.get(name, 0)  # it owns its state
            given = [v if i + 1 == states else sealed(v) for i, v in enumerate(values)]
            kept = [v for i, v in enumerate(given) if i + 1 != states]
            before = [a.tobytes() for v in kept for a in arrays(v) if a.size < 10_000]
            made = member(*given, **options)
            assert before == [a.tobytes() for v in kept for a in arrays(v) if a.size < 10_000]
            key = f"{type(self._component).__name__}.{name}"
            self._calls[key] = self._calls.get(key, 0) + 1
            if name == "fit":  # learning returns new values
                old = [a for a in arrays(values[0]) if a.size]
                assert not any(np.shares_memory(a, b) for a in arrays(made) for b in old)
            return made

        return call


@pytest.mark.parametrize("arm", world.ALL)
@pytest.mark.req("K20")
def test_one_message_is_decided_as_it_is_among_many_and_no_component_changes_what_it_is_given(
    base: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: str
) -> None:
    """One run holds both: its components are sealed, and some of its messages are decided once more by themselves."""
    users = MORE if arm.startswith("frozen") else SOME
    plan, calls, checked = world.plan(users, (arm,)), dict[str, int](), list[int]()
    (template,) = plan.arms
    seams = ("router", "reranker", "policy", "curator", "signals")
    careful: dict[str, Any] = {seam: Sealed(getattr(components(template), seam), calls) for seam in seams}
    careful["llm"] = Sealed(template.llm, calls)
    guarded = replace(
        plan, simulator=cast(World[Any], Sealed(plan.simulator, calls)), arms=(changed(template, **careful),)
    )
    alone = arm in ("repeat_last", "oracle")  # their shortlists are as long as the longest of a run
    first = world.carry_out(plan, tmp_path / "a", users, 256) if alone else base
    monkeypatch.setattr(ensemble, "choose_skills", checking(plan, checked))
    assert world.differences(first, world.carry_out(guarded, tmp_path / "b", users, 256), range(users), [arm]) == []
    assert len(checked) > 20
    assert max(checked) >= 5 or arm in ("deaf", "band", "always")
    kinds = {name.split(".")[1] for name in calls}
    assert {"route", "propensities", "complete", "respond", "curate", "prefer", "combine"} <= kinds
    assert ("fit" in kinds) == (arm not in ("identity", "deaf", "never", "band", "oracle")), calls
