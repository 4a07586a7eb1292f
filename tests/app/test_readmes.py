"""Sentences of READMEs that state a result are made from the committed reports, and agree with them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from skg_bench.app.readmes import cell, figure, fill_readmes, stale, templates
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CHECKOUT

REPORT = """# Trial

| arm | asks | utility | verdict |
| --- | --- | ---: | --- |
| skg | one | -0.034 (-0.047 to -0.021) | worse |
| skg | two | **0.000** | identical |

## Counts

| arm | skills | hits |
| --- | ---: | ---: |
| skg | 1,015.3 | 7.2 % |
"""
TEMPLATE = """README.md:
  one: |
    Users are served {trial / skg / one / utility | say better, worse}:
    {trial / skg / one / utility | value} utility.
    They have {trial / Counts / skg / skills | whole} skills and hit {trial / Counts / skg / hits | whole}.
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("reports", "experiments"):
        (tmp_path / folder).mkdir()
    (tmp_path / "reports" / "trial.md").write_text(REPORT, "utf-8")
    (tmp_path / "experiments" / "sentences.yaml").write_text(TEMPLATE, "utf-8")
    (tmp_path / "README.md").write_text(
        "# A\n\n<!-- made by make readme: one -->\n<!-- end of one -->\n\nMore.\n", "utf-8"
    )
    return tmp_path


def test_every_sentence_of_this_checkout_agrees_with_its_report() -> None:
    assert not stale(CHECKOUT), "\n".join(stale(CHECKOUT))


def test_figures_are_put_into_their_sentences_and_the_rest_stays(checkout: Path) -> None:
    assert fill_readmes(checkout) == ["README.md"]
    text = (checkout / "README.md").read_text("utf-8")
    assert text.startswith("# A\n\n<!-- made by make readme: one -->\nUsers are served worse: -0.034 utility. ")
    assert "1,015 skills and hit 7 %.\n<!-- end of one -->\n\nMore.\n" in text
    assert stale(checkout) == []
    assert fill_readmes(checkout) == []


def test_a_stale_sentence_is_told_with_its_figure_and_that_of_the_report(checkout: Path) -> None:
    fill_readmes(checkout)
    readme = checkout / "README.md"
    readme.write_text(readme.read_text("utf-8").replace("-0.034", "+0.078"), "utf-8")
    (problem,) = stale(checkout)
    assert problem.startswith('README.md, one: "Users are served worse: +0.078 utility." says +0.078, and reports say')
    assert "reports say -0.034 ({trial / skg / one / utility | value}); write it again: make readme" in problem


def test_a_report_that_changes_its_sign_makes_the_word_stale_too(checkout: Path) -> None:
    fill_readmes(checkout)
    report = checkout / "reports" / "trial.md"
    report.write_text(REPORT.replace("-0.034 (", "+0.034 ("), "utf-8")
    assert [re.findall("says (.+), and reports say (.+) \\(", p)[0] for p in stale(checkout)] == [
        ("worse", "better"), ("-0.034", "+0.034"),
    ]  # fmt: skip


def test_words_that_were_changed_by_hand_are_told(checkout: Path) -> None:
    fill_readmes(checkout)
    readme = checkout / "README.md"
    readme.write_text(readme.read_text("utf-8").replace("Users are", "Nobody is"), "utf-8")
    (problem,) = stale(checkout)
    assert problem.startswith(
        "README.md, one: the words are not those of experiments/sentences.yaml; change them there"
    )


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nothing / skg / utility", r"names .*nothing\.md, which does not exist"),
        ("trial / skg / utility", "names 2 cells of reports/trial.md, and must name one"),
        ("trial / skg / one / hits", "names 0 cells"),
        ("trial / skg / two / utility | say better, worse", "'0.000' in reports/ is neither better nor worse"),
        ("trial / skg / one / verdict | whole", "'worse' in reports/ is no figure"),
        ("trial / skg / one / utility | loud", "'loud' is none of value, whole, say A, B"),
    ],
)
def test_a_place_that_names_no_figure_says_what_is_wrong(checkout: Path, place: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        figure(checkout, place)


def test_a_cell_is_found_by_section_or_by_its_first_cells(checkout: Path) -> None:
    assert cell(checkout, "trial / Counts / skg / hits") == "7.2 %"
    assert cell(checkout, "trial / skg / two / verdict") == "identical"
    assert cell(checkout, "trial / skg / two / utility") == "0.000"


def test_a_readme_without_the_place_says_what_to_write(checkout: Path) -> None:
    (checkout / "README.md").write_text("# A\n", "utf-8")
    with pytest.raises(UsageError, match=r"README\.md has no place for 'one' of .*`<!-- made by make readme: one -->`"):
        fill_readmes(checkout)


def test_no_readme_states_a_difference_outside_of_these_sentences() -> None:
    """A signed figure with decimals is a result."""
    readmes = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
    readmes += sorted((CHECKOUT / "experiments").glob("*/README.md"))
    made = re.compile(r"<!-- made by make readme: .*?<!-- end of .*?-->|```.*?```|`[^`\n]*`", re.DOTALL)
    for readme in readmes:
        rest = made.sub("", readme.read_text("utf-8"))
        assert not re.findall(r"(?<![\w.=-])[-+]\d+\.\d+", rest), readme
        blocks = templates(CHECKOUT).get(readme.relative_to(CHECKOUT).as_posix(), {})
        assert rest.count("made by make readme") == 0
        assert readme.read_text("utf-8").count("<!-- made by make readme: ") == len(blocks)


def test_the_command_writes_the_readmes_of_a_checkout(checkout: Path) -> None:
    command = [sys.executable, "-m", "skg_bench.app.readmes", str(checkout)]
    for says in ("written: README.md", "all READMEs agree with reports/"):
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT)
        assert done.stdout.strip() == says
    (checkout / "reports" / "trial.md").unlink()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert (done.returncode, done.stderr.startswith("error: {trial / ")) == (2, True)
