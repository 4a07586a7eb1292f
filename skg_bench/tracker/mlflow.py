"""MLflow (extra `mlflow`): a parent run, a nested run for each arm, weekly curves, configuration, figures, data.

A run is found again by the tag `skg_bench.identity`, so it is logged once; where a delivery was cut off, the next one
goes on in the same runs of MLflow. What it repeats changes nothing there: a number and its time are functions of the
run, and MLflow drops a number that it has.
"""

import csv
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from importlib.util import find_spec
from io import StringIO
from itertools import chain, count
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from skg_bench.core.calendar import EPOCH, WEEK
from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.foreign import json_of, text_of
from skg_bench.core.reach import Reach, Reaches
from skg_bench.runfolder.manifest import BESIDE
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.tracking import Sink, Stage
from skg_bench.tracker.address import check_address
from skg_bench.tracker.database import artifacts, check_noted, check_place, prepare_database
from skg_bench.tracker.verdict_words import arm_title, verdicts_in_words

if TYPE_CHECKING:
    from mlflow import MlflowClient

_IDENTITY, _ARM = "skg_bench.identity", "skg_bench.arm"  # tags
_VERDICT = "skg_bench.verdict"
_NOTE = "mlflow.note.content"
_ALL_ARMS = "*"  # what curves.csv calls curves that belong to the events
_METRICS, _PARAMS = 1000, 100  # MLflow takes no more in a batch
MOST_METRICS = 40  # of an arm: more and nobody finds one; the rest is in the table and in curves.csv
_TABLE = "comparison.json"
_DIGEST = 36  # characters of a hash
_PAGE = "report.html"  # shows messages
_FILES = (_PAGE, "curves.svg", "curves.csv", "summary.json", "manifest.json", "timings.json")
_OWN = "skg_bench.simulator.answers.world."  # its messages are a corpus: nobody said them
_LOCAL = ("sqlite:", "sqlite+", "file:")
_ILLEGAL = re.compile(r"[^\w\-. :/]")
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # with its own 7, a server that is down blocks for 246 s
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
# its own, and those of the places where a server of MLflow may have its users keep files
_VARIABLES = ("MLFLOW_", "DATABRICKS_", "AWS_", "AZURE_", "GOOGLE_APPLICATION_CREDENTIALS")
T = TypeVar("T")
Content = Mapping[str, Any]  # of a file of JSON
Metrics = dict[tuple[str, int], float]  # (name, week; 0: of the whole run) -> value


