"""The curator that captures everything: each answer of the LLM becomes a skill, or renews that of the same message."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.core.batch import ADD, REMOVE, TAG, UPDATE
from skg_bench.curator.everything import Everything
from skg_bench.runfolder.run import Run
from tests.curator.test_curators import asked, curated, operations, rated_late, turn
from tests.laws import world


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_every_answer_of_the_llm_is_captured_under_its_message_and_nobody_is_asked(seed: int) -> None:
    seen, offer, name, known, books = turn(seed)
    batch = curated(Everything(), seen, offer, name, known, books)
    captured = {o["row"]: o for o in operations(batch, ADD) + operations(batch, UPDATE)}
    assert sorted(captured) == np.flatnonzero(~seen.hit).tolist()
    for u, made in captured.items():
        examples = books.examples.text[u, : books.examples.count[u]].tolist()
        there = [books.examples.skill[u, at] for at, text in enumerate(examples) if text == seen.text[u]]
        assert (made["op"], made["skill"]) == ((UPDATE, there[0]) if there else (ADD, -1))
        assert (made["text"], made["source"], made["name"]) == (seen.text[u], 17, -1)
    tags = operations(batch, TAG)
    hit = np.flatnonzero(seen.hit)
    used = list(zip(hit.tolist(), seen.skill[hit].tolist(), seen.rating[hit].tolist(), strict=True))
    assert [(o["row"], o["skill"], o["rating"]) for o in tags if o["uses"]] == used
    assert [(o["row"], o["skill"], o["rating"]) for o in tags if not o["uses"]] == rated_late(known)
    assert not operations(batch, REMOVE)
    assert not asked(Everything(), seen).any()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return world.run(tmp_path_factory.mktemp("everything") / "run", 6, 64, 1, ("everything",))


def test_in_a_run_every_fallback_is_a_skill_that_is_logged_as_unnamed(run: Run) -> None:
    turns = run.turns("everything", ["fallback_to_llm", "skill_learned", "matched_skill", "offer"]).to_pandas()
    assert (turns["skill_learned"] == turns["fallback_to_llm"]).all()
    assert turns["fallback_to_llm"].any()
    assert (~turns["fallback_to_llm"]).any()
    assert set(turns["matched_skill"].dropna()) == {"unnamed"}
    assert turns["offer"].isna().all()
