"""Can the gate be passed by giving up? Builds that are known to be worse, and known to be better."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from experiments.gate_power.components import Cache, HalfLost, Nagging
from skg_bench.analysis.gate.against import ahead, harm, lead
from skg_bench.analysis.gate.judge import GateState, judge, overall_state
from skg_bench.analysis.gate.panel import ANCHORS, LATE, Panel, panel
from skg_bench.analysis.gate.rules import RULES, blocking
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment
from skg_bench.app.launch import prepare, start
from skg_bench.core.arms import Arm
from skg_bench.core.grid import I64
from skg_bench.runfolder.run import Run
from skg_bench.study.replications import generator

TITLE = "Can the gate be passed by giving up?"
COMMAND = "skg-bench experiment gate_power/guard"
SIZES = {"panels": 1000, "users": 300, "weeks": 26, "seed": 0}  # where no option says otherwise
PANEL = 100  # users of a panel: conf/profile/gate.yaml
SPOILT = 0.02  # of the answers in the last quarter of a user's turns are wrong, and were right: 0.04 utility a turn
OLD, YOUNG = 7, 1  # days that a cache keeps an answer, before and after
PASSES, FAILS = 0.8, 0.05  # of the panels of an improvement: at least, at most
_SKG = "serving=stored,router=maxsim,curator=skg"
POPULATIONS: Mapping[str, str] = {
    "gated": "[]", **ANCHORS, "fallback": "[policy=never]", "half": "[]", "nagging": "[]",
    "better": "[policy.threshold=0.6]", "skg": f"[{_SKG}]", "skg_better": f"[{_SKG},policy.threshold=0.6]",
    "cache_old": "[]", "cache_young": "[]",
}  # fmt: skip
"""Arms of the run from which panels are drawn; `_changed` puts components of this experiment into some of them."""
HEADINGS = ("build", "held against", "lead of the baseline", "panels", "passed", "inconclusive", "FAILED", "as due")


@dataclass(frozen=True)
class Build:
    """A change whose effect is known, and the arm that it was before."""

    name: str
    base: str
    new: str
    better: bool = False  # than its own arm was; else it must never pass
    change: Callable[[Panel, np.random.Generator], Panel] = lambda known, _: known


def spoilt(known: Panel, rng: np.random.Generator) -> Panel:
    """A panel in whose last quarter a share SPOILT of the right answers is wrong.

    The last quarter is that of a user's turns; the one of the calendar, which the rule judges, is about the same.
    """
    ends = np.cumsum(known.turns)
    place = np.arange(len(known.wrong)) - np.repeat(ends - known.turns, known.turns)
    late = place >= np.repeat(known.turns - known.turns // LATE, known.turns)
    more = late & ~known.wrong & (rng.random(len(late)) < SPOILT)
    lost = np.bincount(np.repeat(np.arange(len(known.turns)), known.turns), more, len(known.turns))
    hits = np.bincount(np.repeat(np.arange(len(known.turns)), known.turns), more & known.hit, len(known.turns))
    added = {"wrong": lost, "late_wrong": lost, "wrong_hit": hits, "late_wrong_hit": hits}
    counts = {name: total + added.get(name, 0.0) for name, total in known.counts.items()}
    return replace(known, wrong=known.wrong | more, counts=counts)


BUILDS = (
    Build("the same bits", "gated", "gated", better=True),
    Build("never: no product", "gated", "never"),
    Build("always fall back: skills are captured, none is served", "gated", "fallback"),
    Build("half of the book lost: skills with an odd id are not found", "gated", "half"),
    Build("ask every turn, and ignore the answers", "gated", "nagging"),
    Build(f"last quarter spoilt: {100 * SPOILT:g} % of its answers, 0.04 utility a turn", "gated", "gated",
          change=spoilt),
    Build("better: policy.threshold=0.6", "gated", "better", better=True),
    Build("better: policy.threshold=0.6, SKG's loop (--unproven)", "skg", "skg_better", better=True),
    Build(f"better: a cache that keeps answers {YOUNG} day, not {OLD} (--unproven)", "cache_old", "cache_young",
          better=True),
)  # fmt: skip


def population(out: Path, users: int, weeks: int, seed: int, workers: int) -> Run:
    """A run of all arms of POPULATIONS."""
    arms = ", ".join(f"{name}: {texts}" for name, texts in POPULATIONS.items())
    sizes = (f"users={users}", f"weeks={weeks}", f"seed={seed}", f"workers={workers}", f"out={out}")
    job = prepare(compose(["experiment=gate", *sizes, f"arms={{{arms}}}"]))
    return start(replace(job, plan=replace(job.plan, arms=tuple(_changed(arm) for arm in job.plan.arms))))


def _changed(arm: Arm) -> Arm:
    """The arm with a component of this experiment in it."""
    assistant: Any = arm.assistant
    if arm.name in ("half", "nagging"):
        parts = assistant.components
        router = HalfLost(parts.router, parts.router.top_k) if arm.name == "half" else parts.router
        curator = Nagging(parts.curator, parts.curator.reasons) if arm.name == "nagging" else parts.curator
        return replace(arm, assistant=replace(assistant, components=replace(parts, router=router, curator=curator)))
    days = {"cache_old": OLD, "cache_young": YOUNG}.get(arm.name)
    return arm if days is None else replace(arm, assistant=Cache(days))


def read(run: Run) -> dict[str, Panel]:
    """Panels of all arms; `never` is what the gated arm says of it."""
    known = {name: panel(run, name) for name in POPULATIONS if name not in ANCHORS}
    table = run.turns("never", ["answer_correct"])
    nobody, gated = known["fallback"], known["gated"]
    prices = gated.utility.count()
    counts = {name: np.zeros(len(gated.users)) for name in gated.counts if "hit" in name or "offer" in name}
    wrong = ~table["answer_correct"].to_numpy()
    never = replace(nobody, wrong=wrong, counts={**nobody.counts, **counts})
    worth = sum(weight * never.counts[name] for name, weight in prices.items())
    if not np.allclose(worth, gated.counts["never"], atol=1e-3 * never.counts["turn"].max()):
        raise ValueError("the LLM alone is not worth what `never` is")
    return {**known, "never": never}


def some(known: Panel, rows: I64) -> Panel:
    """Users drawn with replacement, as new ones."""
    ends = np.cumsum(known.turns)
    turns = np.concatenate([np.arange(ends[row] - known.turns[row], ends[row]) for row in rows])
    return replace(
        known,
        users=np.arange(len(rows)),
        turns=known.turns[rows],
        counts={name: total[rows] for name, total in known.counts.items()},
        hit=known.hit[turns],
        wrong=known.wrong[turns],
        rated=known.rated[turns],
    )


def state(base: Panel, new: Panel) -> GateState:
    """The verdict; there is no lead to keep where the baseline has none."""
    rules = [rule for rule in blocking(RULES) if rule.role != "lead" or ahead(base)]
    same = all(np.array_equal(base.counts[name], new.counts[name]) for name in base.counts)
    if same and np.array_equal(base.wrong, new.wrong) and np.array_equal(base.hit, new.hit):
        return "pass"
    return overall_state(judge([harm(base, new, rule) for rule in rules]))


def states(known: Mapping[str, Panel], build: Build, panels: int, seed: int) -> Iterator[GateState]:
    """Verdicts on fresh panels of a build."""
    base, n = known[build.base], len(known[build.base].users)
    for at in range(panels):
        rng = generator(seed, at)
        rows = rng.integers(0, n, PANEL)
        yield state(some(base, rows), build.change(some(known[build.new], rows), rng))


def line(known: Mapping[str, Panel], build: Build, panels: int, seed: int) -> tuple[tuple[str, ...], bool]:
    """The cells under HEADINGS, and whether it came out as due."""
    rows = list(states(known, build, panels, seed))
    passed, failed = (rows.count(word) / panels for word in ("pass", "fail"))
    due = passed >= PASSES and failed <= FAILS if build.better else passed == 0
    shares = (f"{100 * rows.count(word) / panels:.1f} %" for word in ("pass", "inconclusive", "fail"))
    mean, least = lead(known[build.base])
    ahead_by = f"{mean:+.4f} (at least {least:+.4f})"
    return (build.name, build.base, ahead_by, f"{panels:,}", *shares, "yes" if due else "NO"), due


def command(**sizes: int) -> str:
    """The command that makes the page again, with the options that were given."""
    options = [f"--{name} {size}" for name, size in sizes.items() if size != SIZES[name]]
    return " ".join([COMMAND, *options, "--write reports"])


def report(known: Mapping[str, Panel], panels: int, seed: int, again: str) -> Report:
    """The table of all builds; `again`: the command that makes it."""
    cells, due = zip(*(line(known, build, panels, seed) for build in BUILDS), strict=True)
    table = Table(TITLE, HEADINGS, list(cells))
    users, share = len(known["gated"].users), next(rule.option for rule in RULES if rule.role == "lead")
    about = (
        f"Panels of {PANEL} users, drawn from {users:,} simulated ones. As due: a build that gives up passes in none, "
        f"and inconclusive is no pass; an improvement passes in {100 * PASSES:g} % at least and fails in "
        f"{100 * FAILS:g} % at most. A passing build provably keeps {100 * (share or 0):g} % of the lead over `never`."
    )
    return Report([table], page(TITLE, again, about, table.markdown()), holds=all(due))


def analyse(
    panels: Annotated[int, typer.Option(help="Of each build.", min=1)] = SIZES["panels"],
    users: Annotated[int, typer.Option(help="Of the population.", min=PANEL)] = SIZES["users"],
    weeks: Annotated[int, typer.Option(help="Of the population.", min=4)] = SIZES["weeks"],
    seed: int = SIZES["seed"],
    workers: Annotated[int, typer.Option(help="Processes that simulate.", min=1)] = 2,
) -> Report:
    """Makes its own run, in ten minutes; as expected if no build that gives up passes, and improvements do."""
    with tempfile.TemporaryDirectory() as folder:
        known = read(population(Path(folder) / "run", users, weeks, seed, workers))
    return report(known, panels, seed, command(panels=panels, users=users, weeks=weeks, seed=seed))


EXPERIMENT = Experiment(analyse)