@dataclass(frozen=True)
class MLflow:
    """A parent run with a nested run for each arm: curves, configuration, figures, in sqlite beside the runs.

    Users, passwords and tokens come from the environment only: MLFLOW_TRACKING_USERNAME, ..._PASSWORD, ..._TOKEN.
    """

    uri: str | None
    page: bool | None

    name: ClassVar[str] = "mlflow"
    parameter: ClassVar[str] = "uri"
    variables: ClassVar[Sequence[str]] = _VARIABLES
    reads: ClassVar[Sequence[Stage]] = ("tables", "page")
    reaches: ClassVar[Reaches] = {"uri": Reach(("network", "reads", "writes"))}

    def __post_init__(self) -> None:
        if find_spec("mlflow") is None:
            raise UsageError(f"tracker=mlflow needs mlflow: {install_hint('mlflow')}")
        check_address(
            "tracker.uri", self.uri, "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_URI"
        )

    @property
    def sinks(self) -> Sequence[Sink]:
        """Itself."""
        return (self,)

    def address(self, run: Path) -> str:
        return self._named() or _beside(run)

    def _named(self) -> str | None:
        """The address that a person gave."""
        return self.uri or os.environ.get("MLFLOW_TRACKING_URI")

    def local(self, run: Path) -> bool:
        return self.address(run).startswith(_LOCAL)

    def open(self, run: Path) -> None:
        """Import MLflow (1.4 s) and open a database of this machine, which is made if there is none (2 s)."""
        _import()
        if self.local(run):
            self._client(self.address(run)).search_experiments(max_results=1)

    def deliver(self, run: Run, progress: Callable[[int, int], None]) -> str:
        """Log what is not logged yet. Runs of MLflow are counted; the parent comes last, when there is a page.

        Raises UsageError while another process does the same: both would find nothing, and log everything.
        """
        with _alone(run.path):
            return self._deliver(run, progress)

    def _deliver(self, run: Run, progress: Callable[[int, int], None]) -> str:
        uri = self.address(run.path)
        client = self._client(uri)
        experiment = _experiment(client, run.config["experiment"], uri, run.path)
        summary = json_of(text_of(run.path / "summary.json"), run.path / "summary.json")
        known, total = _known(client, experiment, run), len(run.arms) + 1
        order = list(reversed(run.arms))  # MLflow shows the last ten of what was made
        order += [_ALL_ARMS] if (run.path / _PAGE).is_file() else []
        title = f"{run.path.name}: {arm_title(summary, str(summary['learner']))}"
        parent = known.get(_ALL_ARMS) or _create(client, experiment, run, _ALL_ARMS, title=title, parent=None)
        if not self._named():
            check_place(uri, parent.info.artifact_uri)
        logged = [arm for arm in order if arm in known and known[arm].info.status == "FINISHED"]
        progress(len(logged), total)
        metrics, verdicts = _metrics(run, summary), verdicts_in_words(summary)
        for number, arm in enumerate((arm for arm in order if arm not in logged), len(logged) + 1):
            mlflow_run = parent if arm == _ALL_ARMS else known.get(arm)
            if mlflow_run is None:
                mlflow_run = _create(client, experiment, run, arm, title=arm_title(summary, arm), parent=parent)
            _log(client, mlflow_run.info.run_id, metrics.get(arm, {}), _params(run, arm))
            _tell(client, mlflow_run.info.run_id, run, verdicts, arm)
            if arm == _ALL_ARMS:
                self._attach(client, mlflow_run.info.run_id, run, uri)
                _log_table(client, mlflow_run.info.run_id, _comparison(summary))
            client.set_terminated(mlflow_run.info.run_id)
            progress(number, total)
        look = f"; look: mlflow ui --backend-store-uri {uri}" if uri.startswith(_LOCAL) else ""
        return f"{total} runs in {uri}{look}"

    def _attach(self, client: "MlflowClient", run_id: str, run: Run, uri: str) -> None:
        """Hashes of the data, and files."""
        from mlflow.entities import Dataset, DatasetInput, InputTag
        from mlflow.exceptions import MlflowException

        inputs = [
            DatasetInput(
                Dataset(name, digest[:_DIGEST], source_type="skg_bench", source=json.dumps({"digest": digest})),
                [InputTag("mlflow.data.context", "evaluation")],
            )
            for name, digest in run.manifest["data"].items()
        ]
        try:
            client.log_inputs(run_id, inputs)
        except MlflowException:  # another process has inserted the same data since MLflow looked whether they are there
            client.log_inputs(run_id, inputs)
        world = run.config.get("simulator") or {}  # results that were made elsewhere have none
        local, bundled = uri.startswith(_LOCAL), str(world.get("_target_")).startswith(_OWN)
        page = self.page if self.page is not None else local or bundled
        for name in _FILES:
            if (run.path / name).is_file() and (page or name != _PAGE):
                client.log_artifact(run_id, str(run.path / name))

    def forget(self, run: Run, user: int, noted: str | None = None) -> str:
        """Remove all runs of this run, whose figures and pages have the user in them; an export makes them again.

        Raises UsageError while another process delivers, and for a noted address that is no database of this machine.
        """
        if noted is not None:
            check_noted(noted)
        with _alone(run.path):
            uri = noted or self.address(run.path)
            client = self._client(uri)
            records = _records(client, run)
            for record in records:
                if noted or not self._named():
                    check_place(uri, record.info.artifact_uri)
                _remove(client, uri, record)
        place = f" tracker.uri={noted}" if noted else ""
        again = f"again without them: skg-bench export {self.name} {run.path}{place}"
        kept = "" if uri.startswith(_LOCAL) else " (figures go for good with `mlflow gc` on its server)"
        return f"{len(records)} runs removed from {uri}{kept}; {again}"

    def _client(self, address: str) -> "MlflowClient":
        client = _import()
        prepare_database(address)
        return client(address)


