"""The command line: quick, plain about errors, and the same words as the API."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import skg_bench
from skg_bench.analysis.report.waterfall import LOSS_WORDS
from skg_bench.app.cli import app
from skg_bench.app.packages import groups
from skg_bench.core.errors import UsageError
from tests.runs import tables_alone

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "skg_bench"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def call(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in this process."""
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def refused(*words: str) -> str:
    code, _, err = call(*words)
    assert code == 2
    assert "Traceback" not in err
    return err


def folders(parent: str) -> list[str]:
    return sorted(str(path) for path in Path(parent).iterdir() if path.is_dir())


def process(words: list[str], folder: Path) -> "subprocess.Popen[str]":
    """A command that ctrl-c ends, also where what runs the tests lies in the background and ignores it."""
    return subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.fixture
def pageless() -> Iterator[None]:
    """Runs of this process end without the page, which the test does not look at."""
    with tables_alone():
        yield


HEAVY = {"hydra", "jinja2", "numpy", "omegaconf", "pandas", "pyarrow", "rich", "scipy", "sklearn", "torch", "yaml"}
FIRST_LINE = """
import io, os, sys
from skg_bench.app import hydra_trees
compose, calls = hydra_trees.hydra_compose, []
hydra_trees.hydra_compose = lambda *words, **named: (calls.append(words), compose(*words, **named))[1]

class FirstLine(io.StringIO):
    def write(self, text):
        names = {".".join(name.split(".")[:2]) for name in sys.modules}
        print(text.strip(), len(calls), *names, file=sys.__stdout__, flush=True, sep="\\n")
        os._exit(0)

sys.stdout = sys.stderr = FirstLine()
"""


def output(script: str, folder: Path) -> list[str]:
    """Lines that a script prints, in a process of its own."""
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def check_first_line(script: str, folder: Path) -> None:
    """Composing the root needs one call of Hydra, 0.1 s, and neither numpy nor the engine, 0.3 s."""
    line, calls, *modules = output(FIRST_LINE + script, folder)
    assert line.startswith("first: 1,000 users, 26 weeks, seed 0, 3 arms: skg, never, oracle")
    assert calls == "1"
    assert HEAVY.intersection(modules) == {"hydra", "omegaconf", "rich", "yaml"}
    rooms = {module for module in modules if module.startswith("skg_bench.")}
    assert rooms <= {"skg_bench.analysis", "skg_bench.app", "skg_bench.core"}


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    probe = (
        "import sys, skg_bench.app.cli as c\n"
        "try: c.app(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "print('modules:', *{'.'.join(name.split('.')[:2]) for name in sys.modules})"
    )
    modules = output(probe, tmp_path)[-1].split()
    assert HEAVY.isdisjoint(modules)
    assert {module for module in modules if module.startswith("skg_bench.")} == {"skg_bench.app", "skg_bench.core"}


def test_the_first_line_of_a_run_comes_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    check_first_line("from skg_bench.app.cli import app; app(['run', 'profile=paper'])", tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "sed=1"], "did you mean 'seed'?"),
        (["run", "+sed=1"], "did you mean 'seed'?"),
        (["run", "users=0"], "users=0 must be a whole number"),
        (["run", "experiment=nothing"], "valid: "),
        (["run", "experiment=frst"], "did you mean 'first'? (all: skg-bench list experiment)"),
        (["run", "policy.threshold=nan", "profile=smoke"], "arm 'skg': policy.threshold=nan must lie in [0, 1]"),
        (["run", "reranker.l2=-1.0", "profile=smoke"], "reranker.l2=-1.0 must be above 0"),
        (
            ["run", "simulator.messages_per_day=-1.0", "profile=smoke"],
            "simulator.messages_per_day=-1.0 must be above 0",
        ),
        (["run", "simulator.corpus=/nowhere", "profile=smoke"], "/nowhere is no corpus"),
        (["run", "policy.threshold=abc", "profile=smoke"], "must be a number"),
        (["run", "policy._target_=os.system", "profile=smoke"], "is refused"),
        (["run", "seed=1,2"], "add -m"),
        (["compare", "/nowhere"], "/nowhere is no run directory"),
        (["report", "/nowhere"], "/nowhere is no run directory"),
        (["skillbook", "replay", "/nowhere"], "/nowhere is no run directory"),
        (["list", "ruoter"], "did you mean 'router'?"),
    ],
)
def test_what_a_user_got_wrong_is_one_message_and_exit_code_2(words: list[str], message: str, elsewhere: Path) -> None:
    err = refused(*words)
    assert err.startswith("error: ")
    assert message in err
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["rnu"],
        ["run", "--dryrun"],
        ["compare"],
        ["skillbook", "show", "x"],
        ["skillbook", "replay", "x", "--users", "0"],
    ],
)
def test_wrong_usage_exits_2_too(words: list[str]) -> None:
    assert refused(*words)


