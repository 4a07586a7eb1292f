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