def _beside(run: Path) -> str:
    return f"sqlite:///{run.parent / 'mlflow.db'}"


def _import() -> "type[MlflowClient]":
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.ERROR)  # it tells of every table that it makes
    return MlflowClient


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """A lock on the run's folder, which ends with the process that has it, however that ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(f"another process is delivering {folder} to mlflow; let it finish") from error
    finally:
        os.close(descriptor)


def _experiment(client: "MlflowClient", name: str, uri: str, run: Path) -> str:
    """Id of the experiment."""
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        try:
            return str(client.create_experiment(name, artifacts(uri, run)))
        except MlflowException:
            experiment = client.get_experiment_by_name(name)  # another process may have made it since
            if experiment is None:
                raise
    return str(experiment.experiment_id)


def _known(client: "MlflowClient", experiment: str, run: Run) -> dict[str, Any]:
    """MLflow's runs of this run, by arm."""
    records = client.search_runs([experiment], f"tags.`{_IDENTITY}` = '{run.manifest['identity']}'", max_results=10_000)
    return {record.data.tags[_ARM]: record for record in records}


def _records(client: "MlflowClient", run: Run) -> list[Any]:
    """MLflow's runs of this run, deleted ones too."""
    from mlflow.entities import ViewType

    if (experiment := client.get_experiment_by_name(run.config["experiment"])) is None:
        return []
    tag = f"tags.`{_IDENTITY}` = '{run.manifest['identity']}'"
    return list(client.search_runs([experiment.experiment_id], tag, ViewType.ALL, max_results=10_000))


def _remove(client: "MlflowClient", uri: str, record: Any) -> None:
    """Remove a run of MLflow with its files; from a database of this machine for good."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    get_artifact_repository(record.info.artifact_uri, tracking_uri=uri).delete_artifacts()  # type: ignore[no-untyped-call]
    if record.info.lifecycle_stage == "active":
        client.delete_run(record.info.run_id)
    if uri.startswith(_LOCAL):
        client._tracking_client.store._hard_delete_run(record.info.run_id)  # noqa: SLF001  as `mlflow gc` does


def _create(client: "MlflowClient", experiment: str, run: Run, arm: str, *, title: str, parent: Any) -> Any:
    """A run of MLflow. The list of runs shows its title: which arm is better, and by how much."""
    identity = str(run.manifest["identity"])
    tags = {_IDENTITY: identity, _ARM: arm, "mlflow.source.name": "skg-bench", "mlflow.source.type": "LOCAL"}
    if parent is None:
        tags[_NOTE] = str(run.manifest["question"])
    else:
        tags["mlflow.parentRunId"] = parent.info.run_id
    if run.manifest.get("commit"):
        tags["mlflow.source.git.commit"] = str(run.manifest["commit"])
    return client.create_run(experiment, tags=tags, run_name=title)


def _log(client: "MlflowClient", run_id: str, metrics: Metrics, params: Mapping[str, str]) -> None:
    from mlflow.entities import Metric, Param

    for some in _cut(list(params.items()), _PARAMS):
        client.log_batch(run_id, params=[Param(key, value) for key, value in some])
    for few in _cut(list(metrics.items()), _METRICS):
        points = [Metric(name, value, 1000 * (EPOCH + week * WEEK), week) for (name, week), value in few]
        client.log_batch(run_id, metrics=points)


def _log_table(client: "MlflowClient", run_id: str, table: Mapping[str, object]) -> None:
    """Write a table that MLflow's page shows; its own `log_table` adds rows to one that is there."""
    client.log_dict(run_id, dict(table), _TABLE)
    client.set_tag(run_id, "mlflow.loggedArtifacts", json.dumps([{"path": _TABLE, "type": "table"}]))


def _cut(items: list[T], size: int) -> Iterator[list[T]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def _params(run: Run, arm: str) -> dict[str, str]:
    if arm != _ALL_ARMS:
        return _flat(run.manifest["compositions"][arm])
    return _flat({key: value for key, value in run.config.items() if key not in BESIDE})


def _flat(node: Content) -> dict[str, str]:
    """Dotted keys; lists and null as json."""
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in _leaves(node)
    }
    keys = legal_names(texts)
    return {keys[key]: text for key, text in texts.items()}


