"""Results of an experiment that was made elsewhere, through all commands that take them."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import skg_bench
from skg_bench.analysis.comparison.compare import Comparison, ComparisonRow
from skg_bench.app import imported_run
from skg_bench.app.domains import check_domain
from skg_bench.app.imported_run import imported_domain, imported_telling
from skg_bench.core.domain import Domain
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.simulator.logs.experiment_table import ExperimentTable, read_experiment
from tests.app.test_cli import call, refused

SHARED = ("correct", "err_per_request", "cost_usd", "latency_ms")


def exported(run: Run, file: Path, *, columns: Sequence[str] = ()) -> Path:
    """The turns of a run as a table of results."""
    names = columns or ("user", "event", "arm", "right", "cost", "wait", "text", "intent")
    with file.open("w", newline="", encoding="utf-8") as lines:
        table = csv.DictWriter(lines, names, extrasaction="ignore")
        table.writeheader()
        for arm in run.arms:
            for row in run.turns(arm).to_pylist():
                right = row["answer_correct"]
                table.writerow({
                    "user": row["user"], "event": row["turn"], "arm": arm, "right": int(right),
                    "score": 0.25 + 0.5 * right, "cost": repr(row["cost_usd"]), "wait": repr(row["latency_ms"] / 1000),
                    "text": row["message"], "intent": row["intent"] or "",
                })  # fmt: skip
    return file


@pytest.fixture
def results(tiny_run: skg_bench.Run, elsewhere: Path) -> Path:
    """A table of the results of a small run."""
    return exported(tiny_run, elsewhere / "results.csv")


def mode(path: Path) -> int:
    """Who may read a file or a folder."""
    return path.stat().st_mode & 0o777


def rows_of(compared: Comparison) -> dict[tuple[str, str], ComparisonRow]:
    return {(row.arm, row.metric.name): row for row in compared.rows}


def test_results_of_a_run_compare_as_the_run_itself(tiny_run: skg_bench.Run, results: Path) -> None:
    code, out, _ = call("data", "import", results.name, "--out", "runs/mine", "--reference", "never")
    assert code == 0
    assert out.splitlines()[-1] == "next: skg-bench compare runs/mine --metric all"
    ours, theirs = rows_of(skg_bench.compare(tiny_run)), rows_of(skg_bench.compare("runs/mine"))
    for name in SHARED:
        a, b = ours["skg", name], theirs["skg", name]
        figures = [
            (row.mean, row.reference_mean, *row.bootstrap, row.difference.estimate.mean, row.difference.p_new,
             *row.difference.estimate.interval(new=True), *row.difference.estimate.interval(new=False))
            for row in (a, b)
        ]  # fmt: skip
        assert figures[0] == pytest.approx(figures[1], abs=1e-9, rel=1e-9, nan_ok=True), name
        assert (a.wins, a.ties, a.losses, a.difference.verdict) == (b.wins, b.ties, b.losses, b.difference.verdict)
    assert {metric for _, metric in theirs} == {"utility", *SHARED}  # nothing on memory, models and offers


def test_an_imported_folder_is_whole_private_and_listed(results: Path) -> None:
    call("data", "import", results.name, "--out", "runs/mine", "--question", "Does it help?")
    code, out, _ = call("run", "--check", "runs/mine")
    assert (code, "all is as it was written" in out) == (0, True)
    code, out, _ = call("runs", "runs", "--only", "help")
    assert (code, out.splitlines()[-1][:13]) == (0, "1 run in runs")
    assert " 4 x - " in out  # no weeks
    assert {mode(Path("runs/mine")), mode(Path("runs/mine/turns"))} == {0o700}
    assert {mode(file) for file in Path("runs/mine/turns").iterdir()} == {0o600}
    run = Run("runs/mine")
    assert run.turns("skg", ["logged_row"]).num_rows == run.turns("never").num_rows
    assert call("report", "runs/mine")[0] == 0
    with pytest.raises(UsageError, match="a curve by week needs what no table of results tells"):
        skg_bench.plot(run)
    assert skg_bench.plot(skg_bench.compare(run), "correct").save("d.svg").is_file()
    assert "weeks" not in run._repr_html_()


@pytest.mark.parametrize("name", ["a, b", '"a" b', 'a "b", c'])
def test_an_arm_with_commas_and_quotes_keeps_its_name_in_the_curves(elsewhere: Path, name: str) -> None:
    with Path("odd.csv").open("w", newline="", encoding="utf-8") as lines:
        rows = ((f"u{n % 8}", n // 8, arm, int(n % 3 > 0)) for n in range(40) for arm in ("a b", name))
        csv.writer(lines).writerows([("user", "event", "arm", "right"), *rows])
    code, _, error = call("data", "import", "odd.csv", "--out", "odd")
    assert (code, error) == (0, "")
    with Path("odd/curves.csv").open(newline="", encoding="utf-8") as lines:
        assert {row["arm"] for row in csv.DictReader(lines)} == {"*", "a b", name}  # *: all arms
    assert call("run", "--check", "odd")[0] == 0


def test_imported_runs_stand_side_by_side_without_weeks(results: Path) -> None:
    for name in ("one", "two"):
        call("data", "import", results.name, "--out", name, "--reference", "never")
    code, out, _ = call("report", "one", "two")
    assert code == 0
    page = Path(out.split("page: ")[1].strip()).read_text("utf-8")
    assert "Week by week" not in page
    assert "4 x –" in page


@pytest.mark.usefixtures("elsewhere")
def test_runs_of_three_users_have_no_verdict_side_by_side() -> None:
    for name in ("one", "two"):
        planted(name, 8, first=37)
    page = Path(call("report", "one", "two")[1].split("page: ")[1].strip()).read_text("utf-8")
    assert "2 runs. Their learners: 2 undecided by 3 users" in page
    assert ">better<" not in page


def test_a_row_of_the_table_is_named_by_a_flip(results: Path) -> None:
    call("data", "import", results.name, "--out", "mine", "--reference", "never")
    _, out, _ = call("compare", "mine", "--flips", "1")
    flips = [line for line in out.splitlines() if line.startswith("      wrong  skg: row ")]
    assert len(flips) == 1
    row = int(flips[0].split(" row ")[1].split(" ")[0])
    with results.open(newline="", encoding="utf-8") as lines:
        given = list(csv.DictReader(lines))[row - 2]
    assert (given["arm"], given["right"]) == ("skg", "0")
    assert "LLM" not in out
    assert "memory" not in out


def test_scores_are_worths_and_say_nothing_of_right_answers(tiny_run: skg_bench.Run, elsewhere: Path) -> None:
    exported(tiny_run, elsewhere / "s.csv", columns=("user", "event", "arm", "score"))
    code, out, _ = call("data", "import", "s.csv", "--out", "mine", "--reference", "never")
    assert (code, "utility: the score\n" in out) == (0, True)
    rows, right = rows_of(skg_bench.compare("mine")), rows_of(skg_bench.compare(tiny_run))["skg", "correct"]
    assert {metric for _, metric in rows} == {"utility", "score"}
    for name in ("utility", "score"):
        assert rows["skg", name].mean == pytest.approx(0.25 + 0.5 * right.mean)
    assert "needs a column 'right'" in refused("compare", "mine", "--flips", "1")
    assert "needs a column 'right'" in refused("gate", "mine", "--baseline", "b.json", "--update")


def test_a_score_beside_right_is_a_metric_of_its_own(tiny_run: skg_bench.Run, elsewhere: Path) -> None:
    exported(tiny_run, elsewhere / "s.csv", columns=("user", "event", "arm", "right", "score"))
    call("data", "import", "s.csv", "--out", "mine", "--reference", "never")
    rows = rows_of(skg_bench.compare("mine"))
    assert rows["skg", "score"].mean == pytest.approx(0.25 + 0.5 * rows["skg", "correct"].mean)
    assert rows["skg", "utility"].mean == pytest.approx(2 * rows["skg", "correct"].mean - 1)  # a wrong answer costs 1


def test_prices_are_given_and_0_for_what_the_table_lacks(tiny_run: skg_bench.Run, results: Path) -> None:
    call(
        "data", "import", results.name, "--out", "mine", "--price", "wrong=0", "--price", "usd=0", "--price", "second=0"
    )
    rows = rows_of(skg_bench.compare("mine", reference="never"))
    assert rows["skg", "utility"].mean == pytest.approx(rows["skg", "correct"].mean)
    exported(tiny_run, Path("bare.csv"), columns=("user", "event", "arm", "right"))
    call("data", "import", "bare.csv", "--out", "bare")
    assert Run("bare").config["utility"] == {"wrong": 1.0, "usd": 0.0, "second": 0.0, "offer": 0.0}
    assert "has no column 'cost'" in refused("data", "import", "bare.csv", "--out", "x", "--price", "usd=1")
    assert "give wrong, usd, second=SIZE" in refused("data", "import", "bare.csv", "--out", "x", "--price", "usd=-1")
    twice = ("--price", "wrong=1", "--price", "wrong=0")
    assert "wrong is 1 already; give each price once" in refused("data", "import", "bare.csv", "--out", "x", *twice)


def planted(
    name: str, share: int, *options: str, text: str = "request", users: str = "", events: str = "", first: int = 0
) -> None:
    """Results of users `first` to 39 under two arms, of which `new` answers so many of ten requests rightly, as a run.
    `users` and `events` begin their names.
    """
    lines = [
        f"{users}{user},{events}{event},{arm},{int((7 * user + 3 * event) % 10 < right)},{text} {event}"
        for user in range(first, 40)
        for event in range(10)
        for arm, right in (("old", 4), ("new", share))
    ]
    Path(f"{name}.csv").write_text("\n".join(("user,event,arm,right,text", *lines)), "utf-8")
    call("data", "import", f"{name}.csv", "--out", name, *options)


@pytest.mark.usefixtures("elsewhere")
def test_the_gate_passes_the_same_results_and_fails_worse_ones() -> None:
    planted("first", 8)
    planted("better", 9)
    planted("worse", 6)
    planted("other", 8, text="another")
    code, out, _ = call("gate", "first", "--baseline", "b.json", "--update")
    assert (code, "arm new, 40 users" in out) == (0, True)
    codes = {name: call("gate", name, "--baseline", "b.json") for name in ("first", "better", "worse")}
    assert {name: code for name, (code, _, _) in codes.items()} == {"first": 0, "better": 0, "worse": 1}
    out = codes["worse"][1]
    assert "right -> wrong; reason: cause not known" in out
    assert [word for word in ("LLM", "`never`", "salt", "skillbook") if word in out] == []
    assert "is of other requests" in refused("gate", "other", "--baseline", "b.json")


@pytest.mark.usefixtures("elsewhere")
def test_the_gate_names_users_and_events_as_the_table_does() -> None:
    """They are numbered in the run: once, user 109 of a table was called user 9."""
    planted("first", 8, first=1, users="1", events="9")
    planted("worse", 6, first=1, users="1", events="9")
    assert call("gate", "first", "--baseline", "b.json", "--update")[0] == 0
    code, out, _ = call("gate", "worse", "--baseline", "b.json", "--markdown", "m.md", "--junit", "j.xml")
    assert code == 1
    right = {(row["user"], row["event"]) for row in changed_rows("first", "worse")}
    for text in (out, Path("m.md").read_text("utf-8"), Path("j.xml").read_text("utf-8")):
        user, places = "", set[tuple[str, str]]()
        for line in text.splitlines():
            user = match[1] if (match := re.search(r"user (\d+): harm", line)) else user
            places |= {(user, event) for event in re.findall(r"event (\d+) ", line)}
        assert places
        assert places <= right


def changed_rows(before: str, after: str) -> list[dict[str, str]]:
    """Rows of two tables of `planted` that became wrong."""
    tables = [Path(f"{name}.csv").read_text("utf-8").splitlines() for name in (before, after)]
    pairs = zip(*(csv.DictReader(table) for table in tables), strict=True)
    return [old for old, new in pairs if (old["right"], new["right"]) == ("1", "0")]


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("users", "events"), [("u", ""), ("", "doc")])
def test_users_and_events_of_other_names_are_others(users: str, events: str) -> None:
    planted("here", 8)
    planted("there", 6, users=users, events=events)
    assert call("gate", "here", "--baseline", "b.json", "--update")[0] == 0
    assert "users or events with other names in the run" in refused("gate", "there", "--baseline", "b.json")
    assert "have other users or events, by name; give all arms" in refused("compare", "here", "there")


@pytest.mark.usefixtures("elsewhere")
def test_a_table_without_a_user_is_not_paired_by_number() -> None:
    planted("all", 8)
    planted("less", 8, first=1)
    assert "have other users or events, by name; give all arms" in refused("compare", "all", "less")


@pytest.mark.usefixtures("elsewhere")
def test_no_baseline_is_written_that_nothing_could_fail() -> None:
    planted("few", 3, first=37)
    words = refused("gate", "few", "--baseline", "few.json", "--update", "--arm", "new")
    assert "few has 3 users with 30 turns" in words
    assert "too few to judge any metric, so that no build could fail; give more users" in words
    assert not Path("few.json").exists()


@pytest.mark.usefixtures("elsewhere")
def test_other_prices_and_other_columns_are_no_difference_of_answers(tiny_run: skg_bench.Run) -> None:
    planted("dear", 8)
    planted("cheap", 8, "--price", "wrong=0")
    assert "other prices, wrong=1 and wrong=0; import one" in refused("compare", "dear", "cheap")
    for name in ("right", "score"):
        exported(tiny_run, Path(f"{name}.csv"), columns=("user", "event", "arm", name))
        call("data", "import", f"{name}.csv", "--out", name)
    assert "other columns, right and score; give both the same" in refused("compare", "right", "score")
    assert "are not both imported from tables; import" in refused("compare", "right", str(tiny_run.path))


@pytest.mark.parametrize(
    "command",
    [
        "skills mine", "skillbook show mine --arm skg --user 1", "skillbook replay mine", "report mine --user 1",
        "skillbook convert mine --arm skg --out index", "counterexample find mine --arm skg",
    ],
)  # fmt: skip
def test_what_no_table_tells_is_refused(results: Path, command: str) -> None:
    call("data", "import", results.name, "--out", "mine")
    assert "holds results that were made elsewhere" in refused(*command.split())


def test_a_refused_table_leaves_nothing_behind(results: Path) -> None:
    assert "no such arm" in refused("data", "import", results.name, "--out", "runs/mine", "--reference", "x")
    with results.open("a", encoding="utf-8") as lines:
        lines.write(results.read_text("utf-8").splitlines()[1] + "\n")
    assert "repeats row 2" in refused("data", "import", results.name, "--out", "runs/mine")
    assert [file.name for file in Path().iterdir()] == [results.name]


def test_a_folder_that_is_there_is_left_alone(results: Path) -> None:
    Path("mine").mkdir()
    (Path("mine") / "note").write_text("x", "utf-8")
    assert "--out mine is there" in refused("data", "import", results.name, "--out", "mine")
    assert [file.name for file in Path("mine").iterdir()] == ["note"]


def test_a_folder_that_is_made_meanwhile_is_left_alone(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by the same command, begun twice."""
    there = Path("there")

    def read(path: Path) -> ExperimentTable:
        there.mkdir()
        (there / "mine").touch()
        return read_experiment(path)

    monkeypatch.setattr(imported_run, "read_experiment", read)
    assert "is there since this command began" in refused("data", "import", str(results), "--out", str(there))
    assert [file.name for file in there.iterdir()] == ["mine"]


