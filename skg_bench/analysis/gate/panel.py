"""Results of one arm on a panel of users: totals by user, the outcome of every turn, digests of all logs."""

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.analysis.counts.columns import coded
from skg_bench.analysis.counts.metrics import Metric, Utility
from skg_bench.analysis.counts.outcomes import outcome_metrics
from skg_bench.analysis.counts.tally import COUNTS, LoggedEvents, events, needs_truth, tallies
from skg_bench.analysis.gate.rules import NEVER_ANCHOR, ORACLE_ANCHOR, gate_metrics
from skg_bench.analysis.statistics.intervals import sums
from skg_bench.analysis.summary.figures import digits
from skg_bench.core.domain import ANSWERS, Domain, domain_of
from skg_bench.core.errors import UsageError
from skg_bench.core.feedback import FEEDBACK_KINDS
from skg_bench.core.grid import F64, I64, U8, Bool
from skg_bench.runfolder.run import Run, flat, needs_right, same_events
from skg_bench.runfolder.schema import REPLAYED_COLUMNS

SIMULATED = "skg_bench.llm.simulated.Simulated"
EVENTS_DIGEST = "events"  # the digest of what users brought; all others are of columns of the turn log
_WORLD = ("seed", "salt", "users", "weeks", "utility", "simulator", "embedder")  # of the configuration, what arms share
_ORACLES = ("skg_bench.router.oracle.", "skg_bench.curator.oracle.")
_TOLD = {"assistant.recalls": "about", "book": "hindsight"}  # parameters of an arm, and values that tell it more
_SAID_BY_OTHERS = (
    "user_msg_id", "arm", "seed", "user", "turn", "time", "message", *(field.name for field in REPLAYED_COLUMNS),
)  # fmt: skip

LATE = 4  # the last quarter of the weeks, rounded up
PANEL_COUNTS = (*COUNTS, "week", *(f"late_{name}" for name in COUNTS), NEVER_ANCHOR, ORACLE_ANCHOR)
"""Totals of a user: those of a tally, calendar weeks, those of a tally in the last quarter of the weeks, and the
utility of all answers of the anchors."""
ANCHORS = {
    NEVER_ANCHOR: "[assistant=pipeline,policy=never,curator=none]",
    ORACLE_ANCHOR: "[assistant=pipeline,router=oracle,policy=always,curator=oracle,serving=stored]",
}


