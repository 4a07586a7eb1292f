"""A run directory, read back: the manifest and the four logs."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.core.domain import Domain, domain_of
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import FAULTS, json_file, table_of
from skg_bench.core.shapes import shaped
from skg_bench.core.text import html_table, plural
from skg_bench.runfolder import schema, shards
from skg_bench.runfolder.links import check_links
from skg_bench.runfolder.manifest import MANIFEST, accepted, manifest_of, run_key, users_left
from skg_bench.runfolder.shards import LogName
from skg_bench.runfolder.telling import Telling, telling_of

REMOVAL = ".forget.move"  # in the folder of a run: files without a user whose removal was interrupted
_PRICED = {"right", "score", "cost", "wait"}  # columns of an imported table that say what an answer was worth
_LISTED = 12  # runs of a folder that an error names
_IN_BRIEF = ("utility", "hit_rate", "err_per_hit", "err_per_request", "skills")  # in a notebook


class RunTables(Protocol):
    """Tables of a run, or of several joined."""

    @property
    def path(self) -> Path: ...

    @property
    def arms(self) -> list[str]: ...

    @property
    def manifest(self) -> dict[str, Any]: ...

    def rows(self) -> Mapping[range, int]:
        """Turns of the first arm by the users who are read together, in order."""
        ...

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table: ...

    def updates(
        self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None
    ) -> pa.Table: ...

    def feedback(
        self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None
    ) -> pa.Table: ...


def opened_run(source: object) -> "Run":
    """The run itself, or that of a folder.

    Raises UsageError for what is neither, such as a list of runs.
    """
    if isinstance(source, Run):
        return source
    if isinstance(source, str | Path):
        return Run(source)
    several = "; of several give each by itself, as in compare(*runs)" if isinstance(source, list | tuple) else ""
    raise UsageError(f"{source!r:.60} is no run: give a Run or the path of its folder{several}")


class Run:
    """The finished (or unfinished) run in folder `path`.

    Raises UsageError if the folder is no run, of another schema version, has a link that leads out, or holds what is
    not as it was written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_file():
            raise UsageError(f"{self.path} is no run directory: it is a file; name the folder of a run")
        if not self.path.is_dir():
            raise UsageError(
                f"{self.path} is no run directory: there is no such folder, seen from {Path.cwd()}; `skg-bench runs "
                "FOLDER` lists the runs of a folder"
            )
        if not (self.path / MANIFEST).is_file():
            if inside := sorted(str(file.parent) for file in self.path.glob(f"*/{MANIFEST}")):
                raise UsageError(
                    f"{self.path} is no run directory: it has no {MANIFEST}, and holds runs; name one of them: "
                    f"{', '.join(inside[:_LISTED])}{' ...' * (len(inside) > _LISTED)}"
                )
            raise UsageError(
                f"{self.path} is no run directory: it has no {MANIFEST}; name the folder of a run. If its manifest was "
                "lost, its `skg-bench run` command writes it again"
            )
        check_links(self.path)
        if (self.path / REMOVAL).exists():
            raise UsageError(
                f"{self.path}: the removal of a user was interrupted; complete it: "
                f"skg-bench forget {self.path} --user ID"
            )
        if self.manifest.get("schema") != schema.SCHEMA_VERSION:
            raise UsageError(
                f"{self.path} has schema version {self.manifest.get('schema')!r}, this is version "
                f"{schema.SCHEMA_VERSION}; run it again with this version"
            )

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return manifest_of(self.path / MANIFEST)

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        config: dict[str, Any] = self.manifest["config"]
        return config

    @cached_property
    def domain(self) -> Domain:
        """Feedback, outcome and metrics of the run's world."""
        domain: Domain = domain_of(self.manifest)
        return domain

    @cached_property
    def telling(self) -> Telling:
        """Words of the domain."""
        telling: Telling = telling_of(self.manifest)
        return telling

    @property
    def arms(self) -> list[str]:
        """Names of the arms in the order of the configuration."""
        return list(self.manifest["arms"])

    def to_pandas(self) -> Any:
        """All arms' figures as a DataFrame: arm, metric, mean, low, high, low_new, high_new, n_users, n_turns, ...
        Turns are `turns(arm).to_pandas()`.

        Raises UsageError where there is no summary.json of this version.
        """
        return pa.Table.from_pylist(self._figures()).to_pandas()

    def _figures(self) -> list[dict[str, Any]]:
        file = self.path / "summary.json"
        try:
            if not file.is_file() and not self.finished:
                raise UsageError(
                    f"{self.path} is not finished; give its `skg-bench run` command again, which continues it"
                )
            arms = json_file(self.table(file.name))["arms"]
            figures = shaped(Mapping[str, Mapping[str, Mapping[str, float | None]]], arms, "arms")
            rows = ((arm, m, figure) for arm, known in figures.items() for m, figure in known.items())
            return [{"arm": arm, "metric": m, "mean": figure["mean"], **figure} for arm, m, figure in rows]
        except FAULTS as error:
            raise UsageError(f"{file} cannot be read; `skg-bench report {self.path}` makes it again") from error

    def table(self, name: str) -> Path:
        """A file that was made from the logs: `summary.json` or `curves.csv`.

        Raises UsageError where it is not there, or not as it was written.
        """
        again = f"`skg-bench report {self.path}` makes it again from the logs"
        if not (self.path / name).is_file():
            raise UsageError(f"{self.path} has no {name} yet; finish the run with `skg-bench run`, or {again}")
        if not accepted(self.path, name, manifest_of(self.path / MANIFEST).get("files", {})):
            raise UsageError(f"{self.path / name} is not as it was written; {again}")
        return self.path / name

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """Table for a notebook: a row an arm."""
        weeks = "" if self.telling.imported else f", {plural(self.manifest['weeks'], 'week')}"
        caption = f"{self.path}: {plural(users_left(self.manifest), 'user')}{weeks}"
        try:
            figures = self._figures()
        except UsageError as error:
            return html_table(f"{caption}; {error}", ["arm"], [[arm] for arm in self.arms])
        means = {(figure["arm"], figure["metric"]): figure["mean"] for figure in figures}
        names = [name for name in self.telling.terminal or _IN_BRIEF if any((arm, name) in means for arm in self.arms)]
        rows = [[arm, *(_brief(means.get((arm, name))) for name in names)] for arm in self.arms]
        return html_table(caption, ["arm", *names], rows)

    @property
    def finished(self) -> bool:
        """Were all turns made? Where they were, a shard that is not there was lost."""
        return not self.manifest.get("incomplete", False)

    def shards(self, log: LogName, arm: str) -> list[Path]:
        """The shards of one arm, in order of users; `numbers` says which."""
        return [shards.path(self.path, log, arm, number) for number in self.numbers(arm)]

    def numbers(self, arm: str, users: Sequence[int] | None = None) -> list[int]:
        """Numbers of the shards that hold these users (None: all); of a run that has not ended yet those that are
        there. Of one that has ended, a shard that is gone is missing, also while it is made again.
        """
        n = shards.count(self.manifest["users"])
        wanted = range(n) if users is None else sorted({user // shards.SHARD_USERS for user in users} & set(range(n)))
        present = (number for number in wanted if shards.path(self.path, "turns", arm, number).exists())
        return list(wanted if self.finished or arm in self.manifest.get("shards", {}) else present)

    def rows(self) -> Mapping[range, int]:
        """Turns of the first arm by the users of each shard that is there, in order."""
        arm, users = self.arms[0], self.manifest["users"]
        numbers = self.numbers(arm)
        with ThreadPoolExecutor() as threads:  # hashing lets other threads go on
            files = threads.map(partial(self._verify, "turns", arm), numbers)
            return {
                shards.users_of(k, users): shards.shard_label(file).rows for k, file in zip(numbers, files, strict=True)
            }

    @cached_property
    def key(self) -> str:
        """Identity that the shards of this run carry."""
        return run_key(self.manifest)

    def _schema(self, log: LogName) -> pa.Schema:
        return schema.turns(1, self.domain.outcome, in_words=self.domain.in_words) if log == "turns" else _SCHEMAS[log]

    def _verify(self, log: LogName, arm: str, number: int) -> Path:
        """The file of a shard, which is whole and belongs here."""
        shards.belonging(self.path, self.key, log, arm, number)
        ended = self.manifest.get("shards", {}).get(arm)
        if ended and shards.belonging(self.path, self.key, "turns", arm, number).digest != ended[number]:
            file = shards.path(self.path, "turns", arm, number)
            raise UsageError(f"{file} is not the one that the run ended with; {shards.AGAIN}")
        return shards.path(self.path, log, arm, number)

    def _hold_no_others(self, numbers: Sequence[int], users: Sequence[int]) -> bool:
        """Are all users of these shards among `users`, a range? Then nobody has to be sorted out."""
        first, last = (shards.users_of(k, self.manifest["users"]) for k in (numbers[0], numbers[-1]))
        return isinstance(users, range) and users.step == 1 and users.start <= first.start and last.stop <= users.stop

    def _read(self, log: LogName, arm: str, columns: Sequence[str] | None, users: Sequence[int] | None) -> pa.Table:
        _check_lists(columns, users)
        if arm not in self.arms:
            raise UsageError(f"{self.path} has no arm {arm!r}; it has {', '.join(self.arms)}")
        numbers = self.numbers(arm, users)
        if not numbers and not self.numbers(arm):
            raise UsageError(f"{self.path} has no {log} of arm {arm!r} yet; finish it with `skg-bench run`")
        wanted = None if columns is None else list(dict.fromkeys([*columns, "user", "turn"]))
        whole = users is None or (numbers and self._hold_no_others(numbers, users))
        filters = None if users is None or whole else pc.field("user").isin(list(users))
        wanted_shards = numbers or self.numbers(arm)[:1]  # users who are in no shard have no rows
        with ThreadPoolExecutor() as threads:  # hashing lets other threads go on
            files = list(threads.map(partial(self._verify, log, arm), wanted_shards))
        tables = []
        for file in files:
            try:
                tables.append(table_of(file, wanted, filters))
                _check(tables[-1], self._schema(log), file)
            except (pa.ArrowException, OSError, *FAULTS) as error:
                names = self._schema(log).names
                if unknown := [name for name in wanted or () if name not in names]:
                    hint = nearest(unknown[0], names)
                    raise UsageError(f"{self.path} has no column {unknown[0]!r} of {log}; {hint}") from error
                reason = str(error).partition("\n")[0]  # pyarrow adds the whole schema
                raise UsageError(f"{file} is torn or unreadable ({reason}); {shards.AGAIN}") from error
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks()  # one chunk is taken from 3 times faster

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Turn rows of one arm, by user and turn. Columns of replayed logs are left out if no log was replayed and they
        are not named.
        """
        table = self._read("turns", arm, columns, users)
        if columns or self.manifest.get("log"):
            return table
        return table.select([name for name in table.column_names if name not in _REPLAYED])

    def updates(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Update operations of one arm, by user and turn, in the order in which they were applied."""
        return self._read("updates", arm, columns, users)

    def feedback(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Pieces of feedback of one arm, by user and rated turn."""
        return self._read("feedback", arm, columns, users)

    def learning(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        """Learning jobs of one arm, by user and turn, in order."""
        return self._read("learning", arm, columns, users)


_SCHEMAS: Mapping[str, pa.Schema] = {
    "updates": schema.UPDATES, "feedback": schema.FEEDBACK, "learning": schema.LEARNING_LOG,
}  # fmt: skip
_REPLAYED = frozenset(field.name for field in schema.REPLAYED_COLUMNS)


def _check_lists(columns: object, users: object) -> None:
    """Raises UsageError for one name or one number in the place of a list, which would be read otherwise."""
    for name, value in (("columns", columns), ("users", users)):
        if isinstance(value, str | int):
            raise UsageError(f"{name}={value!r}; give a list, such as {name}=[{value!r}]")


def _check(table: pa.Table, wanted: pa.Schema, file: Path) -> None:
    """Raises UsageError for columns that are not of the kind that the log has, and rows that are nobody's."""
    if any(name not in table.column_names or table[name].null_count for name in ("user", "turn")):
        raise UsageError(f"{file} has rows without user and turn; {shards.AGAIN}")
    for field in table.schema:
        at = wanted.get_field_index(field.name)
        kind, known = field.type, wanted.field(at).type if at >= 0 else field.type
        if kind != known and not (pa.types.is_fixed_size_list(kind) and kind.value_type == known.value_type):
            raise UsageError(f"{file} has a column {field.name} of {kind}, and {known} is needed; {shards.AGAIN}")


def _brief(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.3f}"


def refuse_twice(runs: Sequence[RunTables], what: str) -> None:
    """Raise UsageError for a run that is given twice: its arms would count twice. `what`: what runs are named for."""
    folders = [run.path.resolve() for run in runs]
    if twice := next((run for run in runs if folders.count(run.path.resolve()) > 1), None):
        raise UsageError(f"{twice.path} is given twice; name different runs {what}")


def same_events(runs: Sequence[RunTables], what: str) -> None:
    """Raise UsageError for runs of which `what` cannot pair the events: those that depend on what was done, as arms met
    others, and results that were made elsewhere, of other users, events, columns or prices than the first.
    """
    for run in runs:
        if run.manifest.get("stream") == "reactive":
            raise UsageError(
                f"{run.path} is of users who bring other events after other answers (stream: reactive), and {what} "
                "holds arms against one another event by event; take a simulator whose stream is exogenous or stateful"
            )
    imported = [run.manifest.get("imported") for run in runs]
    for run in runs[1:] if any(imported) else ():
        if gap := _apart(runs[0], run):
            raise UsageError(f"{runs[0].path} and {run.path} {gap}: {what} pairs their answers")


def _apart(first: RunTables, other: RunTables) -> str:
    """Difference between runs of which one was made elsewhere, and what to do; empty: their answers can be paired.

    Users and events have numbers of their own in each, so that the names have to be the same. What an answer is worth
    without cost and wait stands in the logs, at the price that the import was given.
    """
    sides = first.manifest, other.manifest
    tables = [manifest.get("imported") for manifest in sides]
    if None in tables:
        return "are not both imported from tables; import the results of both"
    names = [manifest["data"].get("requests") for manifest in sides]
    if None in names or names[0] != names[1]:
        return "have other users or events, by name; give all arms the same, best in one table"
    columns = [sorted(_PRICED.intersection(table["columns"])) for table in tables if table]
    if columns[0] != columns[1]:
        return (
            f"were imported with other columns, {', '.join(columns[0])} and {', '.join(columns[1])}; give both the same"
        )
    wrong = [manifest["config"]["utility"]["wrong"] for manifest in sides]
    if wrong[0] != wrong[1]:
        return f"were imported with other prices, wrong={wrong[0]:g} and wrong={wrong[1]:g}; import one of them again"
    return ""


def made_here(run: RunTables, what: str) -> None:
    """Raise UsageError for results that were made elsewhere, where `what` needs a skillbook or a simulated user."""
    if telling_of(run.manifest).imported:
        raise UsageError(
            f"{run.path} holds results that were made elsewhere: {what} needs what no table of results tells; compare, "
            "report, runs and gate take it"
        )


def needs_right(run: RunTables, what: str) -> None:
    """Raise UsageError for imported scores, which do not say which answers were right, where `what` needs that."""
    if telling_of(run.manifest).imported and not domain_of(run.manifest).answers:
        raise UsageError(
            f"{run.path} has scores, and does not say which answers were right: {what} needs a column 'right' in the "
            "table; hold its arms against one another with `skg-bench compare`"
        )


def ratings(feedback: pa.Table) -> pa.Table:
    """The ratings among pieces of feedback, with a column `rating`."""
    of_kind = feedback.filter(pc.equal(feedback["kind"].cast(pa.string()), "rating"))
    names = ["rating" if name == "value" else name for name in of_kind.column_names]
    return of_kind.rename_columns(names).drop_columns(["kind"])


def flat(node: Any, path: str = "") -> dict[str, Any]:
    """A nested configuration as `a.b.c` -> value; lists stay whole."""
    if isinstance(node, Mapping) and node:
        return {k: v for key, inner in node.items() for k, v in flat(inner, f"{path}.{key}" if path else key).items()}
    return {path: node}
