"""The notebook of the docs, run cell by cell as a kernel does, and the figures that it shows."""

import ast
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import skg_bench
from tests.app.test_cli import ROOT

NOTEBOOK = ROOT / "docs" / "first_notebook.ipynb"
SVG = "{http://www.w3.org/2000/svg}"


def sources(kind: str) -> list[str]:
    """Texts of the notebook's cells of a kind."""
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def last_value(source: str, namespace: dict[str, Any]) -> Any:
    """Runs a cell; returns the value of its last line, which a notebook shows, if that is an expression."""
    statements = ast.parse(source).body
    last = statements.pop() if isinstance(statements[-1], ast.Expr) else None
    exec(compile(ast.Module(statements, []), "cell", "exec"), namespace)  # noqa: S102  our own notebook
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # noqa: S307


def drawing(plot: Any) -> ET.Element:
    """The SVG in the image that a notebook shows."""
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', plot._repr_html_())
    assert found is not None
    return ET.fromstring(b64decode(found[1]))  # noqa: S314  our own


def titles(plot: Any) -> list[str]:
    return [text.text or "" for text in drawing(plot).iter(f"{SVG}text") if text.get("class") == "title"]


def test_the_notebook_runs_from_an_empty_folder_and_shows_what_it_says(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace: dict[str, Any] = {}
    values = [last_value(source, namespace) for source in sources("code")]
    shown = {type(value).__name__: value for value in values if value is not None}
    assert set(shown) == {"Run", "Comparison", "Plot", "DataFrame", "Series"}
    assert all(shown[name]._repr_html_() for name in ("Run", "Comparison", "Plot", "DataFrame"))
    assert Path("runs/first_notebook/report.html").is_file()
    wrong, source = namespace["wrong"], namespace["source"]
    assert (wrong.answer_correct, wrong.fallback_to_llm) == (False, False)
    out = capsys.readouterr().out
    assert f"asked:    {wrong.message}\n" in out
    assert repr(source.message) in out
    assert source.user == wrong.user
    assert source.turn < wrong.turn


def test_the_notebook_is_stored_without_outputs_and_its_links_lead_somewhere() -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 6
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    for page in ("README.md", "docs/index.md"):
        links = re.findall(r"\]\(([^)]*first_notebook\.ipynb)\)", (ROOT / page).read_text("utf-8"))
        assert [(ROOT / page).parent / link for link in links] == [NOTEBOOK], page


def test_a_plot_of_a_run_has_a_chart_for_each_metric_and_a_band_for_each_of_two_arms(tiny_run: skg_bench.Run) -> None:
    plot = skg_bench.plot(tiny_run, "hit_rate", "skills", "err_per_request")
    assert titles(plot) == ["Answered from memory", "Size of the skillbook", "Wrong answers per request"]
    bands = [group for group in drawing(plot).iter(f"{SVG}g") if "banded" in (group.get("class") or "").split()]
    assert {group.get("data-name") for group in bands} == {"skg", "never"}
    means = _means(tiny_run, "hit_rate")
    last = max(means)
    assert f"skg from {100 * means[1]:.1f}" in repr(plot).replace("\u202f", " ")
    assert f"to {100 * means[last]:.1f}" in repr(plot).splitlines()[0].replace("\u202f", " ")
    root = drawing(plot)
    assert float(root.get("height", 0)) > 2 * 236  # the third chart stands below the first
    assert float(root.get("width", 0)) < 1000
    alone = drawing(skg_bench.plot(str(tiny_run.path), "hit_rate", arms=["never"]))
    arms = [group for group in alone.iter(f"{SVG}g") if "arm" in (group.get("class") or "").split()]
    assert [group.get("data-name") for group in arms] == ["never"]


def _means(run: skg_bench.Run, metric: str) -> dict[int, float]:
    """Week -> mean of the arm `skg`, by the run's own file."""
    rows = [line.split(",") for line in (run.path / "curves.csv").read_text("utf-8").splitlines()]
    at = {name: rows[0].index(name) for name in ("arm", "metric", "period", "mean")}
    return {
        int(row[at["period"]]): float(row[at["mean"]])
        for row in rows[1:]
        if (row[at["arm"]], row[at["metric"]]) == ("skg", metric)
    }


def test_a_plot_of_a_comparison_has_its_differences(tiny_run: skg_bench.Run) -> None:
    compared = skg_bench.compare(tiny_run)
    plot = skg_bench.plot(compared, "utility", "hit_rate")
    assert titles(plot) == [f"Difference from {compared.reference}", "utility", "hit rate"]
    (row,) = [row for row in compared.rows if row.metric.name == "utility"]
    assert f"skg: {row.difference.estimate.mean:+.3f}, {row.difference.verdict}" in repr(plot)
    assert len(repr(plot).splitlines()) == 2


def test_a_plot_is_saved_as_svg_and_nothing_else(tiny_run: skg_bench.Run, elsewhere: Path) -> None:
    plot = skg_bench.plot(tiny_run, "hit_rate")
    assert plot.save("curve.svg").read_text("utf-8") == plot.svg
    with pytest.raises(skg_bench.UsageError, match=r"curve\.png: a plot is SVG; give a name that ends in \.svg"):
        plot.save("curve.png")
    assert [path.name for path in Path().iterdir()] == ["curve.svg"]


@pytest.mark.parametrize(
    ("names", "arms", "says"),
    [
        (["hit_rat"], None, "has no curve 'hit_rat'; did you mean 'hit_rate'"),
        ([], ["sgk"], "has no arm 'sgk'; did you mean 'skg'"),
    ],
)
def test_what_a_run_does_not_have_is_refused_with_what_is_valid(
    names: list[str], arms: list[str] | None, says: str, tiny_run: skg_bench.Run
) -> None:
    with pytest.raises(skg_bench.UsageError, match=re.escape(says)):
        skg_bench.plot(tiny_run, *names, arms=arms)


@pytest.mark.parametrize(
    ("names", "arms", "says"),
    [
        (["hit_rat"], None, "the comparison has no measured metric 'hit_rat'; did you mean 'hit_rate'"),
        (["err_per_hit"], None, "the comparison has no measured metric 'err_per_hit'"),  # `never` has no hits
        ([], ["never"], "the comparison has no arm 'never'; valid: skg"),
    ],
)
def test_what_a_comparison_does_not_have_is_refused_too(
    names: list[str], arms: list[str] | None, says: str, tiny_run: skg_bench.Run
) -> None:
    with pytest.raises(skg_bench.UsageError, match=re.escape(says)):
        skg_bench.plot(skg_bench.compare(tiny_run), *names, arms=arms)


def test_a_folder_that_is_no_run_has_no_plot(tmp_path: Path) -> None:
    with pytest.raises(skg_bench.UsageError, match="is no run directory"):
        skg_bench.plot(tmp_path)