@dataclass(frozen=True)
class Panel:
    """One arm of a run. Rows are in the order (user, turn)."""

    arm: str
    users: I64  # [n] ids, ascending
    turns: I64  # [n] number of turns
    counts: Mapping[str, F64]  # name in PANEL_COUNTS -> [n] total, at 9 significant digits
    hit: Bool  # [N] answered from the skillbook
    wrong: Bool  # [N] answered wrongly
    rated: U8  # [N] 1 + level of the rating known with the turn; 0: none, or not before the user's first hit
    digests: Mapping[str, str]  # EVENTS_DIGEST and columns of the turn log -> 16 hex digits
    made: Mapping[str, Any]  # as in a manifest: commit, dirty, versions, packages, overrides, data, code, config,
    # compositions, the domain if it brings metrics, and `imported`: columns of a table of results made elsewhere

    @property
    def utility(self) -> Utility:
        """The price list."""
        return Utility.of(self.made["config"])

    @property
    def imported(self) -> Sequence[str]:
        """Columns of the table of results that were made elsewhere; empty: they were made here."""
        columns: Sequence[str] = self.made.get("imported", ())
        return columns

    @property
    def domain(self) -> Domain:
        """The domain, as far as it brings metrics."""
        return domain_of(self.made) if "domain" in self.made else ANSWERS

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics that a gate knows here, by name."""
        return gate_metrics(self.utility, self.domain)


def panel(run: Run, arm: str) -> Panel:
    """Read an arm of a finished run.

    Raises UsageError for an unfinished run, an unknown arm, a run without anchors, and rows that are missing or torn.
    """
    if run.manifest.get("incomplete"):
        raise UsageError(f"{run.path} is unfinished; give its `skg-bench run` command again, which continues it")
    needs_right(run, "a gate")
    needs_truth(run, "a gate")
    if arm not in run.arms:
        raise UsageError(
            f"{run.path} has no arm {arm!r}, which the baseline gates; it has {', '.join(run.arms)}. Gate a run of the "
            "panel, such as skg-bench run experiment=gate profile=gate out=runs/gate"
        )
    same_events([run], "a gate")
    requests = events(run)
    tally = tallies(run, arm, requests)[0]
    if not tally.judged:
        raise UsageError(
            f"arm {arm!r} of {run.path} gave answers of its own that the world cannot judge; gate an arm whose answers "
            "the world can judge: words of a class with the [answer ...] of its model's"
        )
    imported = run.manifest.get("imported")
    anchors = {} if imported else dict(zip((NEVER_ANCHOR, ORACLE_ANCHOR), _anchors(run, arm), strict=True))
    table = run.turns(arm)
    logged = {name: _digest(table[name]) for name in table.column_names if name not in _SAID_BY_OTHERS}
    config = {key: run.config[key] for key in _WORLD if key in run.config}
    plain = {key: value for key, value in run.manifest["domain"].items() if key != "words"}
    domain = {"domain": plain} if run.domain.metrics else {}
    kept = ("commit", "dirty", "versions", "overrides", "data", "code")
    made = {**{key: run.manifest.get(key) for key in kept}, "packages": _packages(run, arm)}
    made |= {"imported": imported["columns"]} if imported else {}
    users, prices = len(requests.users), Utility.of(run.config)
    counts = {name: sums(requests.cells.user, users, tally.by_cell[name]) for name in COUNTS}
    late = -(-requests.weeks // LATE)
    counts |= {name: sums(requests.cells.user, users, tally.by_cell[name]) for name in _own_counts(run.domain)}
    counts |= {"week": np.full(users, float(requests.weeks))}
    counts |= {f"late_{name}": tally.by_week[name][:, -late:].sum(axis=1) for name in COUNTS}
    counts |= {name: _worth(run, other, requests, prices) for name, other in anchors.items()}
    hit = ~table["fallback_to_llm"].to_numpy()
    return Panel(
        arm=arm,
        users=requests.users,
        turns=np.bincount(requests.row).astype(np.int64),
        counts={name: rounded(total) for name, total in counts.items() if not np.isnan(total).any()},
        hit=hit,
        wrong=~table["answer_correct"].to_numpy(),
        rated=np.where(before_hits(hit, requests.row), _ratings(table["user_satisfaction"]), 0).astype(np.uint8),
        digests={EVENTS_DIGEST: _of_events(requests), **logged},
        made={**made, **domain, "config": config, "compositions": {arm: run.manifest["compositions"][arm]}},
    )


def _anchors(run: Run, arm: str) -> tuple[str, str]:
    """The arm that reuses nothing, and the oracle.

    Raises UsageError for a run without one of them, in which `never` does more than the model alone, or whose arms have
    not the same simulated LLM; and for an arm that is told what is true.
    """
    never, oracle = (
        _composed(run, arm, parts)
        for parts in ({"policy": NEVER_ANCHOR}, {"router": ORACLE_ANCHOR, "curator": ORACLE_ANCHOR})
    )
    if never is None or oracle is None:
        absent = [name for name, other in ((NEVER_ANCHOR, never), (ORACLE_ANCHOR, oracle)) if other is None]
        raise UsageError(
            f"{run.path} has no anchor {' and no anchor '.join(absent)}, which the gate compares its arms with; "
            f"run it with {' '.join(shlex.quote(f'+arms.{name}={ANCHORS[name]}') for name in absent)}"
        )
    table = run.turns(never, ["fallback_to_llm", "offer"])
    if not table["fallback_to_llm"].to_numpy().all() or table["offer"].null_count < len(table):
        raise UsageError(
            f"arm {never!r} of {run.path} reuses answers or asks users, and is no anchor; take curator=none"
        )
    _refuse_truth(run, arm)
    _refuse_other_llm(run, arm, (never, oracle))
    return never, oracle


def _refuse_truth(run: Run, arm: str) -> None:
    """Raises UsageError for an arm that is told what is true, or has the book of a later time: no product can."""
    for lived in _lives(run, arm):
        values = flat(run.manifest["compositions"][lived])
        parts = [f"{key.removesuffix('._target_')}=oracle" for key in values if str(values[key]).startswith(_ORACLES)]
        parts += [f"{key}={value}" for key, value in _TOLD.items() if values.get(key) == value]
        parts += ["sees_truth in a component of another package"] if lived in run.manifest.get("told_truth", ()) else []
        if parts:
            begins = "" if lived == arm else f" begins as arm {lived!r}, which"
            raise UsageError(
                f"arm {arm!r} of {run.path}{begins} has {', '.join(parts)}, with which it knows what no product can; "
                "gate an arm without"
            )


def _lives(run: Run, arm: str) -> list[str]:
    """The arm, and those from which it forks, whose turns are its first ones."""
    arms, compositions = [arm], run.manifest["compositions"]
    while (trunk := str(compositions[arms[-1]].get("fork") or "").rpartition("@")[0]) in compositions:
        if trunk in arms:
            break
        arms.append(trunk)
    return arms


def _refuse_other_llm(run: Run, arm: str, anchors: Sequence[str]) -> None:
    """Raises UsageError where an anchor, or an arm from which one of them forks, meets another simulated LLM."""
    expected = flat({"llm": run.manifest["compositions"][arm].get("llm")})
    for anchor in dict.fromkeys(each for name in (*anchors, arm) for each in _lives(run, name)):
        other = flat({"llm": run.manifest["compositions"][anchor].get("llm")})
        keys = sorted(key for key in {**expected, **other} if expected.get(key) != other.get(key))
        if keys and SIMULATED in (expected.get("llm._target_"), other.get("llm._target_")):
            differences = "; ".join(f"{key}: {expected.get(key)} -> {other.get(key)}" for key in keys)
            raise UsageError(
                f"arm {anchor!r} of {run.path} has another LLM than arm {arm!r} ({differences}), so that a lead proves "
                "nothing; give llm to the whole run, not to one arm"
            )


def _packages(run: Run, arm: str) -> dict[str, Any]:
    """Version, commit and changes of each package, beside ours, of whose components the arm or its world is made."""
    nodes = flat({"arm": run.manifest["compositions"][arm], "world": {key: run.config.get(key) for key in _WORLD}})
    named = {str(value).split(".")[0] for key, value in nodes.items() if key.endswith("_target_")}
    return {name: known for name, known in (run.manifest.get("packages") or {}).items() if name in named}


def _composed(run: Run, arm: str, parts: Mapping[str, str]) -> str | None:
    """The first arm beside `arm` with these options of ours."""
    for other in run.arms:
        composition = run.manifest["compositions"].get(other, {})
        targets = {seam: str((composition.get(seam) or {}).get("_target_", "")) for seam in parts}
        named = all(targets[seam].startswith(f"skg_bench.{seam}.{option}.") for seam, option in parts.items())
        if other != arm and named:
            return other
    return None


def _worth(run: Run, arm: str, requests: LoggedEvents, prices: Utility) -> F64:
    """Utility of all answers of an arm, `[n]`."""
    tally = tallies(run, arm, requests)[0]
    total = np.zeros(len(requests.cells.user))
    for name, weight in prices.count().items():
        total += weight * tally.by_cell[name]
    return sums(requests.cells.user, len(requests.users), total)


def before_hits(hit: Bool, user: I64) -> Bool:
    """Turns before the user's first hit, `[N]`; `user` `[N]` ascends. What the LLM answers and users say is there the
    same for every system.
    """
    hits, start = np.cumsum(hit), np.searchsorted(user, user)
    none: Bool = hits == hits[start] - hit[start]
    return none


def _ratings(column: pa.ChunkedArray) -> U8:
    code, words = coded(column)
    level = np.array([1 + FEEDBACK_KINDS["rating"].index(word) for word in words] or [0], np.uint8)
    return np.where(code < 0, 0, level[code]).astype(np.uint8)


def ratios(panel: Panel, name: str) -> tuple[Metric, F64, F64]:
    """A metric with its numerator and denominator by user, `[n]` each.

    Raises UsageError for a metric that is no ratio of counts, or whose counts were not kept.
    """
    if name not in panel.metrics:
        raise UsageError(f"{name!r} is no metric there, as its domain is another; valid are {', '.join(panel.metrics)}")
    metric = panel.metrics[name]
    if missing := sorted({metric.over, *metric.count} - set(panel.counts)):
        raise UsageError(
            f"the baseline has no counts of {', '.join(missing)} for metric {name!r}; write it with --update, and its "
            "anchor with --move-anchor"
        )
    total: F64 = sum((weight * panel.counts[count] for count, weight in metric.count.items()), start=np.zeros(()))
    return metric, total, panel.counts[metric.over]


def _own_counts(domain: Domain) -> list[str]:
    return [count for metric in outcome_metrics(domain).values() for count in metric.count]


def possible_counts(domain: Domain) -> tuple[str, ...]:
    """PANEL_COUNTS, and those of the domain's metrics."""
    return (*PANEL_COUNTS, *_own_counts(domain))


