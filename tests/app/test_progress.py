"""Progress without a terminal: few lines, rate and time left from this attempt only."""

from io import StringIO

from rich.console import Console

from skg_bench.app.compose import compose
from skg_bench.app.progress import progress_bars, progress_lines, run_headline, working


def test_lines_come_every_five_seconds_and_at_the_end() -> None:
    now, lines = [0.0], list[str]()
    report = progress_lines("growth", lines.append, clock=lambda: now[0])
    for second in range(11):
        now[0] = float(second)
        report(100 * second, 1000)
    assert len(lines) == 3
    assert lines[1] == "growth  50%  500 of 1,000 turns, 100 turns/s, 0:05 left"
    assert lines[2] == "growth 100%  1,000 of 1,000 turns, 100 turns/s, 0:00 left"


def test_what_an_earlier_attempt_did_counts_as_done_and_not_as_speed() -> None:
    now, lines = [0.0], list[str]()
    report = progress_lines("growth", lines.append, clock=lambda: now[0])
    report(900, 2000)
    now[0] = 10.0
    report(1000, 2000)
    assert lines[1] == "growth  50%  1,000 of 2,000 turns, 10 turns/s, 1:40 left"


def test_texts_that_are_embedded_have_lines_of_their_own() -> None:
    console = Console(file=StringIO(), width=80)
    with progress_bars("growth", console) as (turns, texts):
        texts(0, 40)
        texts(40, 40)
        turns(7, 7)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "embedding   0%  0 of 40 texts"
    assert lines[1].startswith("embedding 100%  40 of 40 texts, ")
    assert lines[1].endswith(" texts/s, 0:00 left")
    assert lines[2] == "growth 100%  7 of 7 turns"


def test_a_terminal_shows_a_bar_of_texts_only_if_there_are_any() -> None:
    for embeds in (True, False):
        console = Console(file=StringIO(), width=80, force_terminal=True)
        with progress_bars("growth", console) as (turns, texts):
            if embeds:
                texts(40, 40)
            turns(7, 7)
        output = console.file.getvalue()  # type: ignore[attr-defined]
        assert "growth" in output
        assert ("embedding" in output) == embeds


def test_a_clock_runs_on_a_terminal_while_something_works() -> None:
    for terminal in (True, False):
        console = Console(file=StringIO(), width=80, force_terminal=terminal)
        with working("controls", console):
            pass
        output = console.file.getvalue()  # type: ignore[attr-defined]
        assert ("controls" in output) == terminal


def test_the_headline_promises_no_users_that_a_log_may_lack() -> None:
    log = ["simulator=recorded", "simulator.path=log.csv", "users=500"]
    assert run_headline(compose(log).root).startswith("recorded: at most 500 users, all weeks of the log, seed 0")
    assert run_headline(compose(["users=500", "weeks=2"]).root).startswith("first: 500 users, 2 weeks, seed 0")
    assert run_headline(compose(["users=1", "weeks=1"]).root).startswith("first: 1 user, 1 week, seed 0")
