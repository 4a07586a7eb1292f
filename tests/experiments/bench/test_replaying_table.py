"""How fast recorded asks are played, in the table of all that is timed."""

import pytest

from experiments.bench.speed import replaying


def test_replays_are_held_against_their_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFLINE", raising=False)
    (_, _, *unmarked), *played = replaying.rows(40)
    assert unmarked == ["", ""]
    assert len(played) == 2
    for _, measured, mark, ratio in played:
        assert mark == "5,000"
        assert float(measured.removesuffix(" asks/s").replace(",", "")) / 5_000 == pytest.approx(
            float(ratio.removesuffix("x")), abs=0.01
        )
