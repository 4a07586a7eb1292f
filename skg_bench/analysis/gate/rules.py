"""Rules that a baseline file declares: the role of each metric, and, if it blocks, direction and margin.

lead         a declared share of the lead over `never`, the arm without a product, must provably be kept
utility      the worth of an answer must not fall, in all turns and in those of the last quarter of the weeks
errors       answers must not become wrong more often
efficiency   right hits must not become fewer, nor answers dearer, unless wrong answers are proven fewer; of right hits
             a declared share (`floor`) must provably be kept even then
burden       users must not be asked more often
tail         few users must not be harmed much, see `tail`
domain       a metric that the world's domain brings (core/domain.py) must not get worse
informs      shown, never blocks: hit rate, because a wrong hit counts in it like a right one
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from pathlib import Path
from typing import Any, Literal, get_args

from skg_bench.analysis.counts.metrics import Better, Metric, Utility, metrics
from skg_bench.analysis.counts.outcomes import outcome_metrics
from skg_bench.core.domain import Domain
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.hidden_hits import HIT_METRICS, arms_without_hits
from skg_bench.runfolder.run import Run

Role = Literal["lead", "utility", "errors", "efficiency", "burden", "tail", "domain", "informs"]
WORST, HARMED = "worst_users", "harmed_users"
LEAD, UTILITY_LATE, RIGHT_HITS = "lead", "utility_late", "right_hits"
MONEY = ("cost_usd", "learning_cost_usd")  # amounts: their margins are no rates of events
NEVER_ANCHOR, ORACLE_ANCHOR = "never", "oracle"  # counts of what their answers were worth to the user in all
MIN_USERS = 30
CHOSEN = 5  # worst users at least: if 5 % of users are harmed, none of 100 is in 0.6 % of panels
# what a metric is declared with beside its margin; the lead has its share in the place of one
_OPTION = {WORST: "share", HARMED: "beyond", LEAD: "share", RIGHT_HITS: "floor"}
_HITS = ("hit_rate", "calls_saved", "llm_calls")  # right or wrong
ABOUT_HITS = HIT_METRICS | {RIGHT_HITS}
_EXAMPLE = '"utility": {"role": "utility", "better": "higher", "margin": 0.01}'


@dataclass(frozen=True, slots=True)
class Rule:
    """One metric of a baseline file."""

    metric: str
    role: Role
    better: Better = "neither"  # of a metric that informs, direction and margin are not declared
    margin: float = inf  # the harm that is too much, in the metric's unit
    # worst_users: share of the users; harmed_users: harm that is exceeded; lead: share of it that must be kept;
    # right_hits: share of them that must be kept however many wrong answers are saved
    option: float | None = None

    @property
    def blocks(self) -> bool:
        return self.role != "informs"

    @property
    def least(self) -> int:
        """Fewest users that are judged: of fewer, those who are harmed may be missing by chance."""
        return ceil(CHOSEN / self.option) if self.metric == WORST and self.option else MIN_USERS

    @property
    def scatter(self) -> tuple[float, float]:
        """Least standard deviation and skewness of users' harms to plan with.

        0 if the sample spread is reliable; else those of a scaled Bernoulli: a share p of users carries all the harm.
        """
        if self.role != "tail" or self.option is None:
            return 0.0, 0.0
        p = self.option if self.metric == WORST else min(2 * self.margin, 0.5)
        spread = sqrt(p * (1 - p))
        return (2 * self.margin / p if self.metric == WORST else 1.0) * spread, (1 - 2 * p) / spread

    def times(self, factor: float) -> "Rule":
        """The same with a larger margin. The share of the lead has none: it is owed to every reference alike."""
        return replace(self, margin=factor * self.margin)

    def declared(self) -> dict[str, Any]:
        """As in the file."""
        if not self.blocks:
            return {"role": self.role}
        margin = {} if self.role == "lead" else {"margin": self.margin}
        option = {_OPTION[self.metric]: self.option} if self.metric in _OPTION else {}
        return {"role": self.role, "better": self.better, **margin, **option}


# Half of the lead: what a build that changes a few answers can prove with 100 users. A hundredth of a right answer,
# twice that in the last quarter, which has a quarter of the turns; half a percentage point of answers, and a quarter of
# the right hits; an offer every two weeks; 3 points more wrong answers for the worst 5 % of users; 3 % of users with 2
# points more (if none of 100 users is harmed, that excludes 3 %, and no less).
RULES = (
    Rule(LEAD, "lead", "higher", 0.0, 0.5),
    Rule("utility", "utility", "higher", 0.01),
    Rule(UTILITY_LATE, "utility", "higher", 0.02),
    Rule("err_per_request", "errors", "lower", 0.005),
    Rule(RIGHT_HITS, "efficiency", "higher", 0.005, 0.25),
    Rule("offers_per_week", "burden", "lower", 0.5),
    Rule(WORST, "tail", "lower", 0.03, 0.05),
    Rule(HARMED, "tail", "lower", 0.03, 0.02),
    Rule("hit_rate", "informs"),
    Rule("err_per_hit", "informs"),
)
IMPORTED_RULES = (*(rule for rule in RULES if rule.metric in ("utility", "err_per_request", WORST, HARMED)),)
"""Rules for results that were made elsewhere, of which memory, offers and weeks are not known."""
MAY_BE: Mapping[Role, tuple[str, ...]] = {
    "lead": (LEAD,),
    "utility": ("utility", UTILITY_LATE),
    "errors": ("err_per_request", "err_per_hit", "err_per_request_hits", "correct", "rated_ok"),
    "efficiency": (RIGHT_HITS, *MONEY, "tokens", "latency_ms"),
    "burden": ("offers_per_week",),
    "tail": (WORST, HARMED),
}


def gate_metrics(utility: Utility, domain: Domain) -> dict[str, Metric]:
    """All metrics that a gate knows in a world of this domain, by name."""
    table = (
        Metric(LEAD, "lead over never", "utility", "higher", "turn", {**utility.count(), NEVER_ANCHOR: -1},
               "Utility beyond that of the arm that reuses nothing, same users and requests."),
        Metric(UTILITY_LATE, "utility, last quarter", "utility", "higher", "late_turn",
               {f"late_{name}": weight for name, weight in utility.count().items()},
               "Utility over the last quarter of the weeks: what is learned wrongly shows late."),
        Metric(RIGHT_HITS, "right hits", "share", "higher", "turn", {"hit": 1, "wrong_hit": -1},
               "Share of requests answered rightly from memory."),
        Metric(WORST, "wrong, worst users", "share", "lower", "turn", {"wrong": 1},
               "Wrong answers per request of the worst users, beyond those of the baseline."),
        Metric(HARMED, "users harmed", "share", "lower", "turn", {"wrong": 1},
               "Share of users whose answers became wrong more often by more than a limit."),
    )  # fmt: skip
    return {**metrics(utility), **{metric.name: metric for metric in table}, **outcome_metrics(domain)}


def declared(node: Any, path: Path, domain: Domain) -> tuple[Rule, ...]:
    """The rules in a file about a world of this domain.

    Raises UsageError saying what to write where a role, a direction or a margin is missing or cannot be.
    """
    if not isinstance(node, Mapping) or not node:
        raise UsageError(f'{path} declares no roles; write "metrics": {{{_EXAMPLE}, ...}}, or take it from --update')
    rules = tuple(_rule(str(name), entry, path, domain) for name, entry in node.items())
    if not any(rule.blocks for rule in rules):
        raise UsageError(f"{path}: no metric blocks, so that nothing could fail; write {_EXAMPLE}")
    if any(rule.role == "efficiency" for rule in rules) and not any(rule.role == "errors" for rule in rules):
        example = json.dumps(next(rule for rule in RULES if rule.role == "errors").declared())
        raise UsageError(
            f'{path}: a metric of role "efficiency" blocks where wrong answers are not proven fewer, and none of role '
            f'"errors" is declared; write "err_per_request": {example}'
        )
    return rules


def _rule(name: str, entry: Any, path: Path, domain: Domain) -> Rule:
    given, where = entry if isinstance(entry, Mapping) else {}, f"{path}: metrics.{name}"
    roles = get_args(Role)
    if given.get("role") not in roles:
        raise UsageError(f'{where} has the role {given.get("role")!r}; write "role": one of {", ".join(roles)}')
    role: Role = given["role"]
    known = gate_metrics(Utility(0.0, 0.0, 0.0, 0.0), domain).get(name)
    blocks = {**MAY_BE, "domain": tuple(each.name for each in domain.metrics if each.better != "neither")}
    hint = '; hits inform only, write "role": "informs"' if name in _HITS else ""
    if known is None or known.over == "book" or (role != "informs" and name not in blocks[role]):
        possible = (
            ", ".join(blocks.get(role, ("those of the run's summary that are per request or per hit",))) or "none"
        )
        raise UsageError(f'{where}: it cannot have the role "{role}"; metrics that can are {possible or "none"}{hint}')
    if role == "informs":
        _refuse_unknown(given, Rule(name, role), where)
        return Rule(name, role)
    if given.get("better") != known.better:
        problem = f"says that {given['better']!r} is better" if "better" in given else "has no direction"
        raise UsageError(f'{where} blocks and {problem}; write "better": "{known.better}"')
    option = _OPTION.get(name)
    margin = 0.0 if role == "lead" else _above_zero(given.get("margin"), where, "margin")
    share = _above_zero(given.get(option), where, option) if option else None
    rule = Rule(name, role, known.better, margin, share)
    _refuse_unknown(given, rule, where)
    return rule


def _refuse_unknown(given: Mapping[str, Any], rule: Rule, where: str) -> None:
    """Raise UsageError for a key that no verdict would read, such as the margin of a metric that only informs."""
    valid = tuple(rule.declared())
    for key in given:
        if key not in valid:
            raise UsageError(
                f'{where}: a metric of role "{rule.role}" has no {key!r} here; valid are {", ".join(valid)}'
            )


def _above_zero(value: Any, where: str, key: str) -> float:
    below = 1.0 if key in _OPTION.values() else inf
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < below:
        return float(value)
    rules = [rule for rule in RULES if key in rule.declared()]
    rule = next((rule for rule in rules if where.endswith(f".{rule.metric}")), rules[0])
    example = rule.margin if key == "margin" else rule.option
    bound = "above 0 and below 1" if below == 1 else "above 0"
    raise UsageError(f'{where}: {key} is {value!r}, and must be a number {bound}; write for example "{key}": {example}')


def blocking(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Rules that decide."""
    return tuple(rule for rule in rules if rule.blocks)


def refuse_hidden(rules: Sequence[Rule], run: Run, arm: str, file: str | Path) -> None:
    """Raises UsageError for a rule about hits of an arm of which nobody can see what it answers from memory."""
    if (about := [rule.metric for rule in rules if rule.metric in ABOUT_HITS]) and arm in arms_without_hits(run):
        raise UsageError(
            f"{file}: nobody can see what arm {arm!r} answers from memory, as this world judges its words; remove "
            f"{', '.join(f'metrics.{metric}' for metric in about)}, which would judge that"
        )