def test_a_dry_run_shows_arms_cost_and_directory_and_writes_nothing(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    code, out, _ = call("run", *tiny, "--dry-run")
    assert code == 0
    assert "MaxSim" in out
    assert "policy.threshold=0.3" in out
    assert re.search(r"runs/first-[0-9a-f]{8} \(new\), about [\d,]+ turns", out)
    assert not list(elsewhere.iterdir())


def test_a_run_ends_with_the_table_of_arms_and_the_page_and_again_does_nothing(
    elsewhere: Path, tiny: tuple[str, ...]
) -> None:
    code, out, err = call("run", *tiny)
    assert (code, err) == (0, "")
    *_, page, after = out.splitlines()
    assert Path(page.removeprefix("page: ")).is_file()
    assert after == f"next: skg-bench compare {Path(page.removeprefix('page: ')).parent} --metric all"
    assert "verdict" in out
    assert "100%" in out
    code, out, _ = call("run", *tiny, "workers=2")
    assert code == 0
    assert "is finished: nothing is left to simulate" in out
    assert "turns/s" not in out
    assert len(list(Path("runs").iterdir())) == 1


def test_the_first_run_of_all_ends_in_twelve_lines(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = call("run", "users=4", "weeks=1", "workers=1")
    assert code == 0
    end = out[out.index("             utility - never") :].splitlines()
    assert len(end) <= 12
    assert [line.split()[0] for line in end[2:5]] == ["skg", "never", "oracle"]
    assert "skg answered" in " ".join(end)


def test_a_summary_that_was_changed_is_made_again_by_the_same_command_and_by_report(
    elsewhere: Path, tiny: tuple[str, ...]
) -> None:
    assert call("run", *tiny, "users=1", "weeks=1")[0] == 0
    (file,) = Path("runs").glob("*/summary.json")
    written = file.read_bytes()
    file.write_text('{"schema": 3}', "utf-8")
    with pytest.raises(UsageError, match=f"`skg-bench report {file.parent}` makes it again"):
        skg_bench.Run(file.parent).to_pandas()
    assert call("report", str(file.parent))[0] == 0
    assert file.read_bytes() == written
    file.write_text('{"schema": 3}', "utf-8")
    code, out, _ = call("run", *tiny, "users=1", "weeks=1")
    assert code == 0
    assert f"{file} is not as it was written: it is made again" in out
    assert file.read_bytes() == written


def test_a_sweep_runs_each_cell_once_in_a_directory_of_its_own(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    small = [*tiny, "users=1", "weeks=1"]
    code, out, _ = call("run", "-m", *small, "seed=1,2")
    assert code == 0
    assert "2 runs, about" in out
    assert len(folders("runs")) == 2
    code, out, _ = call("run", "-m", *small, "seed=2,1,2,3")
    assert code == 0
    assert "3 runs, about" in out
    assert out.count("nothing is left to simulate") == 2
    runs = folders("runs")
    assert len(runs) == 3
    code, out, _ = call("run", "-m", *small, "seed=1,2", "out=cells")
    assert code == 0
    assert {Path(cell).name for cell in folders("cells")} < {Path(run).name for run in runs}
    code, out, _ = call("compare", *runs)
    assert "3 users, seeds 1, 2, 3, " in out


def test_a_sweep_ends_in_one_table_and_one_figure(elsewhere: Path, tiny: tuple[str, ...], pageless: None) -> None:
    _, out, _ = call("run", "-m", *tiny, "users=2", "weeks=1", "seed=1,2", "refit_every=20,50")
    cost, rest = out.split("4 runs, about ")
    assert "is finished" not in cost  # it is said before anything starts
    for seed, refit in ((1, 20), (1, 50), (2, 20), (2, 50)):
        assert re.search(
            rf"^runs/first-\w{{8}} \(new\): seed={seed} refit_every={refit}, about [\d,]+ turns$", cost, re.M
        )
    runs = re.findall(r"^(runs/first-\w{8}) \(new\)", cost, re.M)
    assert rest.endswith(f"again: skg-bench compare {' '.join(runs)}\nnext: skg-bench report {' '.join(runs)}\n")
    assert rest.count("4 users, seeds 1, 2, ") == 1
    assert "against refit_every=20:never" in rest
    (figure,) = Path("runs").glob("grid-*.svg")
    assert f"figure: {figure}" in rest
    drawn = figure.read_text("utf-8")
    assert all(arm in drawn for arm in ("refit_every=20:skg", "refit_every=50:skg"))
    assert "refit_every=50:never" not in drawn  # the reference did the same there: it is listed once
    assert rest.count("refit_every=50:never") == 1
    assert "on every turn, and not listed: refit_every=50:never" in rest


def test_an_arm_that_asks_for_skills_and_uses_none_is_named_before_it_runs(elsewhere: Path) -> None:
    code, out, _ = call("run", "policy=never", "+arms.quiet=[curator=none]", "--dry-run")
    assert code == 0
    assert "  skg: policy=never uses no skill, yet users are asked" in out
    assert "uses no skill" not in call("run", "+arms.quiet=[policy=never,curator=none]", "--dry-run")[1]


def test_cells_that_meet_other_events_end_without_a_table(
    elsewhere: Path, tiny: tuple[str, ...], pageless: None
) -> None:
    code, out, _ = call("run", "-m", *tiny, "users=1", "weeks=1", "simulator.one_off_share=0.1,0.9")
    assert code == 0
    assert "no table of all runs: " in out
    assert "cannot be paired" in out


def test_a_bad_cell_stops_a_sweep_before_it_starts(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    assert "must be above 0" in refused("run", "-m", *tiny, "reranker.l2=1.0,-1.0")
    assert not list(elsewhere.iterdir())


def test_compare_prints_each_arm_against_the_reference(tiny_run: skg_bench.Run) -> None:
    code, out, _ = call("compare", str(tiny_run.path))
    assert code == 0
    assert "against never" in out
    assert "p (Holm)" in out
    assert "\nutility\n" in out
    assert "\nhit rate\n" not in out
    assert "never has no answer from memory" in out
    assert "turns wrong where never is right (worse), or the reverse (better)" in out
    code, out, _ = call("compare", str(tiny_run.path), "--reference", "skg")
    assert "against skg" in out
    code, out, _ = call("compare", str(tiny_run.path), "--metric", "hit_rate", "--metric", "cost_usd")
    assert [line for line in out.splitlines() if line in ("utility", "hit rate", "cost")] == ["hit rate", "cost"]
    code, out, _ = call("compare", str(tiny_run.path), "--metric", "all")
    assert all(f"\n{label}\n" in out for label in ("utility", "hit rate", "wrong per request", "wait"))


def test_compare_takes_a_margin_another_correction_flips_and_a_figure(tiny_run: skg_bench.Run, tmp_path: Path) -> None:
    file = tmp_path / "figure.svg"
    options = ["--correction", "bh", "--margin", "utility=0.9", "--flips", "2", "--figure", str(file)]
    code, out, _ = call("compare", str(tiny_run.path), *options)
    assert code == 0
    assert "p (BH)" in out
    assert "equal within" in out
    assert out.count("  wrong  skg: skill ") == 2
    for label in re.findall(r"\(([a-z: ]+)\)$", out, re.MULTILINE):  # causes of the two turns, with the page's names
        assert label.capitalize() in {name.capitalize() for name, _ in LOSS_WORDS.values()}
        assert f"\n  {label}: " in out
    assert file.read_text("utf-8").startswith("<svg ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--correction", "none"], "correction='none', valid are holm, bh, by"),
        (["--metric", "hitrate"], "--metric hitrate: there is no such metric; did you mean 'hit_rate'?"),
        (["--margin", "utility"], "--margin utility: give METRIC=SIZE"),
        (["--margin", "fun=0.1"], "margin of 'fun': no such metric; valid are utility, hit_rate"),
        (["--margin", "utility=-1"], "margin=-1; it is a size above 0"),
        (["--margin", "utility=.1", "--margin", "utility=.5"], "utility=0.5: utility has the margin 0.1 already"),
        (["--figure", "/nowhere/at/all.svg"], "/nowhere/at"),
        (["--figure", "grid.png"], "--figure grid.png: a figure is SVG; give a name that ends in .svg"),
    ],
)
def test_compare_refuses_what_it_cannot_do(tiny_run: skg_bench.Run, options: list[str], says: str) -> None:
    assert says in refused("compare", str(tiny_run.path), *options)


def test_report_writes_a_page_for_any_user(tiny_run: skg_bench.Run) -> None:
    code, out, _ = call("report", str(tiny_run.path), "--user", "2")
    page = Path(out.strip().removeprefix("page: "))
    assert code == 0
    assert page.is_file()
    page.unlink()
    assert refused("report", str(tiny_run.path), "--user", "99").startswith("error: ")


def test_list_shows_every_option_with_what_it_is() -> None:
    code, out, _ = call("list", "--all")
    assert code == 0
    for option in ("maxsim *", "epsilon_threshold", "assistant_growth", "smoke"):
        assert option in out
    assert "cannot find" not in out
    code, out, _ = call("list", "router")
    assert "policy" not in out.replace("`", "").split("* default")[0]


def test_list_opens_with_one_screen_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call("list")
    assert code == 0
    assert len(out.splitlines()) <= 60
    named = set(re.findall(r"[\w-]+", out))
    assert named >= {option for options in groups().values() for option in options}
    assert "maxsim *" in out
    assert "--all" in out.splitlines()[-1]
    assert "leave out router" in refused("list", "router", "--all")


def test_ctrl_c_ends_with_130_and_how_to_go_on_and_the_same_command_finishes(elsewhere: Path) -> None:
    words = ["run", "users=6", "weeks=1", "arms={skg: [], never: [policy=never]}", "cohort=1", "out=here"]
    running = process(words, elsewhere)
    deadline = time.monotonic() + 60
    while not list(elsewhere.glob("here/turns/*.parquet")) and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    code, _, err = call(*words)
    assert (code, err) == (0, "")
    assert Path("here/report.html").is_file()


def test_a_disk_that_fills_up_ends_with_2_and_a_reason_and_nothing_is_lost(elsewhere: Path) -> None:
    shell = shutil.which("bash")
    assert shell is not None
    words = ["run", "users=2", "weeks=1", "arms={skg: [], never: [policy=never]}", "out=here"]
    limited = f"ulimit -f 24; exec {shlex.join([*COMMAND, *words])}"  # no file above 24 KiB, as on a full disk
    done = subprocess.run([shell, "-c", limited], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert "the same command goes on from there" in done.stderr
    assert "Traceback" not in done.stderr
    code, _, err = call(*words)
    assert (code, err) == (0, "")


def test_a_place_that_cannot_be_written_to_is_named(tiny: tuple[str, ...], elsewhere: Path) -> None:
    err = refused("run", *tiny, "out=/proc/nowhere/run")
    assert err == "error: cannot make /proc/nowhere: No such file or directory; out=FOLDER writes elsewhere\n"
    Path("file").touch()
    err = refused("run", *tiny, "out=file/run")
    assert err == "error: cannot make file/run: Not a directory; out=FOLDER writes elsewhere\n"


def test_every_group_of_commands_is_there_once() -> None:
    names = [str(group.name) for group in app.registered_groups]
    assert sorted(names) == ["counterexample", "data", "skillbook"]
