"""The Python API, as a script and a notebook use it."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import skg_bench
from tests.app.test_cli import ENVIRONMENT, check_first_line
from tests.runs import save

WITHOUT_A_GUARD = """
import skg_bench
one_cohort = ["arms={skg: []}", "reference=skg", "contrasts=[]", "users=2", "weeks=1"]  # which starts one worker
small = [*one_cohort, "simulator.corpus=builtin_120"]
run = skg_bench.run([*small, "workers=2", "out=here", "tracker=TRACKER"])
print("made once", run)
"""


def test_dir_shows_what_is_public_and_nothing_else() -> None:
    public = ["Comparison", "Evaluation", "Run", "UsageError", "__version__", "compare", "estimate", "evaluate",
              "explain", "gate", "open_store", "plan_contrast", "plot", "run"]  # fmt: skip
    assert dir(skg_bench) == public
    for name in dir(skg_bench):
        assert getattr(skg_bench, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'import_modul'"):
        skg_bench.import_modul  # noqa: B018


def test_one_text_in_the_place_of_a_list_is_refused_with_what_to_write() -> None:
    """It was read letter by letter: `p: missing EQUAL`."""
    for play in (skg_bench.run, lambda texts: skg_bench.evaluate("my.py:Mine", texts)):
        with pytest.raises(
            skg_bench.UsageError, match=r"'profile=smoke'; valid is a list of texts, such as \['profile=smoke'\]"
        ):
            play("profile=smoke")


@pytest.mark.parametrize(
    ("call", "given", "named", "said"),
    [
        (
            skg_bench.compare,
            [["run"]],
            {},
            "of its folder; of several give each by itself, as in compare(*runs)",
        ),
        (skg_bench.compare, ["run"], {"margins": {"utility": "0.1"}}, "margins={'utility': '0.1'}; a margin is a"),
        (skg_bench.compare, [None], {}, "None is no run: give a Run or the path of its folder"),
        (skg_bench.compare, ["run"], {"flips": -1}, "flips=-1; it is a number of events, 0 or more"),
        (skg_bench.explain, [3], {}, "3 is no run: give a Run or the path of its folder"),
        (
            skg_bench.plot,
            [["run"]],
            {},
            "of its folder; of several give each by itself, as in compare(*runs)",
        ),
        (skg_bench.plot, ["run"], {"arms": "skg"}, "arms='skg'; give a list of names, such as ['skg']"),
        (skg_bench.plan_contrast, [3, "skg"], {}, "3 is no run: give a Run or the path of its folder"),
        (skg_bench.gate, [3, "baseline.json"], {}, "3 is no run: give a Run or the path of its folder"),
        (skg_bench.estimate, [3, {"random": "1/3"}], {}, "3 is no run: give a Run or the path of its folder"),
        (skg_bench.run, [None], {}, "overrides were given as None; valid is a list of texts"),
    ],
)
def test_what_a_notebook_may_mistake_is_refused_with_what_to_write(
    tiny_run: skg_bench.Run, call: Callable[..., object], given: list[object], named: dict[str, object], said: str
) -> None:
    run = [tiny_run.path if each == "run" else each for each in given]
    with pytest.raises(skg_bench.UsageError, match=re.escape(said)):
        call(*run, **named)


@pytest.mark.parametrize(
    "read", [skg_bench.Run.turns, skg_bench.Run.updates, skg_bench.Run.feedback, skg_bench.Run.learning]
)
def test_one_column_or_user_in_the_place_of_a_list_is_refused(
    tiny_run: skg_bench.Run, read: Callable[..., object]
) -> None:
    """Once, a column was read letter by letter, and a number ended in a traceback."""
    with pytest.raises(skg_bench.UsageError, match=re.escape("columns='user'; give a list, such as columns=['user']")):
        read(tiny_run, "skg", "user")
    with pytest.raises(skg_bench.UsageError, match=re.escape("users=0; give a list, such as users=[0]")):
        read(tiny_run, "skg", users=0)


def test_a_run_becomes_a_frame_of_figures_and_a_table_in_a_notebook(tiny_run: skg_bench.Run) -> None:
    frame = tiny_run.to_pandas().set_index(["arm", "metric"])
    assert list(frame.loc["never"].index)[:2] == ["utility", "hit_rate"]
    assert frame.loc[("never", "hit_rate"), "mean"] == 0
    assert frame.loc[("skg", "utility"), "n_turns"] == tiny_run.turns("skg").num_rows
    page = tiny_run._repr_html_()
    assert "<th>utility</th>" in page
    assert f"<td>{frame.loc[('skg', 'utility'), 'mean']:.3f}</td>" in page
    assert repr(tiny_run) == f"Run({str(tiny_run.path)!r})"


def test_an_unfinished_run_says_so_and_breaks_no_notebook(tiny_run: skg_bench.Run, tmp_path: Path) -> None:
    run = skg_bench.Run(shutil.copytree(tiny_run.path, tmp_path / "<b>"))
    (run.path / "summary.json").unlink()
    with pytest.raises(skg_bench.UsageError, match=r"has no summary.json yet; .*`skg-bench report .*` makes it again"):
        run.to_pandas()
    save(run.path, {**run.manifest, "incomplete": True})
    run = skg_bench.Run(run.path)
    with pytest.raises(skg_bench.UsageError, match="is not finished"):
        run.to_pandas()
    assert "is not finished" in run._repr_html_()
    assert "<b>" not in run._repr_html_()
    (run.path / "summary.json").write_text("[]", "utf-8")
    with pytest.raises(skg_bench.UsageError, match=r"`skg-bench report .*` makes it again"):
        run.to_pandas()


def test_a_comparison_becomes_a_frame_and_a_table_in_a_notebook(tiny_run: skg_bench.Run) -> None:
    compared = skg_bench.compare(tiny_run)
    assert isinstance(compared, skg_bench.Comparison)
    frame = compared.to_pandas()
    (row,) = frame[frame.metric == "hit_rate"].to_dict("records")
    assert row["arm"] == "skg"
    assert row["low"] <= row["difference"] <= row["high"]
    assert row["difference"] == pytest.approx(row["value"] - row["reference"])
    assert row["wins"] + row["ties"] + row["losses"] == 4
    assert repr(compared) == str(compared)
    caption, headings, utility, _ = str(compared).splitlines()
    assert caption.startswith("4 users, ")
    assert headings.split() == ["arm", "metric", "difference", "new", "requests", "verdict"]
    (row,) = frame[frame.metric == "utility"].to_dict("records")
    assert utility.split()[:3] == ["skg", "utility", f"{row['difference']:+.3f}"]
    assert utility.endswith(row["verdict"])
    assert max(map(len, str(compared).splitlines())) <= 80
    (row,) = frame[frame.metric == "hit_rate"].to_dict("records")
    page = compared._repr_html_()
    assert "<th>verdict</th>" in page
    assert f"<td>{row['verdict']}</td>" in page


def test_a_callback_is_called_before_anything_is_simulated(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    calls: list[tuple[int, int, bool]] = []

    def progress(done: int, total: int) -> None:
        calls.append((done, total, Path("here").exists()))

    skg_bench.run([*tiny, "out=here"], progress)
    (done, total, begun), *others = calls
    assert (done, begun) == (0, False)
    assert total == pytest.approx(calls[-1][1], rel=0.5)
    assert calls[-1][0] == calls[-1][1]
    assert others
    calls.clear()
    skg_bench.run([*tiny, "out=here"], progress)
    assert not calls


def test_progress_goes_to_standard_error_if_it_is_asked_for(
    elsewhere: Path, tiny: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    skg_bench.run([*tiny, "out=silent"])
    assert capsys.readouterr() == ("", "")
    skg_bench.run([*tiny, "out=here"], progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    first, second, *lines = err.splitlines()
    assert first == "first: 4 users, 2 weeks, seed 0, 2 arms: skg, never"
    assert second == "here (new)"
    assert "turns/s" in lines[-1]
    skg_bench.run([*tiny, "out=here"], progress=True)
    assert capsys.readouterr().err.splitlines() == [first, "here (finished)"]


def test_the_first_line_of_a_script_comes_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    check_first_line("import skg_bench; skg_bench.run(['profile=paper'], progress=True)", tmp_path)


@pytest.mark.parametrize(
    ("how", "tracker"),
    [(["script.py"], "opik"), (["-"], "none"), (["-m", "script"], "none")],
)
def test_a_script_without_a_main_guard_uses_workers_and_trackers(how: list[str], tracker: str, tmp_path: Path) -> None:
    script = WITHOUT_A_GUARD.replace("TRACKER", tracker)
    (tmp_path / "script.py").write_text(script, "utf-8")
    for _ in range(2 if tracker == "opik" else 1):  # the second time the run is finished, and delivered
        done = subprocess.run(
            [sys.executable, *how],
            cwd=tmp_path, input=script, env=ENVIRONMENT, text=True, check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        assert done.stdout == "made once Run('here')\n"
        assert "Traceback" not in done.stderr
        assert ("no server is named" in done.stderr) == (tracker == "opik")