def _leaves(node: Content, above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _tell(client: "MlflowClient", run_id: str, run: Run, verdicts: Mapping[str, str], arm: str) -> None:
    """Verdicts where MLflow shows them first: a tag of an arm, and the description of the run of all arms."""
    if arm in verdicts:
        client.set_tag(run_id, _VERDICT, verdicts[arm])
    if arm == _ALL_ARMS:
        lines = [f"* `{name}`: {words}" for name, words in verdicts.items()]
        client.set_tag(run_id, _NOTE, "\n".join([str(run.manifest["question"]), "", *lines]).strip())


def _metrics(run: Run, summary: Content) -> dict[str, Metrics]:
    """Arm -> metrics, the first MOST_METRICS names: of the whole run, utility against the reference arm, what learning
    is worth, and weekly curves. Those of the run of all arms are differences in utility, to sort runs by, and ceilings.
    """
    metrics: dict[str, Metrics] = {arm: {} for arm in (*run.arms, _ALL_ARMS)}
    names: dict[str, set[str]] = {}

    def add(arm: str, name: str, value: float | str | None, week: int = 0) -> None:
        if value not in (None, "") and isfinite(number := float(value)):
            known = names.setdefault(arm, set())
            if (shown := legal(name)) in known or len(known) < MOST_METRICS or arm == _ALL_ARMS:
                known.add(shown)
                metrics.setdefault(arm, {})[shown, week] = number

    effects = {arm: effect["metrics"] for arm, effect in summary["effects"].items()}
    for group, tables in (("difference", summary["differences"]), ("learning_effect", effects)):
        for arm, figures in tables.items():
            for suffix, part in (("", "mean"), ("_low", "low_new"), ("_high", "high_new")):
                add(arm, f"{group}{suffix}/utility", figures.get("utility", {}).get(part))
    for arm, figures in summary["arms"].items():
        for metric, figure in figures.items():
            add(arm, metric, figure["mean"])
    metrics[_ALL_ARMS] = _to_sort_by(metrics)
    for k, figure in summary["ceiling"].items():
        add(_ALL_ARMS, f"ceiling_{k}", figure["mean"])
    for row in csv.DictReader(StringIO(text_of(run.path / "curves.csv"))):
        add(row["arm"], f"curves/{row['metric']}", row["mean"], int(row["period"]))
    return metrics


def _comparison(summary: Content) -> dict[str, object]:
    """Differences of all arms in all metrics, as a table of MLflow."""
    rows = [
        [arm, metric, *(figure[part] for part in ("mean", "low_new", "high_new", "p_holm", "verdict"))]
        for arm, figures in summary["differences"].items()
        for metric, figure in figures.items()
        if figure["verdict"] != "not measured"
    ]
    return {"columns": ["arm", "metric", "difference", "low", "high", "p", "verdict"], "data": rows}


def _to_sort_by(metrics: Mapping[str, Metrics]) -> Metrics:
    """Differences of all arms in utility: `difference/ARM`, `difference_low/ARM`, `difference_high/ARM`."""
    places = ((f"difference{part}", arm, metrics[arm]) for arm in metrics for part in ("", "_low", "_high"))
    names = legal_names(metrics)
    return {
        (f"{name}/{names[arm]}", 0): known[f"{name}/utility", 0]
        for name, arm, known in places
        if (f"{name}/utility", 0) in known
    }


def legal(name: str) -> str:
    """A name that MLflow takes: `recall@5` becomes `recall_at_5`."""
    return _ILLEGAL.sub("_", name.replace("@", "_at_"))


def legal_names(names: Iterable[str]) -> dict[str, str]:
    """Names that MLflow takes, by name: of those that would be alike there, such as `a+b` and `a_b`, each but one gets
    a number.
    """
    every = list(dict.fromkeys(names))
    free = {name: name for name in every if legal(name) == name}
    taken = set(free)
    for name in every:
        if name not in free:
            numbered = (f"{legal(name)}-{n}" for n in count(2))
            free[name] = next(each for each in chain([legal(name)], numbered) if each not in taken)
            taken.add(free[name])
    return free
