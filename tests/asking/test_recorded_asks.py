"""What an ask is known by."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.asking.asking import Prompt
from skg_bench.asking.recorded_asks import Ask
from tests.llm.models import prompt

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.none() | st.dictionaries(st.text(max_size=5), JSON, max_size=4)
PROMPTS = st.builds(
    Prompt, st.sampled_from(["reflector", "chooser"]), st.text(), st.text(), SCHEMAS, st.integers(0, 3),
    st.integers(1, 3),
)  # fmt: skip
SETTINGS = st.fixed_dictionaries({
    "model": st.sampled_from("ab"), "temperature": st.sampled_from([0.0, 0.5]), "top_p": st.sampled_from([0.9, 1.0])
})  # fmt: skip


def decides(ask: Ask) -> str:
    """All that decides an answer, written out for itself."""
    draw = [ask.prompt.draw] if ask.settings["temperature"] > 0 else []
    settings = [ask.settings[name] for name in ("model", "temperature", "top_p")]
    parts = [ask.prompt.system, ask.prompt.user, ask.prompt.schema, ask.prompt.limit, *settings, *draw]
    return json.dumps(parts, sort_keys=True)


@given(PROMPTS, SETTINGS, PROMPTS, SETTINGS)
def test_two_asks_have_the_same_key_where_all_that_decides_the_answer_is_the_same(
    prompt: Prompt, settings: dict[str, Any], other: Prompt, others: dict[str, Any]
) -> None:
    mixed = replace(other, system=prompt.system, user=prompt.user, schema=prompt.schema)
    for second in (other, mixed):
        first, compared = Ask(prompt, settings), Ask(second, others)
        assert (first.key == compared.key) == (decides(first) == decides(compared))


@given(PROMPTS, SETTINGS)
def test_a_key_does_not_depend_on_the_order_in_which_a_schema_is_written(
    prompt: Prompt, settings: dict[str, Any]
) -> None:
    schema = None if prompt.schema is None else dict(reversed(list(prompt.schema.items())))
    turned = dict(reversed(settings.items()))
    assert Ask(replace(prompt, schema=schema), turned).key == Ask(prompt, settings).key


@given(PROMPTS, SETTINGS, st.integers(0, 2**63 - 1))
def test_the_draw_counts_above_temperature_0_only(prompt: Prompt, settings: dict[str, Any], draw: int) -> None:
    same = Ask(replace(prompt, draw=draw), settings).key == Ask(prompt, settings).key
    assert same == (settings["temperature"] == 0 or draw == prompt.draw)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "other"}, {"temperature": 0.5}, {"top_p": 0.5}, {"top_p": None}, {"system": "x"}, {"user": "x"},
        {"schema": None}, {"schema": {"type": "object"}}, {"limit": 5},
    ],
)  # fmt: skip
def test_whatever_decides_an_answer_changes_the_key(changed: dict[str, Any]) -> None:
    settings = {"model": "m", "temperature": 0.0, "top_p": 1.0}
    ask = Ask(prompt("question"), settings)
    other = Ask(replace(ask.prompt, **{k: v for k, v in changed.items() if k not in settings}),
                settings | {k: v for k, v in changed.items() if k in settings})  # fmt: skip
    assert other.key != ask.key


def test_neither_the_role_nor_the_address_nor_the_type_of_a_number_is_in_the_key() -> None:
    settings = {"model": "m", "temperature": 0.0, "top_p": 1.0}
    ask = Ask(prompt("question"), settings)
    alike = Ask(
        replace(ask.prompt, role="chooser"), {"model": "m", "temperature": 0, "top_p": 1, "address": "http://x"}
    )
    assert alike.key == ask.key


def test_the_key_stays_what_it_was() -> None:
    """Or recordings of before are lost."""
    ask = Ask(prompt("question"), {"model": "m", "temperature": 0.0, "top_p": 1.0})
    assert ask.key.hex() == "5d3eb093dc3ee9fd426dc0e2ab05d232591f0abdfcbfc6f5260a7ba58a63a792"
