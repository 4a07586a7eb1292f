"""The Python memory whose turns are timed, and the table of them."""

from datetime import UTC, datetime

import pytest

from experiments.bench.speed import spoken

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def test_the_memory_that_is_timed_shows_the_nearest_of_its_last_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spoken, "MEMORY", 3)
    memory, prompts = spoken.Kept(), list[list[str]]()

    def model(prompt: str) -> str:
        prompts.append(prompt.split("\n"))
        return "Noted."

    for message in ("The code is a1.", "The gate is b2.", "What code is it?", "The lock is c3.", "What code is it?"):
        assert memory.answer("ann", NOW, message, model) == "Noted."
    assert prompts[2] == ["The code is a1.", "The gate is b2.", "What code is it?"]
    assert prompts[4] == ["What code is it?", "The lock is c3.", "The gate is b2.", "What code is it?"]  # a1 is gone


def test_turns_in_words_are_held_against_their_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spoken, "EVEN", [*spoken.EVEN, "weeks=1"])
    monkeypatch.setattr(spoken, "USERS", {"never": (3, 3), "python": (2, 2)})
    rows = list(spoken.rows(quick=True))
    assert [mark for _, _, mark, _ in rows] == ["20,000", "2,000"]
    for _, measured, mark, ratio in rows:
        rate = float(measured.removesuffix(" turns/s").replace(",", ""))
        assert rate / float(mark.replace(",", "")) == pytest.approx(float(ratio.removesuffix("x")), abs=0.01)
