"""`skg-bench data import`: results of an experiment that was made elsewhere, as a run folder that all readers take.

What a table does not tell is not made up. Prices of what it lacks are 0, its run has no weeks, and metrics and parts of
the page that speak of memory, models or simulated users are left out (`imported` in runfolder/telling.py).
"""

import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from skg_bench.analysis.counts.metrics import PRICES, Better, Utility
from skg_bench.app.launch import write_outputs
from skg_bench.app.progress import console
from skg_bench.app.run_identity import provenance, write_json
from skg_bench.core.calendar import EPOCH, WEEK
from skg_bench.core.domain import Domain, OutcomeField
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import bytes_of
from skg_bench.core.grid import F64
from skg_bench.core.text import plural
from skg_bench.runfolder import manifest, schema, shards
from skg_bench.runfolder.telling import Amount, Condition, CountedMetric, Telling, TurnCount, Word
from skg_bench.simulator.logs.experiment_table import ExperimentTable, read_experiment, reference_of
from skg_bench.simulator.logs.recorded_rows import one_but_for_case

_LARGEST = 1e9  # price
_DEFAULTS = {"wrong": 1.0, "usd": 10.0, "second": 0.02}  # those of conf/config.yaml
_UNUSED = (
    "Skill, skillbook", "Hit, fallback", "Frozen arm", "Truth", "Ceiling k", "Learning effect", "Loss", "Band",
    "Similarity, preference, reranker", "Propensity",
)  # fmt: skip
_VALUE, _SCORE = "answer_value", "given_score"  # columns of the turn log
_COUNTED: Sequence[tuple[str, str, str, str, Better, str, str]] = (
    ("right", "correct", "right answers", "share", "higher", "right", "Share of requests answered rightly."),
    ("right", "err_per_request", "wrong per request", "share", "lower", "wrong", "Share of requests answered wrongly."),
    ("score", "score", "score", "share", "higher", _SCORE, "Mean score of an answer; 100 % is the best."),
    ("cost", "cost_usd", "cost", "usd", "lower", "cost", "Cost of an answer by the table, in US dollars."),
    ("wait", "latency_ms", "wait", "ms", "lower", "latency", "Wait for an answer by the table."),
)
"""Column, then name, label, unit, direction, count and meaning of a metric."""
_LOGS = {"updates": schema.UPDATES, "feedback": schema.FEEDBACK, "learning": schema.LEARNING_LOG}


def import_table(
    file: Path, out: Path, *, reference: str | None = None, question: str = "", prices: Sequence[str] = ()
) -> None:
    """Write a run folder at `out`, which must be new, from the results in a table. It is whole or absent. `prices`:
    wrong, usd or second=SIZE, in the place of the usual ones.

    Raises UsageError for a table that is not whole, an unknown arm or price, and a place that is taken; OSError.
    """
    if out.exists() or out.is_symlink():
        raise UsageError(f"--out {out} is there; name a new folder, or move it away")
    begun, given = monotonic(), _given_prices(prices)
    table = read_experiment(file)
    first = reference_of(table, reference)
    command = ["skg-bench", "data", "import", str(file), "--out", str(out), "--reference", first]
    command += ["--question", question] if question else []
    for price in prices:
        command += ["--price", price]
    utility = _utility(table, given)
    domain = imported_domain(table)
    content = _content(table, domain, utility, file=file, reference=first, question=question, command=command)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=out.parent) as scratch:
        folder = Path(scratch) / "made"
        folder.mkdir(mode=0o700)  # logs hold messages
        digests = _write_logs(folder, content, table, domain)
        seconds, turns = monotonic() - begun, table.position.size
        rate = turns / seconds if seconds > 0 else 0.0
        write_json(folder / "timings.json", {"seconds": seconds, "turns": turns, "turns_per_second": rate})
        files = manifest.file_digests(folder, ["timings.json"])
        manifest.write_manifest(folder, {**content, "incomplete": False, "shards": digests, "files": files})
        _put(folder, out)
    try:
        write_outputs(out)
    except BaseException:
        shutil.rmtree(out)
        raise
    _show(table, utility, out, first)


def _given_prices(texts: Sequence[str]) -> dict[str, float]:
    """Prices by name. Raises UsageError for one that has two sizes."""
    given = dict[str, float]()
    for name, size in map(_price, texts):
        if name in given:
            raise UsageError(f"--price {name}={size:g}: {name} is {given[name]:g} already; give each price once")
        given[name] = size
    return given


def _put(folder: Path, out: Path) -> None:
    """Raises UsageError where another command has made the place since."""
    try:
        folder.replace(out)
    except OSError as error:
        if error.errno not in (ENOTEMPTY, EEXIST, ENOTDIR):
            raise
        raise UsageError(
            f"--out {out} is there since this command began; name a new folder, or move it away"
        ) from error


def _price(text: str) -> tuple[str, float]:
    name, _, size = text.partition("=")
    try:
        value = float(size)
    except ValueError:
        value = float("nan")
    if name not in _DEFAULTS or not 0 <= value <= _LARGEST:
        raise UsageError(
            f"--price {text}: give {', '.join(_DEFAULTS)}=SIZE, 0 or more and at most {_LARGEST:,.0f}, such as usd=10"
        )
    return name, value


