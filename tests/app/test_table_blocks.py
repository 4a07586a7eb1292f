"""Tables on a terminal of 80 columns."""

from io import StringIO

from rich.console import Console

from skg_bench.app.table_blocks import blocks, show_table

WIDE = ["arm", "difference", "interval", "verdict", *(f"figure {n}" for n in range(12))]
ROWS = [
    ["skg", "-0.010", "-0.020 to +0.001", "inconclusive", *("123,456.78" for _ in range(12))],
    ["refit_every=20:exact_match", "+1.000", "+0.900 to +1.100", "better", *("-" for _ in range(12))],
]


def printed(headings: list[str], rows: list[list[str]], width: int = 80) -> list[str]:
    screen = Console(file=StringIO(), width=width)
    show_table(screen, headings, rows)
    return screen.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_columns_that_do_not_fit_follow_in_blocks_that_begin_with_the_first_column() -> None:
    lines = printed(WIDE, ROWS)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert "…" not in text
    for row in ROWS:
        assert all(cell in text for cell in row)
    assert lines[0].split()[:4] == ["arm", "difference", "interval", "verdict"]
    assert text.count("exact_match") == text.count("\n\n") + 1 >= 3


def test_a_table_that_fits_is_one_block() -> None:
    assert len(blocks(WIDE[:4], ROWS, 80)) == 1
    assert len(blocks(WIDE, ROWS, 400)) == 1
    assert printed(["arm"], [["skg"]]) == ["arm", "skg"]


def test_prose_is_wrapped_between_words_and_figures_stay_whole() -> None:
    prose = "Reciprocal rank fusion of what two routers find, of which the first counts a little more than the second"
    lines = printed(["option", "what it is", "default"], [["hybrid", prose, "12.5 %"]])
    assert max(map(len, lines)) <= 80
    assert set(prose.split()) <= set(" ".join(lines).split())
    assert any("12.5 %" in line for line in lines)


def test_a_word_wider_than_the_terminal_is_folded_and_not_cut() -> None:
    path = "/folder" * 20
    assert "".join("".join(printed(["dataset", "here"], [["uss", path]])).split()).replace("datasethereuss", "") == path


def test_a_table_in_which_nothing_is_wrapped_has_its_columns_under_one_another() -> None:
    lines = printed(["run", "size", "verdict"], [["first", "+0.1", "better"], ["宽", "-12.25", "-"]], width=40)
    assert [line.rstrip() for line in lines] == [
        "run      size  verdict",
        "first    +0.1  better",
        "宽     -12.25  -",
    ]


def test_a_line_of_a_table_in_which_nothing_is_wrapped_is_one_cell() -> None:
    """A cell for each value took ten times as long: seconds for the thousand runs of a folder."""
    headings = ["run", "when", "size", "seed", "arms", "learner", "utility", "verdict", "state"]
    rows = [
        [f"run-{n}", *["2026-11-27 10:00", "12 x 4", "0", "16", "skg", "-0.012", "worse", "whole"]] for n in range(1000)
    ]
    (table,) = blocks(headings, rows, 120)
    assert (len(table.columns), table.row_count) == (1, 1000)
    assert len(printed(headings, rows, width=120)) == 1001
