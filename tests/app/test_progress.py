"""Progress without a terminal: few lines, rate and time left from this attempt only."""

from skg_bench.app.progress import plain


def test_lines_come_every_five_seconds_and_at_the_end() -> None:
    now, lines = [0.0], list[str]()
    report = plain("growth", lines.append, clock=lambda: now[0])
    for second in range(11):
        now[0] = float(second)
        report(100 * second, 1000)
    assert len(lines) == 3
    assert lines[1] == "growth  50%  500 of 1,000 turns, 100 turns/s, 0:05 left"
    assert lines[2] == "growth 100%  1,000 of 1,000 turns, 100 turns/s, 0:00 left"


def test_what_an_earlier_attempt_did_counts_as_done_and_not_as_speed() -> None:
    now, lines = [0.0], list[str]()
    report = plain("growth", lines.append, clock=lambda: now[0])
    report(900, 2000)
    now[0] = 10.0
    report(1000, 2000)
    assert lines[1] == "growth  50%  1,000 of 2,000 turns, 10 turns/s, 1:40 left"