def _utility(table: ExperimentTable, given: Mapping[str, float]) -> Utility:
    """Prices, 0 for what the table lacks.

    Raises UsageError for a price of what it lacks.
    """
    columns = {"wrong": "right", "usd": "cost", "second": "wait"}
    for name in given:
        if columns[name] not in table.columns:
            raise UsageError(f"--price {name}: the table has no column {columns[name]!r}, which it would price")
    known = {name: given.get(name, size) for name, size in _DEFAULTS.items() if columns[name] in table.columns}
    return Utility(**{name: known.get(name, 0.0) for name in PRICES})


# ------------------------------------------------------------------------------------------- words of the page


def imported_domain(table: ExperimentTable) -> Domain:
    """Domain of results that say whether answers were right; else of scores, which are counted as in a world without
    answers.
    """
    value = OutcomeField(_VALUE, "float", (), "what the answer was worth, before cost and wait", "", truth=True)
    score = OutcomeField(_SCORE, "float", (), "score of the answer, 0 to 1", "", truth=True)
    fields = (value, score) if "score" in table.columns else (value,)
    return Domain("imported", outcome=fields, book="" if "right" in table.columns else _VALUE)


def imported_telling(table: ExperimentTable) -> dict[str, Any]:
    """Words of the domain: metrics for the columns that the table has, and what its intervals mean."""
    right = "right" in table.columns
    shown = [metric for column, metric in _metrics(right=right) if column in table.columns]
    names = tuple(metric.name for metric in shown)
    amounts = [Amount(_VALUE, "what answers were worth", _VALUE, "")]
    amounts += [Amount(_SCORE, "scores of answers", _SCORE, "")] if "score" in table.columns else []
    new = "95 % interval over other users who bring other kinds of requests too: two-way, by user and kind."
    telling = Telling(
        imported=True,
        worth="" if right else _VALUE,
        counts=(TurnCount("right", "answered rightly", (Condition("answer_correct", ("true",), holds=True),)),)[:right],
        amounts=tuple(amounts),
        metrics=tuple(shown),
        terminal=names,
        table=names,
        tiles=names[1:],
        picture=names[:2],
        glossary=(
            Word("Request, turn", "An event of the table; with the answer of an arm, a turn."),
            Word("Arm", "Rows of the table with one name. All arms have the same users and events."),
            Word("New requests", f"{new} {_kinds_of(table)} Verdicts use this one."),
        ),
        unused=_UNUSED,
    )
    words: dict[str, Any] = json.loads(json.dumps(asdict(telling)))
    return words


def _metrics(*, right: bool) -> Iterator[tuple[str, CountedMetric]]:
    """All metrics in the order in which they are shown, each with the column that it takes."""
    worth = "1 if right, minus the price of a wrong one" if right else "its score"
    says = f"Worth of an answer: {worth}, minus the prices of money and of waiting."
    yield "arm", CountedMetric("utility", "utility", "utility", "higher", "turn", _VALUE, priced=True, says=says)
    for column, name, label, unit, better, count, says in _COUNTED:
        yield column, CountedMetric(name, label, unit, better, "turn", count, priced=False, says=says)


def _kinds_of(table: ExperimentTable) -> str:
    """Sentence on what counts as one kind of request."""
    if table.intent is not None:
        other = "text" if table.text is not None else "event"
        return f"The column `intent` says the kind; without one, requests of the same {other} are of one kind."
    if table.text is not None:
        return "The table has no kinds: requests of the same text are of one kind, and others are not."
    return "The table has no kinds: the same event of different users counts as one kind, others do not."


# ---------------------------------------------------------------------------------------------------- files


