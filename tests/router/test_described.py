"""Descriptions alone stand in the prompt: long bodies push nothing out of it."""

from dataclasses import replace

import numpy as np
import pytest

from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.core.texts import Texts
from skg_bench.router.described import Described
from skg_bench.router.in_prompt import InPrompt
from tests.router.test_in_prompt import world


@pytest.mark.parametrize("seed", range(20))
def test_skills_are_listed_as_if_they_had_no_body(seed: int) -> None:
    query, books = world(seed)
    texts, bodies = Texts([], [], None), Texts([], [], None)
    keys = np.unique(books.content[books.content != 0])
    contents = [content for content in query.contents.of(keys) if content is not None]
    short = dict(zip(keys.tolist(), map(texts.contents.add, contents), strict=True)) | {0: 0}
    whole = [Content(content.section, content.issue, "body " * 2000) for content in contents]
    long = dict(zip(keys.tolist(), map(bodies.contents.add, whole), strict=True)) | {0: 0}
    made = []
    for router, table, known in (
        (InPrompt("evidence", 1000, 9), short, texts),
        (Described("evidence", 1000, 9), long, bodies),
    ):
        content = np.vectorize(table.get, otypes=[np.uint64])(books.content)
        made.append(router.route(replace(query, contents=known.contents), replace(books, content=content)))
    assert np.array_equal(made[0].skill, made[1].skill)
    assert (made[0].skill >= 0).any()
    content = np.vectorize(long.get, otypes=[np.uint64])(books.content)
    none = InPrompt("evidence", 1000, 9).route(
        replace(query, contents=bodies.contents), replace(books, content=content)
    )
    assert (none.skill < 0).all()


def test_what_no_prompt_can_be_is_refused() -> None:
    with pytest.raises(UsageError, match=r"router\.limit=10 characters"):
        Described("evidence", 10, 9)
