"""What is said of an ask that is not recorded."""

from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from skg_bench.asking.asking import Prompt
from skg_bench.asking.recorded_asks import Ask
from skg_bench.asking.unrecorded import difference
from skg_bench.core.errors import UsageError
from skg_bench.llm.recorded import RecordedModel
from tests.llm.models import SCHEMA, Whole, prompt


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFLINE", raising=False)


def refusal(folder: Path, ask: Prompt, **settings: Any) -> str:
    """What playing `ask` says, where three others are recorded."""
    model = Whole(str(folder / "sent"))
    recorded = [
        prompt("the weather\nin Kiel\ntoday"),
        prompt("a table for two\nat eight", system="You reflect.\nBe short."),
        prompt("the weather\nin Kiel\ntoday", role="skill_manager", system="You keep skills."),
    ]
    RecordedModel(model, "both", str(folder / "asked")).complete(recorded)
    with pytest.raises(UsageError) as raised:
        RecordedModel(replace(model, **settings), "play", str(folder / "asked")).complete([*recorded, ask][-1:])
    return str(raised.value)


def test_it_shows_the_nearest_ask_of_the_role_and_the_first_line_that_differs(tmp_path: Path) -> None:
    text = refusal(tmp_path, prompt("the weather\nin Kiew\ntoday"))
    assert f"role 'reflector' is not recorded in {tmp_path / 'asked'}" in text
    assert "as curator.llm.mode=play" in text
    assert "The nearest of 2 recorded differs: line 2 of its user text is now 'in Kiew', was 'in Kiel'." in text
    assert "run the same command with curator.llm.mode=both" in text


def test_another_version_of_the_prompt_file_shows_in_the_system_text(tmp_path: Path) -> None:
    text = refusal(tmp_path, prompt("a table for two\nat eight", system="You reflect.\nBe brief."))
    assert "line 2 of its system text is now 'Be brief.', was 'Be short.'." in text
    assert "user text" not in text


@pytest.mark.parametrize(
    ("fields", "settings", "named"),
    [
        ({}, {"model": "n"}, "differs: model='n', recorded with 'm'."),
        ({}, {"top_p": 0.5}, "differs: top_p=0.5, recorded with 1.0."),
        ({}, {"temperature": 0.5}, "differs: temperature=0.5, recorded with 0.0; draw=1, recorded with None."),
        ({"limit": 5}, {}, "differs: limit=5, recorded with 100."),
        ({"schema": None}, {}, "differs: schema=None, recorded with '"),
        ({"schema": {**SCHEMA, "title": "x"}}, {}, "differs: schema='"),
    ],
)
def test_settings_that_differ_are_named(
    fields: dict[str, Any], settings: dict[str, Any], named: str, tmp_path: Path
) -> None:
    assert named in refusal(tmp_path, prompt("the weather\nin Kiel\ntoday", **fields), **settings)


def test_texts_and_settings_that_differ_are_both_named(tmp_path: Path) -> None:
    text = refusal(tmp_path, prompt("the weather\nin Kiew\ntoday"), model="n")
    assert "now 'in Kiew', was 'in Kiel'; model='n', recorded with 'm'." in text


def test_a_role_of_which_nothing_is_recorded_is_named_with_those_that_are(tmp_path: Path) -> None:
    text = refusal(tmp_path, prompt("the weather", role="chooser"))
    assert "role 'chooser'" in text
    assert "Nothing of that role is recorded, only of reflector, skill_manager." in text


def test_a_line_that_is_missing_and_other_line_breaks_are_differences(tmp_path: Path) -> None:
    assert "line 4 of its user text is now 'now', was ''" in refusal(
        tmp_path, prompt("the weather\nin Kiel\ntoday\nnow")
    )
    assert "its user text has other line breaks" in refusal(tmp_path, prompt("the weather\nin Kiel\ntoday\n"))


def test_long_lines_are_cut_around_what_differs() -> None:
    settings = {"model": "m", "temperature": 0.0, "top_p": 1.0}
    before, now = (Ask(prompt("x" * 5000 + word + "y" * 5000), settings) for word in ("before", "now"))
    text = difference(now, [before.fields])
    assert "...xx" in text
    assert "xnowyy" in text
    assert "xbeforeyy" in text
    assert len(text) < 500


def test_of_very_many_recorded_asks_few_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"model": "m", "temperature": 0.0, "top_p": 1.0}
    compared = []
    quick_ratio = SequenceMatcher.quick_ratio

    def counted(self: "SequenceMatcher[str]") -> float:
        compared.append(1)
        return quick_ratio(self)

    monkeypatch.setattr(SequenceMatcher, "quick_ratio", counted)
    asks = [Ask(prompt(f"question {i:04}"), settings).fields for i in range(2_000)]
    now = Ask(prompt("question 1999"), {**settings, "model": "n"})
    assert difference(now, asks) == "The nearest of 2,000 recorded differs: model='n', recorded with 'm'."
    assert len(compared) == 300