def _content(
    table: ExperimentTable,
    domain: Domain,
    utility: Utility,
    *,
    file: Path,
    reference: str,
    question: str,
    command: Sequence[str],
) -> dict[str, Any]:
    """The manifest, without what comes at the end."""
    turns = np.bincount(table.user)
    weeks = -(-int(turns.max()) // WEEK)
    config = {
        "experiment": file.stem, "question": question, "reference": reference, "utility": asdict(utility),
        "arms": {arm: [] for arm in table.arms}, "seed": 0, "users": len(table.users), "weeks": weeks,
    }  # fmt: skip
    content = {
        "schema": schema.SCHEMA_VERSION, "question": question, "seed": 0, "users": len(table.users), "weeks": weeks,
        "arms": list(table.arms), "changed": [], "config": config, "compositions": {arm: {} for arm in table.arms},
        "data": {"table": sha256(bytes_of(file)).hexdigest(), "requests": _requests(table)},
        "code": None, "beside": [], "stream": "exogenous",
        "domain": {**asdict(domain), "words": imported_telling(table)}, **provenance(),
        "imported": {"file": file.name, "columns": list(table.columns), "kinds": _kinds_of(table),
                     "command": shlex.join(command)},
    }  # fmt: skip
    return {**content, "identity": manifest.identity_of(content)}


def _requests(table: ExperimentTable) -> str:
    """Digest of who brings which events, by the names that the table gives them: logs number both."""
    events = sorted(zip(table.user.tolist(), table.event, strict=True))
    return sha256(json.dumps([table.users, events]).encode()).hexdigest()


def _write_logs(
    folder: Path, content: Mapping[str, Any], table: ExperimentTable, domain: Domain
) -> dict[str, list[str]]:
    """The logs of all arms; returns the digests of their turns."""
    digests: dict[str, list[str]] = {arm: [] for arm in table.arms}
    key, every = manifest.run_key(content), np.arange(len(table.users))
    for log in shards.LOGS:
        (folder / log).mkdir(mode=0o700)
    for at, arm in enumerate(table.arms):
        turns = _turns(table, domain, at, content["config"]["utility"]["wrong"])
        for shard in range(shards.count(len(every))):
            inside = table.user // shards.SHARD_USERS == shard
            tables = {"turns": turns.filter(pa.array(inside))}
            tables |= {log: kind.empty_table() for log, kind in _LOGS.items()}
            shards.write_shard(folder, key, arm, shard, tables.__getitem__)
            digests[arm].append(shards.shard_label(shards.path(folder, "turns", arm, shard)).digest)
    return digests


def _turns(table: ExperimentTable, domain: Domain, at: int, wrong: float) -> pa.Table:
    """Turn log of the arm `at`. Columns that no table fills are null, or 0 where a log knows no null; `serving` is
    elsewhere.
    """
    n = len(table.user)
    turn = np.arange(n) - np.searchsorted(table.user, table.user)
    right = None if table.right is None else table.right[at]
    score = None if table.score is None else table.score[at]
    names = [f"event {event}" for event in table.event] if table.text is None else table.text
    known: dict[str, Any] = {
        "user_msg_id": [f"u{user}-t{i}" for user, i in zip(table.user.tolist(), turn.tolist(), strict=True)],
        "message": names, "fallback_to_llm": np.ones(n, np.bool_), "arm": [table.arms[at]] * n, "user": table.user,
        "turn": turn, "event": turn, "time": ((EPOCH + turn) * 1000).astype("datetime64[ms]"),
        "skill": np.full(n, -1), "source_turn": np.full(n, -1), "propensity": np.full(n, np.nan),
        "serving": ["elsewhere"] * n, "cost_usd": np.zeros(n) if table.cost is None else table.cost[at],
        "latency_ms": np.zeros(n) if table.wait is None else 1000.0 * table.wait[at],
        "answer_correct": right, "intent": table.intent, "answerable": np.zeros(n),
        _VALUE: _value(right, score, wrong), _SCORE: score,
        "logged_user": [table.users[user] for user in table.user],
        "logged_id": table.event, "logged_row": table.position[at],
    }  # fmt: skip
    fields = schema.turns(1, domain.outcome)
    return pa.table([_column(known.get(field.name), field, n) for field in fields], schema=fields)


def _value(right: Any, score: F64 | None, wrong: float) -> F64:
    """Worth of each answer `[N]`, before cost and wait: its score where nothing says that it is right."""
    values: Any = score if right is None else np.where(right, 1.0, -wrong)
    return np.asarray(values, np.float64)


def _column(values: Any, field: pa.Field, n: int) -> pa.Array:
    """A column of the log; where there are no values, of nulls or else of nothing."""
    kind = field.type
    if pa.types.is_fixed_size_list(kind):  # Arrow's reader refuses files where the list itself is null
        return pa.FixedSizeListArray.from_arrays(pa.nulls(n * kind.list_size, kind.value_type), kind.list_size)
    if values is None and field.nullable:
        return pa.nulls(n, kind)
    if values is None:
        values = np.zeros(n)
    if pa.types.is_dictionary(kind):
        return pa.array(list(values), pa.string()).dictionary_encode()
    return pa.array(values).cast(kind)


def _show(table: ExperimentTable, utility: Utility, out: Path, reference: str) -> None:
    screen = console()
    events = len(table.user)
    screen.print(
        f"{out}: {len(table.arms)} arms at {plural(events, 'event')} of {plural(len(table.users), 'user')}, "
        f"against {reference}",
        soft_wrap=True, markup=False,
    )  # fmt: skip
    priced = {"usd": "a US dollar", "second": "a second of waiting"}
    words = [f"{getattr(utility, name):g} {what}" for name, what in priced.items() if getattr(utility, name)]
    worth = f"a right answer is worth 1, a wrong one {-utility.wrong:g}" if table.right is not None else "the score"
    screen.print(f"utility: {', less '.join([worth, *words])}", soft_wrap=True, markup=False)
    if alike := one_but_for_case(table.users):
        screen.print(f"{alike}: write them alike if they are one", soft_wrap=True, markup=False)
    screen.print(_kinds_of(table).replace("`", "'"), soft_wrap=True, markup=False)
    screen.print(f"page: {out / 'report.html'}", soft_wrap=True, markup=False)
    screen.print(f"next: skg-bench compare {shlex.quote(str(out))} --metric all", soft_wrap=True, markup=False)