def test_users_whose_names_differ_in_case_alone_are_counted(elsewhere: Path) -> None:
    rows = [f"{user},{i},{arm},1" for user in ("Ann", "ann") for i in range(3) for arm in ("old", "new")]
    Path("t.csv").write_text("\n".join(["user,event,arm,right", *rows]) + "\n")
    assert "2 names of users differ from another one" in call("data", "import", "t.csv", "--out", "made")[1]


def test_sizes_beyond_all_sense_are_refused(results: Path) -> None:
    """Their squares are no numbers any more."""
    says = refused("data", "import", str(results), "--out", "made", "--price", "wrong=1e300")
    assert "0 or more and at most 1,000,000,000" in says


def test_a_page_that_fails_takes_its_folder_with_it(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_out: Path) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("skg_bench.app.imported_run.write_outputs", fails)
    assert "no space left" in refused("data", "import", results.name, "--out", "mine")
    assert [file.name for file in Path().iterdir()] == [results.name]


@pytest.mark.parametrize("columns", ["right", "right,score,cost,wait,text,intent", "score,cost"])
def test_imported_telling_an_imported_domain_are_sound(tiny_run: skg_bench.Run, tmp_path: Path, columns: str) -> None:
    file = exported(tiny_run, tmp_path / "t.csv", columns=["user", "event", "arm", *columns.split(",")])
    table = read_experiment(file)

    class Worded(Domain):
        """The domain with its words, which no file holds."""

        def plain(self) -> dict[str, object]:
            return {**super().plain(), "words": imported_telling(table)}

    domain = imported_domain(table)
    check_domain(Worded(**{name: getattr(domain, name) for name in ("name", "outcome", "book")}))