def needed_counts(names: Iterable[str], source: Panel) -> list[str]:
    """Counts that these metrics and the anchors are made of, in the order of `possible_counts`."""
    known = source.metrics
    wanted = {count for name in names for count in (known[name].over, *known[name].count)}
    wanted |= {"turn"} if source.imported else {"turn", NEVER_ANCHOR, ORACLE_ANCHOR}
    return [name for name in possible_counts(source.domain) if name in wanted]


def changed_logs(base: Panel, new: Panel) -> list[str]:
    """Logs that differ: digests that `base` has and `new` has not. None: the same bits."""
    return [name for name, digest in base.digests.items() if new.digests.get(name) != digest]


def paired(base: Panel, new: Panel, name: str) -> None:
    """Check that both are of the same users and weeks; `name` is what `base` was read from.

    Raises UsageError saying what differs.
    """
    ours, theirs = new.made["config"], base.made["config"]
    keys = [key for key in ("seed", "weeks") if ours.get(key) != theirs.get(key)]
    gaps = [f"{key}={theirs.get(key)} there, {ours.get(key)} in the run" for key in keys]
    if (before := _salt(base)) != (here := _salt(new)):
        gaps.append(f"salt {before} there, {here} in the run; where salt=env, SKG_BENCH_SALT gives it")
    if not np.array_equal(base.users, new.users):
        shared = len(np.intersect1d(base.users, new.users))
        gaps.append(f"{len(base.users)} users there, {len(new.users)} in the run, {shared} of them the same")
    elif new.imported and _requests(base) != _requests(new):
        gaps.append("users or events with other names in the run")
    if gaps:
        raise UsageError(
            f"{name} is of another panel: {'; '.join(gaps)}. Users are compared with themselves: run the same panel, "
            "or write a new baseline, and its anchor, with --update --move-anchor"
        )


