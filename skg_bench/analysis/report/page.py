"""Everything the template shows, gathered from a run: words, figures, tables, users, how to repeat it."""

import json
import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from skg_bench.analysis import summary
from skg_bench.analysis.comparison.claimed_proofs import claimed_proofs
from skg_bench.analysis.comparison.companion_runs import companion_runs
from skg_bench.analysis.counts.advice import is_advised
from skg_bench.analysis.report import chart, figures, logged, tables, verdict
from skg_bench.analysis.report.arms import Look, looks_of, stylesheet
from skg_bench.analysis.report.claimed import claimed
from skg_bench.analysis.report.glossary import entries
from skg_bench.analysis.report.people import CAP, timelines
from skg_bench.analysis.report.proof import proof
from skg_bench.analysis.report.purchases import purchases
from skg_bench.analysis.report.roster import RosterRow, roster
from skg_bench.analysis.report.sentences import code
from skg_bench.analysis.report.typeset import interval, marked, shown
from skg_bench.analysis.report.waterfall import WORDS, panels
from skg_bench.analysis.summary import Summary
from skg_bench.core.advice import OUTCOMES, SATISFACTIONS, TIERS
from skg_bench.core.record import left_out
from skg_bench.core.run import Run
from skg_bench.core.types import CAUSES

TILES = (
    "hit_rate", "err_per_hit", "correct", "same_answer", "wrong_lower", "wrong_upper", "rated_ok", "calls_saved",
    "cost_saved_usd",
)  # fmt: skip
OF_ADVICE = ("listened", "regret", "blocked_wanted", "interventions_per_week", "worth_it", "skills")
AGAINST = {"cost_saved_usd": "cost_usd"}  # tile -> the reference's figure beside it
ASKED_CAP = 20_000  # turns of a user who was asked for by number
SCRIPTS = ("figures.js", "tables.js", "export.js", "users.js")
PACKAGE = "skg_bench.analysis.report"


