"""MLflow, read back through its own client: one parent, a run for each arm, every number of the run, each once."""

import csv
import fcntl
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from skg_bench.app import run_trackers
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.tracker.database import artifacts, prepare_database
from skg_bench.tracker.mlflow import MLflow, _flat, legal
from tests.runs import changed
from tests.tracker.databases import put_new

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own
LOCAL = MLflow(None, None)


class Read:
    """What MLflow holds beside a run."""

    def __init__(self, run: Run) -> None:
        from mlflow import MlflowClient

        self.client = MlflowClient(f"sqlite:///{run.path.parent / 'mlflow.db'}")
        experiment = self.client.get_experiment_by_name("first")
        assert experiment is not None
        runs = self.client.search_runs([experiment.experiment_id], max_results=1000)
        self.count = len(runs)
        self.of = {record.data.tags["skg_bench.arm"]: record for record in runs}
        self.parent = self.of["*"]

    def inputs(self) -> list[Any]:
        assert self.parent.inputs is not None
        return list(self.parent.inputs.dataset_inputs)

    def history(self, arm: str, metric: str) -> list[tuple[int, float]]:
        points = self.client.get_metric_history(self.of[arm].info.run_id, metric)
        return sorted((point.step, point.value) for point in points)


@pytest.fixture(scope="module")
def logged(original: Run, tmp_path_factory: pytest.TempPathFactory, once: Callable[..., Path]) -> Iterator[Run]:
    """A run that was delivered once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        run = Run(shutil.copytree(original.path, tmp_path_factory.mktemp("mlflow") / "runs" / "small"))
        put_new(once, run.path.parent / "mlflow.db")
        line, complete = run_trackers.deliver(LOCAL, run)
        assert complete, line
        assert line.startswith(f"mlflow: 3 runs in sqlite:///{run.path.parent / 'mlflow.db'}; look: ")
        yield run


@pytest.fixture
def again(logged: Run, tmp_path: Path) -> Run:
    """Another identity beside the same database, of which nothing is delivered yet."""
    run = Run(shutil.copytree(logged.path, logged.path.parent / tmp_path.name))
    return changed(run, code=f"another-{tmp_path.name}")


def interrupted(*given: Any) -> None:
    raise KeyboardInterrupt


def own(run: Run) -> Counter[str]:
    """How many runs MLflow has of each arm of this run."""
    client = Read(run).client
    records = client.search_runs(["1"], f"tags.`skg_bench.identity` = '{run.manifest['identity']}'")
    return Counter(record.data.tags["skg_bench.arm"] for record in records)


def test_arms_are_nested_under_one_parent_that_says_what_was_asked(logged: Run) -> None:
    read = Read(logged)
    assert read.count == 3
    assert {record.info.status for record in read.of.values()} == {"FINISHED"}
    for arm in logged.arms:
        assert read.of[arm].data.tags["mlflow.parentRunId"] == read.parent.info.run_id
    question, _, *lines = read.parent.data.tags["mlflow.note.content"].splitlines()
    assert question == logged.manifest["question"]
    gap = json.loads((logged.path / "summary.json").read_text("utf-8"))["differences"]["skg"]["utility"]
    size = f"{gap['mean']:+.3f} utility ({gap['low_new']:+.3f} to {gap['high_new']:+.3f})"
    assert lines == [f"* `skg`: {gap['verdict']}: {size} against never"]
    assert read.of["skg"].data.tags["skg_bench.verdict"] == lines[0].removeprefix("* `skg`: ")
    assert "skg_bench.verdict" not in read.of["never"].data.tags
    assert read.parent.data.metrics["difference/skg"] == gap["mean"]
    assert read.parent.data.metrics["difference_low/skg"] == gap["low_new"]
    title = f"skg {gap['verdict']} {size.replace(' utility', '')}"
    titles = {arm: record.info.run_name for arm, record in read.of.items()}
    assert titles == {"*": f"{logged.path.name}: {title}", "skg": title, "never": "never"}


def test_curves_are_whole_and_an_arm_has_at_most_forty_metrics(logged: Run) -> None:
    read, curves = Read(logged), dict[tuple[str, str], list[tuple[int, float]]]()
    with (logged.path / "curves.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            point = [(int(row["period"]), float(row["mean"]))] if row["mean"] else []
            curves.setdefault((row["arm"], f"curves/{row['metric']}"), []).extend(point)
    for arm in logged.arms:
        names = set(read.of[arm].data.metrics)
        assert {"utility", "hit_rate", "curves/utility", "curves/hit_rate"} <= names
        assert len(names) <= 40
    shown = [(arm, name) for arm, name in curves if arm == "*" or name in read.of[arm].data.metrics]
    assert ("*", "curves/ceiling_1") in shown
    for arm, metric in shown:
        assert read.history(arm, metric) == curves[arm, metric], (arm, metric)


def test_the_comparison_is_a_table_once_however_often_it_is_delivered(again: Run) -> None:
    from mlflow import MlflowClient

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MlflowClient, "set_terminated", interrupted)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                LOCAL.deliver(again, lambda n, total: None)
    assert run_trackers.deliver(LOCAL, again)[1]
    parent = Read(again).client.search_runs(
        ["1"], f"tags.`skg_bench.identity` = '{again.manifest['identity']}' and tags.`skg_bench.arm` = '*'"
    )[0]
    assert json.loads(parent.data.tags["mlflow.loggedArtifacts"]) == [{"path": "comparison.json", "type": "table"}]
    text = (Path(parent.info.artifact_uri.removeprefix("file://")) / "comparison.json").read_text("utf-8")
    table = [dict(zip(json.loads(text)["columns"], row, strict=True)) for row in json.loads(text)["data"]]
    differences = json.loads((again.path / "summary.json").read_text("utf-8"))["differences"]["skg"]
    known = {name: gap for name, gap in differences.items() if gap["verdict"] != "not measured"}
    assert [(row["arm"], row["metric"], row["verdict"]) for row in table] == [
        ("skg", name, gap["verdict"]) for name, gap in known.items()
    ]
    assert table[0]["difference"] == known["utility"]["mean"]


def test_figures_of_the_whole_run_are_metrics_with_intervals_for_differences(logged: Run) -> None:
    read, summary = Read(logged), json.loads((logged.path / "summary.json").read_text("utf-8"))
    for arm in logged.arms:
        metrics = read.of[arm].data.metrics
        for name, figure in summary["arms"][arm].items():
            assert metrics.get(name) == figure["mean"]
    gap = summary["differences"]["skg"]["utility"]
    metrics = read.of["skg"].data.metrics
    assert [metrics[f"difference{part}/utility"] for part in ("_low", "", "_high")] == [
        gap["low_new"], gap["mean"], gap["high_new"],
    ]  # fmt: skip


def test_configuration_is_params_without_what_does_not_change_a_result(logged: Run) -> None:
    read = Read(logged)
    params = read.parent.data.params
    assert params["users"] == "5"
    assert params["simulator._target_"] == "skg_bench.simulator.answers.world.AssistantUsers"
    assert params["arms.never"] == '["policy=never", "curator=none"]'
    assert not [key for key in params if key.split(".")[0] in ("out", "workers", "cohort", "tracker")]
    assert read.of["skg"].data.params["policy.threshold"] == "0.3"
    assert read.of["never"].data.params["policy._target_"] == "skg_bench.policy.never.Never"


def test_data_are_inputs_and_page_figure_and_tables_are_files(logged: Run) -> None:
    read = Read(logged)
    inputs = {entry.dataset.name: entry.dataset for entry in read.inputs()}
    assert set(inputs) == set(logged.manifest["data"])
    for name, digest in logged.manifest["data"].items():
        assert digest.startswith(inputs[name].digest)
        assert json.loads(inputs[name].source) == {"digest": digest}
    folder = Path(read.parent.info.artifact_uri.removeprefix("file://"))
    assert folder.is_relative_to(logged.path.parent.resolve() / "mlartifacts")
    for name in ("report.html", "curves.svg", "curves.csv", "summary.json", "manifest.json", "timings.json"):
        assert (folder / name).read_bytes() == (logged.path / name).read_bytes()


def test_all_files_of_a_finished_run_and_of_its_tracker_are_open_to_their_owner_only(logged: Run) -> None:
    entries = [
        logged.path,
        *logged.path.rglob("*"),
        *logged.path.parent.glob("ml*"),
        *logged.path.parent.glob("ml*/**/*"),
    ]
    modes = {entry.relative_to(logged.path.parent): (entry.is_dir(), entry.stat().st_mode & 0o777) for entry in entries}
    assert {str(name): mode for name, mode in modes.items() if mode not in ((True, 0o700), (False, 0o600))} == {}
    names = {name.name for name in modes}
    assert {"manifest.json", "report.html", "curves.svg", "mlflow.db", "mlartifacts", "skg.0000000.parquet"} <= names


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+pysqlite"])
def test_files_never_lie_in_the_current_folder(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "current").mkdir()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    lies = artifacts(f"{scheme}:///{tmp_path / 'data' / 'mlflow.db'}", tmp_path / "run")
    assert lies == (tmp_path / "data" / "mlartifacts").as_uri()
    assert artifacts("postgresql://host/mlflow", tmp_path / "run") == (tmp_path / "mlartifacts").as_uri()
    assert artifacts("http://host", tmp_path / "run") is None
    assert list((tmp_path / "current").iterdir()) == []
    with pytest.raises(UsageError, match="a database in memory, which ends with its process"):
        prepare_database("sqlite://")
    with pytest.raises(UsageError, match=r"address without user, password, query \(\?\.\.\.\)"):
        MLflow("postgresql://host/mlflow?password=secret", None)


def kept_at(place: str, run: Run) -> Run:
    """The run beside a database of somebody else, which keeps files at a place of its choice."""
    from mlflow import MlflowClient

    address = f"sqlite:///{run.path.parent / 'mlflow.db'}"
    MlflowClient(address).create_experiment(run.config["experiment"], place)
    return run


@pytest.mark.parametrize("how", ["elsewhere", "above", "link", "server"])
def test_a_database_that_came_with_a_run_does_not_say_where_files_are_written(
    how: str, original: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: Callable[..., Path]
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (home := tmp_path / "home").mkdir()
    (came := tmp_path / "came").mkdir()
    run = Run(shutil.copytree(original.path, came / "run"))
    put_new(once, came / "mlflow.db")
    beside = (came / "mlartifacts").as_uri()
    if how == "link":
        (came / "mlartifacts").symlink_to(home)
    places = {"elsewhere": home.as_uri(), "above": f"{beside}/%2e%2e/%2e%2e/home", "link": beside}
    line, complete = run_trackers.deliver(LOCAL, kept_at(places.get(how, "s3://bucket/files"), run))
    assert not complete
    assert "keeps files not beside itself" in line
    assert "if it is yours, name it: tracker.uri=sqlite:" in line
    assert [*home.iterdir()] == []


def test_a_run_is_logged_once(logged: Run) -> None:
    before = Read(logged)
    assert run_trackers.deliver(LOCAL, logged)[1]
    assert set(own(logged).values()) == {1}
    assert len(Read(logged).history("skg", "curves/hit_rate")) == len(before.history("skg", "curves/hit_rate")) == 2


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_delivery_that_was_cut_off_goes_on_in_the_same_runs(again: Run, after: int) -> None:
    def progress(n: int, total: int) -> None:
        assert total == 3
        if n == after and after < 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        if after == 2:  # numbers of the parent are there, its files are not
            patch.setattr(MLflow, "_attach", interrupted)
        with pytest.raises(KeyboardInterrupt):
            LOCAL.deliver(again, progress)
    partly = own(again)
    line, complete = run_trackers.deliver(LOCAL, again)
    assert complete, line
    assert set(partly) <= set(own(again)) == {"*", "skg", "never"}
    assert set(own(again).values()) == {1}


def test_before_there_is_a_page_arms_are_logged_and_the_parent_stays_open(again: Run) -> None:
    page = again.path / "report.html"
    kept = page.rename(page.with_suffix(".kept"))
    counts: list[tuple[int, int]] = []
    LOCAL.deliver(again, lambda n, total: counts.append((n, total)))
    assert counts[-1] == (2, 3)
    kept.rename(page)
    line, complete = run_trackers.deliver(LOCAL, again)
    assert complete, line
    assert set(own(again).values()) == {1}


def test_data_that_another_process_inserts_meanwhile_are_logged(again: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    log, calls = MlflowClient.log_inputs, list[str]()

    def late(self: MlflowClient, run_id: str, inputs: Any) -> None:
        calls.append(run_id)
        if len(calls) == 1:
            raise MlflowException("UNIQUE constraint failed: datasets.experiment_id, datasets.name, datasets.digest")
        log(self, run_id, inputs)

    monkeypatch.setattr(MlflowClient, "log_inputs", late)
    line, complete = run_trackers.deliver(LOCAL, again)
    assert complete, line
    assert len(calls) == 2


def test_numbers_of_a_delivery_that_was_cut_off_are_not_there_twice(again: Run) -> None:
    from mlflow import MlflowClient

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MlflowClient, "set_terminated", interrupted)
        with pytest.raises(KeyboardInterrupt):
            LOCAL.deliver(again, lambda n, total: None)
    assert run_trackers.deliver(LOCAL, again)[1]
    client = Read(again).client
    for record in client.search_runs(["1"], f"tags.`skg_bench.identity` = '{again.manifest['identity']}'"):
        for metric in ("curves/hit_rate", "hit_rate", "curves/ceiling_1"):
            points = client.get_metric_history(record.info.run_id, metric)
            assert len({point.step for point in points}) == len(points)
        assert record.inputs is not None
        assert len(record.inputs.dataset_inputs) in (0, len(again.manifest["data"]))


def test_names_that_mlflow_refuses_are_made_legal_and_what_is_no_number_is_left_out(again: Run) -> None:
    with (again.path / "curves.csv").open("w") as file:  # no others, so that these are among the first forty
        file.write("arm,period,metric,n,mean,low,high\n")
        file.write("skg,1,recall@5,6,0.5,-inf,inf\nskg,2,recall@5,6,nan,,\nskg,1,größe (%),6,1.0,1.0,1.0\n")
    line, complete = run_trackers.deliver(LOCAL, again)
    assert complete, line
    client = Read(again).client
    records = client.search_runs(
        ["1"], f"tags.`skg_bench.identity` = '{again.manifest['identity']}' and tags.`skg_bench.arm` = 'skg'"
    )
    metrics = {key: value for key, value in records[0].data.metrics.items() if "recall" in key or "gr" in key}
    assert metrics == {"curves/recall_at_5": 0.5, "curves/größe ___": 1.0}
    assert legal("a.b-c_d: e/f") == "a.b-c_d: e/f"


def test_arms_whose_names_mlflow_takes_for_one_have_a_difference_each(again: Run) -> None:
    summary = json.loads((again.path / "summary.json").read_text("utf-8"))
    arms = ("a+b", "a_b", "a b", "a,b", "a_b-2", "größe")
    gaps = {arm: {"utility": summary["differences"]["skg"]["utility"] | {"mean": n / 8}} for n, arm in enumerate(arms)}
    (again.path / "summary.json").write_text(json.dumps(summary | {"differences": gaps}), "utf-8")
    line, complete = run_trackers.deliver(LOCAL, again)
    assert complete, line
    records = Read(again).client.search_runs(
        ["1"], f"tags.`skg_bench.identity` = '{again.manifest['identity']}' and tags.`skg_bench.arm` = '*'"
    )
    metrics = {
        key.removeprefix("difference/"): 8 * value
        for key, value in records[0].data.metrics.items()
        if key.startswith("difference/")
    }
    assert metrics == {"a_b-3": 0, "a_b": 1, "a b": 2, "a_b-4": 3, "a_b-2": 4, "größe": 5}
    assert _flat({"p": {"a+b": 1, "a_b": [2]}, "q": {}}) == {"p.a_b-2": "1", "p.a_b": "[2]", "q": "{}"}


def test_a_server_that_is_down_is_given_up_within_seconds_and_named_without_its_password(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://someone:sesame@127.0.0.1:9")
    begun = monotonic()
    line, complete = run_trackers.deliver(LOCAL, run)
    assert monotonic() - begun < 30  # MLflow's own patience is four minutes
    assert not complete
    assert line.startswith("mlflow: nothing delivered (")
    assert line.endswith(f"; the rest, once: skg-bench export mlflow {run.path}")
    assert "127.0.0.1" in line
    assert "sesame" not in line


@pytest.mark.parametrize(
    ("page", "uri", "target", "delivered"),
    [
        (None, "sqlite:///x.db", "skg_bench.simulator.logs.recorded.Recorded", True),
        (None, "http://host", "skg_bench.simulator.logs.recorded.Recorded", False),
        (None, "http://host", "skg_bench.simulator.answers.world.AssistantUsers", True),
        (True, "http://host", "skg_bench.simulator.logs.recorded.Recorded", True),
        (False, "sqlite:///x.db", "skg_bench.simulator.answers.world.AssistantUsers", False),
    ],
)
def test_the_page_shows_messages_and_recorded_ones_go_to_no_server_unasked(
    run: Run, page: bool | None, uri: str, target: str, delivered: bool
) -> None:
    sent: list[str] = []

    class Client:
        def log_inputs(self, *given: Any) -> None: ...

        def log_artifact(self, _run: str, path: str) -> None:
            sent.append(Path(path).name)

    run.manifest["config"]["simulator"] = {"_target_": target}
    MLflow(None, page)._attach(Client(), "x", run, uri)  # type: ignore[arg-type]
    assert ("report.html" in sent) == delivered
    assert "summary.json" in sent


def test_an_address_with_a_password_is_refused_as_manifests_hold_it() -> None:
    with pytest.raises(UsageError) as error:
        MLflow("https://me:sesame@host", None)
    assert "MLFLOW_TRACKING_PASSWORD" in str(error.value)
    assert "sesame" not in str(error.value)


def test_two_processes_do_not_log_a_run_twice(again: Run) -> None:
    place = os.open(again.path, os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    line, complete = run_trackers.deliver(LOCAL, again)
    os.close(place)
    assert not complete
    assert "another process is delivering" in line
    assert own(again) == {}
    assert run_trackers.deliver(LOCAL, again)[1]
    assert set(own(again).values()) == {1}
