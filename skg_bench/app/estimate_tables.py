"""`skg-bench estimate`: policies as the command line names them, and their values as tables."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import yaml

from skg_bench.analysis.policy_value.estimates import PolicyEstimates, PolicyValue, PolicyWeights
from skg_bench.analysis.report.estimates_figure import estimates_svg
from skg_bench.analysis.report.estimates_page import EstimateParts, EstimateTable, estimates_page
from skg_bench.analysis.summary import replace_text
from skg_bench.app.overrides import parse
from skg_bench.app.progress import console, progress_bars
from skg_bench.app.replay_tables import STEP_WORDS, VALUE_WORDS, ends_in_words, replay_parts, with_ends
from skg_bench.app.table_blocks import show_table
from skg_bench.core.errors import UsageError
from skg_bench.core.temporary import PUBLIC_MODE
from skg_bench.runfolder.cautions import few_users, unfinished_run
from skg_bench.runfolder.manifest import MANIFEST
from skg_bench.runfolder.run import Run
from skg_bench.simulator.logs.outcome_models import ModelKind

FIGURE_FILES = (".svg", ".html")
"""Files that a figure is drawn into: the figure alone, or a page of figure and tables."""
_INTERVALS = "intervals: 95 %, for other {how}, Student's t; verdicts: not corrected for the number of policies"


def show_estimates(
    estimate: Callable[..., PolicyEstimates],
    log: Path,
    policies: Sequence[str],
    *,
    targets: Sequence[str],
    columns: str | None,
    reward: str | None,
    arm: str | None,
    against: str,
    estimators: Sequence[str],
    figure: Path | None,
    by_row: bool,
    estimand: str | None,
    reward_model: str,
    judged: Path | None,
) -> None:
    """Print values of policies, their differences, and whether the log carries a verdict; draw them into a file that
    ends in one of FIGURE_FILES. `estimate`: the
    function of app/estimating.py.

    Raises UsageError for bad input.
    """
    named = [_named(text, "--policy", "NAME=1/34 or NAME=COLUMN") for text in policies]
    goals = [named_target(text) for text in targets]
    names = [name for name, _ in (*named, *goals)]
    if again := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise UsageError(f"{again} is asked about twice; give each policy and target a name of its own")
    if figure is not None and figure.suffix not in FIGURE_FILES:
        raise UsageError(f"--figure {figure}: name a file that ends in {' or '.join(FIGURE_FILES)}")
    mapped = {**_mapping(columns), **({} if reward is None else {"reward": reward})}
    with progress_bars("replay", console(sys.stderr)) as (progress, _):
        estimates = estimate(
            log, dict(named), targets=dict(goals), columns=mapped, against=against, estimators=estimators, arm=arm,
            by_row=by_row, estimand=estimand, reward_model=cast("ModelKind", reward_model), judged=judged,
            progress=progress,
        )  # fmt: skip
    parts = replay_parts(log, estimates) if estimates.replays else _parts(log, estimates, by_row=by_row)
    unfinished = unfinished_run(Run(log)) if (log / MANIFEST).is_file() else ""
    parts = [*filter(None, [unfinished]), *parts, *filter(None, [few_users(estimates.users or 0)])]
    screen = console()
    for part, before in zip(parts, [None, *parts], strict=False):
        if isinstance(part, str):
            screen.print(part, soft_wrap=True)
            continue
        if isinstance(before, EstimateTable):
            screen.print()
        show_table(screen, part.headings, part.rows)
    if figure is not None:
        page = figure.suffix == ".html"
        text = estimates_page(log, estimates, parts) if page else estimates_svg(estimates)
        replace_text(figure, text, mode=PUBLIC_MODE)
        screen.print(f"{'page' if page else 'figure'}: {figure}", soft_wrap=True)


def _named(text: str, option: str, form: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise UsageError(f"{option} {text}: write {option} {form}")
    return name, value


def _mapping(text: str | None) -> dict[str, str]:
    try:
        value = yaml.safe_load(text or "{}")
    except yaml.YAMLError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(part, str) for pair in value.items() for part in pair):
        raise UsageError(f"--columns {text}: write --columns '{{reward: COLUMN, propensity: COLUMN}}'")
    return value


def named_target(text: str) -> tuple[str, Sequence[str]]:
    """Name and overrides of a target.

    Raises UsageError for another form.
    """
    form = "'NAME=[policy.threshold=0.6]'"
    name, value = _named(text, "--target", form)
    (override,) = parse([f"arms.{name}={value}"], "--target ")
    if not isinstance(override.value, list) or not all(isinstance(each, str) for each in override.value):
        raise UsageError(f"--target {text}: write --target {form}")
    return name, override.value


def _parts(log: Path, estimates: PolicyEstimates, *, by_row: bool) -> EstimateParts:
    users = (
        "rows are taken for independent, as no user is named"
        if estimates.users is None
        else (f"{estimates.users:,} users")
    )
    missing = f", {estimates.missing:,} rewards missing" if estimates.missing else ""
    values = ["policy", "estimand", "estimator", "value", *(["if rows were independent"] if by_row else []),
              f"difference to {estimates.reference}", "verdict"]  # fmt: skip
    weighed = ["policy", "mean weight", "effective rows", "largest weight", "of all weight"]
    biased = any(value.verdict == "biased" for value in estimates.values)
    how = "rows, taken for independent" if estimates.users is None else "users, clustered by user"
    return [
        f"{log}: {estimates.rows:,} decisions, {users}{missing}",
        EstimateTable(values, [_cells(value, by_row=by_row) for value in estimates.values]),
        EstimateTable(weighed, [_weight_cells(weights) for weights in estimates.weights]),
        *(f"* {policy} is withheld: {reason}" for policy, reason in estimates.reasons),
        *(["* biased: shrunk weights, or a model alone, get no verdict"] if biased else []),
        STEP_WORDS,
        *([] if estimates.users is None else [VALUE_WORDS]),
        _INTERVALS.format(how=how),
    ]


def _cells(value: PolicyValue, *, by_row: bool) -> list[str]:
    rows = [ends_in_words(value.row_interval, "")] if by_row and value.row_interval is not None else []
    difference = with_ends(value.difference, value.difference_interval, "+")
    if value.verdict == "reference":
        difference = "-"
    mean = with_ends(value.value, value.interval, "")
    return [value.policy, value.estimand, value.estimator, mean, *rows, difference, value.verdict]


def _weight_cells(weights: PolicyWeights) -> list[str]:
    return [
        weights.policy, f"{weights.mean:.4g} +- {weights.error:.2g}", f"{weights.effective:,.1f}",
        f"{weights.largest:.4g}", f"{100 * weights.share:.2f} %",
    ]  # fmt: skip