def html(run: Run, users: Sequence[int] | None = None, beside: Sequence[Run] = ()) -> str:
    """The page as text. `users`: these instead of the twelve. `beside`: runs of the same world that say more about it.

    Raises UsageError when the run has no summary yet, or not these users, or a run beside is of another world.
    """
    content = summary.read(run)
    compositions = run.manifest.get("compositions") or {}
    all_looks = looks_of(run, content)
    main_arms = [look.arm for look in all_looks if look.shown]
    curves = figures.Curves.read(run.table("curves.csv"), content.users)
    small = figures.weekly(curves, all_looks, content.metrics, content.reference)
    effect, price = figures.learning(curves, all_looks), figures.sensitivity(content, all_looks, content.reference)
    offers = figures.offers(content, all_looks, content.reference)
    headings, rows = tables.levels(content, all_looks)
    proven = proof(companion_runs(run, beside), run, all_looks)
    over_turns = proven.over.chart if proven.over and proven.over.drawing and not proven.over.looks else None
    arm = content.learner
    proofs = claimed_proofs(run)
    offered = None if proofs is None else claimed(proofs, run, all_looks, arm)
    offered_charts = offered.charts if offered else ()
    people = roster(run, arm, content.reference, users)
    cap = CAP if users is None else ASKED_CAP
    context: dict[str, Any] = {
        "css": _asset("page.css"),
        "arms_css": Markup(stylesheet([*all_looks, *(proven.over.looks if proven.over else ())])),  # noqa: S704  colours and class names of our own
        "scripts": [
            _asset(name) for name in (*SCRIPTS[:-1], *(("advice.js",) if content.advised else ()), SCRIPTS[-1])
        ],
        "title": f"skg_bench: {run.config.get('experiment') or 'run'}",
        "scope": _scope(run, content),
        "question": content.question,
        **_verdict(content),
        "learner": arm,
        "reference": content.reference,
        "tiles": _tiles(content, arm),
        "looks": all_looks,
        "undrawn": _undrawn(all_looks, content.reference),
        "least": figures.least(content.users),
        "presets": _presets(all_looks, main_arms),
        "figures": [(c, _svg(c, main_arms)) for c in small],
        "effect": (effect, _svg(effect, main_arms)) if effect else None,
        "price": (price, _svg(price, main_arms)) if price else None,
        "offers": (offers, _svg(offers, main_arms)) if offers else None,
        "headings": headings,
        "levels": rows,
        "differences": tables.differences(content, all_looks),
        "effects": tables.effects(content, all_looks),
        "proof": proven,
        "claimed": offered,
        "claimed_figures": [(c, _svg(c, main_arms)) for c in offered_charts],
        "beside": [str(other.path) for other in beside],
        "waterfalls": panels(content, all_looks),
        "ceilings": [
            (k, shown(figure.mean, "share"), interval(figure.low_new, figure.high_new, "share"))
            for k, figure in content.ceiling.items()
        ],
        "saturation": _saturation(content),
        "log": None if content.log is None else logged.facts(content.log, content.turns),
        "advised": content.advised,
        "noun": _noun(content),
        "person": _person(content),
        "people": people,
        "asked": users is not None,
        "packed": _safe(figures.packed([c for c in (*small, effect, price, offers, over_turns, *offered_charts) if c])),
        "settings": _safe(_settings(run, compositions.get(arm) or {}, content)),
        "timelines": _timelines(run, arm, people, cap),
        "facts": _facts(run, content),
        "repeat": _repeat(run),
        "exact": isinstance(run.manifest.get("overrides"), list),
        "run_path": str(run.path),
        "manifest": json.dumps(run.manifest, indent=1, ensure_ascii=False),
        "glossary": entries(content),
        "marked": marked,
        "code": code,
    }
    environment = Environment(
        loader=PackageLoader(PACKAGE, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(context)


def _asset(name: str) -> Markup:
    """A stylesheet or script of this package."""
    return Markup((files(PACKAGE) / name).read_text("utf-8"))  # noqa: S704  our own file


def _svg(c: chart.Chart, main_arms: Sequence[str]) -> Markup:
    return Markup(chart.svg(c, main_arms, chart.FOCUSABLE))  # noqa: S704  chart escapes names


def _safe(value: Any) -> Markup:
    """Json that cannot end the script element it stands in, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704  no markup is left


def _timelines(run: Run, arm: str, people: Sequence[RosterRow], cap: int) -> list[tuple[int, Markup]]:
    packed = purchases if is_advised(run) else timelines
    return [(user, _safe(timeline)) for user, timeline in packed(run, arm, [row.user for row in people], cap).items()]


def _verdict(content: Summary) -> dict[str, Any]:
    """The first sentence opened up: its claim large, its numbers below; then the others, then what to beware of."""
    sentences = verdict.words(content)
    spoken = [s for s in sentences if s.tone != "caution"]
    claim, _, numbers = spoken[0].marked.partition(": ") if spoken else ("No arm to compare with.", "", "")
    return {
        "headline": marked(claim.rstrip(".") + "."),
        "numbers": marked(numbers[:1].upper() + numbers[1:]),
        "tone": spoken[0].tone if spoken else "plain",
        "findings": [(s.tone, marked(s.marked)) for s in spoken[1:]],
        "cautions": [marked(s.marked) for s in sentences if s.tone == "caution"],
    }


def _scope(run: Run, content: Summary) -> list[str]:
    users = "simulated users" if "simulator" in run.config else "users"
    if content.log is not None:
        users = f"{_person(content).lower()}s of a log"
    return [
        f"{content.users:,} {users}",
        f"{content.weeks:,} weeks",
        f"{content.turns:,} {_noun(content)}s, the same for each of {len(run.arms)} arms",
        f"seed {content.seed}",
    ]


def _noun(content: Summary) -> str:
    """What users bring."""
    return "purchase" if content.advised else "request"


def _person(content: Summary) -> str:
    return "Pseudo-user" if content.log is not None and content.log["pseudo_users"] else "User"


def _tiles(content: Summary, arm: str) -> list[dict[str, str]]:
    arm_figures, reference = content.arms[arm], content.reference
    other = content.arms.get(reference) if reference not in (None, arm) else None
    tiles = []
    for metric in OF_ADVICE if content.advised else TILES:
        if metric not in arm_figures or metric not in content.metrics:
            continue
        if content.log is not None and arm_figures[metric].mean is None:
            continue
        unit = content.metrics[metric].unit
        counterpart = AGAINST.get(metric, metric)
        beside = other[counterpart].mean if other and counterpart in other else None
        part = "of " if counterpart != metric else ""
        compared = "" if beside is None else marked(f"{part}{code(str(reference))} {shown(beside, unit)}")
        tiles.append(
            {
                "label": tables.label(metric, content.metrics),
                "value": shown(arm_figures[metric].mean, unit),
                "interval": interval(arm_figures[metric].low_new, arm_figures[metric].high_new, unit),
                "against": compared,
            }
        )
    return tiles


def _undrawn(all_looks: Sequence[Look], reference: str | None) -> Markup | None:
    """Why arms are in the tables and not in the figures."""
    arms = [look for look in all_looks if not look.drawn]
    if not arms:
        return None
    named = ", ".join(f"{code(look.arm)} ({', '.join(look.overrides)})" for look in arms)
    did = f"did on every turn what {code(str(reference))} did"
    return marked(f"Left out of the figures, as {'it' if len(arms) == 1 else 'they'} {did}: {named}.")


def _presets(all_looks: Sequence[Look], main_arms: Sequence[str]) -> list[dict[str, Any]]:
    every = [look.arm for look in all_looks if look.drawn]
    sets = [("main arms", list(main_arms)), ("all", every), ("none", [])]
    return [
        {"label": label, "arms": json.dumps(arms)}
        for label, arms in sets
        if label != "main arms" or len(main_arms) < len(every)
    ]


def _saturation(content: Summary) -> dict[str, Any]:
    saturation = content.saturation
    rows = (
        ("Requests that repeat an earlier one of the same user word for word", saturation.verbatim),
        ("The same, in the last week", saturation.verbatim_last_week),
        ("Request types of a user of which all wordings were said", saturation.types_used_up),
        ("One-off requests that were drawn again", saturation.one_offs_again),
    )
    return {
        "testable": saturation.testable,
        "limit": shown(saturation.limit, "share"),
        "rows": [(what, shown(share, "share")) for what, share in rows],
    }


def _settings(run: Run, composition: Mapping[str, Any], content: Summary) -> dict[str, Any]:
    """What a timeline needs: the policy's threshold, the weights of the signals, what is known, of whom, and causes."""
    policy, signals = composition.get("policy") or {}, composition.get("signals") or {}
    weights = {name: signals[name] for name in ("similarity", "preference", "score") if name in signals}
    known: dict[str, Any] = {"person": _person(content), "judged": content.log is None}
    if content.log is not None:
        known["monday"] = content.log["first_day"]
    arm: dict[str, Any] = {
        "arm": content.learner,
        "causes": {cause: [str(CAUSES.index(cause)), WORDS[cause][0]] for cause in WORDS},
    }
    report = f"skg-bench report {run.path} --user"
    if content.advised:
        jobs = composition.get("jobs") or {"call_seconds": 0}
        conflict = None if jobs["call_seconds"] == 0 else jobs["conflict"]
        levels = {"tiers": TIERS, "outcomes": OUTCOMES, "satisfactions": SATISFACTIONS}
        known |= {"advice": {**levels, "conflict": conflict}}
        arm["causes"] = {}
    return {"threshold": policy.get("threshold"), "weights": weights, "report": report, **arm, **known}


def _facts(run: Run, content: Summary) -> list[tuple[str, str]]:
    manifest = run.manifest
    commit = str(manifest.get("commit") or "not from a checkout")
    changed = f", with uncommitted changes {manifest['dirty']}" if manifest.get("dirty") else ""
    prices = content.utility
    paid = f"{prices.usd:g} × US dollars − {prices.second:g} × seconds − {prices.offer:g} × offers"
    worth = f"worth − {paid}" if content.advised else f"right − {prices.wrong:g} × wrong − {paid}"
    late = f"{content.pending_feedback:,} in all arms: given, but known only after the end, and used in nothing"
    versions, data = manifest.get("versions") or {}, manifest.get("data") or {}
    corpus = manifest.get("corpus")  # one that others published
    return [
        ("Identity", str(manifest.get("identity", ""))),
        ("Folder", str(run.path)),
        ("Seed", str(content.seed)),
        (f"Utility of a {_noun(content)}", worth),
        ("Reference arm", str(content.reference or "none")),
        ("Serving", str(run.config.get("serving", ""))),
        ("Commit", commit + changed),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("Data", ", ".join(f"{name} {str(digest)[:16]}" for name, digest in data.items()) or "–"),
        *(
            [("Corpus", f"{corpus['source']}; left out: {'; '.join(left_out(corpus['left_out'])) or 'no row'}")]
            if corpus
            else []
        ),
        ("Answers known too late" if content.advised else "Ratings known too late", late),
    ]


def _repeat(run: Run) -> str:
    """The command that makes this run again."""
    given = run.manifest.get("overrides")
    if isinstance(given, list):
        return shlex.join(["skg-bench", "run", *map(str, given)])
    keys = ("experiment", "profile", "seed", "users", "weeks")
    return " ".join(["skg-bench run", *(f"{k}={run.config[k]}" for k in keys if run.config.get(k) is not None)])