def salt_of(source: Panel) -> int | None:
    """The salt of the draws of a panel (0: the public default); None: it is secret."""
    given = source.made["config"].get("salt", 0)
    if given == "draw" or "salt" in (source.made.get("data") or {}):
        return None
    return 0 if given == "env" else int(str(given), 0)


def _requests(source: Panel) -> str | None:
    """Digest of the names of users and events in an imported table, which the log numbers."""
    return (source.made.get("data") or {}).get("requests")


def _salt(source: Panel) -> str:
    secret = (source.made.get("data") or {}).get("salt", "not told")
    return (
        "0, the public default"
        if (salt := salt_of(source)) == 0
        else f"with hash {secret}"
        if salt is None
        else str(salt)
    )


def rounded(values: F64) -> F64:
    """Nine significant digits, as the file keeps them: so that equal runs are equal to their file."""
    return np.array([digits(float(value)) for value in values], np.float64)


def _of_events(requests: LoggedEvents) -> str:
    digest = hashlib.sha256("\n".join(requests.message.tolist()).encode())
    for part in (requests.users, requests.row, requests.time, requests.text.astype(np.int64)):
        digest.update(part.tobytes())
    return digest.hexdigest()[:16]


def _digest(column: pa.ChunkedArray) -> str:
    """Digest of the values, whatever the chunks and the order of a dictionary."""
    digest = hashlib.sha256()
    for part in _parts(column.combine_chunks()):
        digest.update(part)
    return digest.hexdigest()[:16]


def _parts(values: pa.Array) -> Iterable[bytes]:
    if pa.types.is_dictionary(values.type):
        texts = values.cast(pa.string())
        words = sorted(word for word in pc.unique(texts).to_pylist() if word is not None)
        yield "\n".join(words).encode()
        yield pc.index_in(texts, pa.array(words, pa.string())).fill_null(-1).to_numpy(zero_copy_only=False).tobytes()
    elif pa.types.is_fixed_size_list(values.type):
        yield from _parts(values.flatten())
    elif pa.types.is_binary(values.type) or pa.types.is_fixed_size_binary(values.type):
        yield b"".join(value or b"" for value in values.to_pylist())
    else:
        yield pc.is_null(values).to_numpy(zero_copy_only=False).tobytes()
        yield (
            values.fill_null(False if pa.types.is_boolean(values.type) else 0).to_numpy(zero_copy_only=False).tobytes()
        )
