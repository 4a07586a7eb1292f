"""Content of the page, gathered from a run for the template: words, figures, tables, users, how to repeat it."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from markupsafe import Markup

from skg_bench.analysis.comparison.claimed_proofs import claimed_proofs
from skg_bench.analysis.comparison.companion_runs import companion_runs
from skg_bench.analysis.counts.wording import named
from skg_bench.analysis.labels.word_table import WORD_HEADINGS, WORD_INTERVALS, word_tables
from skg_bench.analysis.report import chart, heads, logged, page_charts, tables, verdict
from skg_bench.analysis.report.arm_looks import Look, looks_of, stylesheet
from skg_bench.analysis.report.assets import page_asset, page_template
from skg_bench.analysis.report.claimed import claimed
from skg_bench.analysis.report.glossary import entries
from skg_bench.analysis.report.hidden_memory import silence_sentences
from skg_bench.analysis.report.hit_cosines import COSINE_HEADINGS, hit_cosines
from skg_bench.analysis.report.judged_arms import judged_log
from skg_bench.analysis.report.logged import language_sentences
from skg_bench.analysis.report.outcome_turns import endings, outcome_settings, outcome_turns
from skg_bench.analysis.report.outside_arms import imported_sentences, outside_sentences
from skg_bench.analysis.report.page_value import Ceiling, Page, Preset, SaturationRows
from skg_bench.analysis.report.people import CAP, answers, timelines
from skg_bench.analysis.report.proof import proof
from skg_bench.analysis.report.roster import RosterRow, rosters
from skg_bench.analysis.report.sentences import code
from skg_bench.analysis.report.skill_rows import skill_table
from skg_bench.analysis.report.timeline import as_json
from skg_bench.analysis.report.typeset import marked, typeset_interval, typeset_value
from skg_bench.analysis.report.waterfall import LOSS_WORDS, panels
from skg_bench.analysis.summary import Summary, read_summary
from skg_bench.core.record import left_out
from skg_bench.core.text import plural, script_json
from skg_bench.core.types import CAUSES
from skg_bench.runfolder.hidden_hits import arms_without_hits
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.worded_arms import arms_in_words

ASKED_CAP = 20_000  # turns of a user who was asked for by number
LEAST_TURNS = 60  # of a user in an arm other than the learner
PAGE_SCRIPTS = ("figures.js", "pick.js", "tables.js", "export.js", "learner.js", "prices.js", "users.js")


def html(run: Run, users: Sequence[int] | None = None, beside: Sequence[Run] = ()) -> str:
    """The page as text. `users`: these instead of the twelve. `beside`: runs of the same world that say more about it.

    Raises UsageError when the run has no summary yet, or not these users, or a run beside is of another world.
    """
    content = _worded(read_summary(run))
    compositions = run.manifest.get("compositions") or {}
    all_looks = looks_of(run, content)
    main_arms = [look.arm for look in all_looks if look.shown]
    curves = page_charts.Curves.read(run.table("curves.csv"), content.users)
    imported = run.manifest.get("imported")  # made elsewhere: no weeks, no memory, no simulated users
    small = [] if imported else page_charts.weekly_charts(curves, all_looks, content)
    effect = page_charts.learning(curves, all_looks)
    price = page_charts.sensitivity(content, all_looks, content.reference)
    offers = page_charts.offers(content, all_looks, content.reference)
    headings, rows = tables.levels(content, all_looks)
    proven = proof(companion_runs(run, beside), run, all_looks)
    over_turns = proven.over.chart if proven.over and proven.over.drawing and not proven.over.looks else None
    arm = content.learner
    proofs = claimed_proofs(run)
    offered = None if proofs is None else claimed(proofs, run, all_looks, arm)
    offered_charts = offered.charts if offered else ()
    people = {other: [] for other in run.arms} if imported else rosters(run, arm, content.reference, users)
    cap = CAP if users is None else ASKED_CAP
    skills = skill_table(run, content, next(look.classes for look in all_looks if look.arm == arm))
    lifts = skills.chart if skills else None
    page = Page(
        css=page_asset("page.css"),
        arms_css=Markup(stylesheet([*all_looks, *(proven.over.looks if proven.over else ())])),  # noqa: S704  colours and class names of our own
        scripts=[
            page_asset(name)
            for name in (*PAGE_SCRIPTS[:-1], *(("outcome.js",) if content.telling.turn else ()), PAGE_SCRIPTS[-1])
        ],
        title=f"skg_bench: {run.config.get('experiment') or 'run'}",
        scope=_scope(run, content),
        question=content.question,
        heads=heads.heads(content),
        lines=heads.arm_lines(content, all_looks),
        cautions=[
            (s.tone, marked(s.marked))
            for sentences in (
                outside_sentences(run, content.reference),
                verdict.cautions(content),
                silence_sentences(run),
                imported_sentences(run),
                language_sentences(run),
            )
            for s in sentences
        ],
        learner=arm,
        reference=content.reference,
        looks=all_looks,
        undrawn=_undrawn(all_looks, content.reference),
        least=page_charts.users_for_a_mean(content.users),
        presets=_presets(all_looks, main_arms),
        figures=[(c, _svg(c, main_arms)) for c in small],
        effect=(effect, _svg(effect, main_arms)) if effect else None,
        price=(price, _svg(price, main_arms)) if price else None,
        offers=(offers, _svg(offers, main_arms)) if offers else None,
        headings=headings,
        levels=rows,
        differences=tables.difference_tables(content, all_looks),
        effects=tables.effects(content, all_looks),
        cosines=hit_cosines(run),
        cosine_headings=COSINE_HEADINGS,
        skills=skills,
        lifts=_svg(skills.chart, main_arms) if skills else None,
        proof=proven,
        claimed=offered,
        claimed_figures=[(c, _svg(c, main_arms)) for c in offered_charts],
        beside=[str(other.path) for other in beside],
        waterfalls=panels(content, all_looks, arms_in_words(run)),
        ceilings=[
            Ceiling(k, typeset_value(figure.mean, "share"), typeset_interval(figure.low_new, figure.high_new, "share"))
            for k, figure in content.ceiling.items()
        ],
        saturation=_saturation(content),
        log=None if content.log is None else logged.facts(content.log, content.turns),
        judged=judged_log(run),
        worded=word_tables(run),
        word_headings=WORD_HEADINGS,
        word_intervals=WORD_INTERVALS,
        answers=content.answers,
        trust=bool(arms_in_words(run)),  # to play them again runs code that the run names
        told_turn=next(iter(content.telling.turn), None),
        taken=_taken(content),
        hits=tables.metric_heading("hit_rate", content.metrics) if content.telling.metrics and not imported else "Hits",
        telling=content.telling,
        noun=_noun(content),
        person=_person(content),
        people=people[arm],
        people_of_others={other: rows for other, rows in people.items() if other != arm},
        asked=users is not None,
        packed=_safe(
            page_charts.packed([c for c in (*small, lifts, effect, price, offers, over_turns, *offered_charts) if c])
        ),
        settings=_safe(_settings(run, compositions, content)),
        timelines=_timelines(run, arm, people[arm], cap),
        facts=_facts(run, content),
        repeat=_repeat(run),
        exact=bool(imported) or isinstance(run.manifest.get("overrides"), list),
        run_path=str(run.path),
        manifest=json.dumps(run.manifest, indent=1, ensure_ascii=False),
        glossary=entries(content),
    )
    values = {f.name: getattr(page, f.name) for f in fields(page)}
    return page_template("page.html.j2").render(values, marked=marked, code=code)


def _svg(c: chart.Chart, main_arms: Sequence[str]) -> Markup:
    return Markup(chart.chart_svg(c, main_arms, chart.FOCUSABLE))  # noqa: S704  chart escapes names


def _safe(value: Any) -> Markup:
    """Json that cannot end the script element it stands in, whatever texts it holds."""
    return Markup(script_json(value))  # noqa: S704  no markup is left


def _timelines(run: Run, learner: str, people: Sequence[RosterRow], cap: int) -> Iterator[tuple[str, Markup]]:
    """Turns of users by arm, under the name that `users.js` looks for. Those of all other arms together take as much
    room as the learner's: fewer turns of a user each.
    """
    packed, ended = (outcome_turns, endings) if run.telling.turn else (timelines, answers)
    users = [row.user for row in people]
    of_all = ended(run, users)
    for arm in run.arms:
        room = cap if arm == learner else max(LEAST_TURNS, cap // max(len(run.arms) - 1, 1))
        for user, timeline in packed(run, arm, users, room, of_all).items():
            yield timeline_name(run, arm, learner, user), _safe(as_json(timeline))


def timeline_name(run: Run, arm: str, learner: str, user: int) -> str:
    """The id of an element that holds turns."""
    return f"user-{user}{_suffix(run, arm, learner)}"


def _suffix(run: Run, arm: str, learner: str) -> str:
    return "" if arm == learner else f"-{run.arms.index(arm)}"


def _scope(run: Run, content: Summary) -> list[str]:
    if imported := run.manifest.get("imported"):
        same = f"{content.turns:,} {_noun(content)}s, the same for each of {len(run.arms)} arms"
        return [plural(content.users, "user"), same, f"made elsewhere: {imported['file']}"]
    users = plural(content.users, "user" if run.domain.recorded or "simulator" not in run.config else "simulated user")
    if content.log is not None:
        users = f"{plural(content.users, _person(content).lower())} of a log"
    return [
        users,
        plural(content.weeks, "week"),
        f"{content.turns:,} {_noun(content)}s, the same for each of {len(run.arms)} arms",
        f"seed {content.seed}",
    ]


def _worded(content: Summary) -> Summary:
    """The summary, whose metrics are about what users bring in this world."""
    noun = _noun(content)
    metrics = {
        name: replace(words, label=named(words.label, noun), says=named(words.says, noun))
        for name, words in content.metrics.items()
    }
    return replace(content, metrics=metrics)


def _noun(content: Summary) -> str:
    """Noun for what users bring."""
    return content.telling.noun


def _taken(content: Summary) -> str:
    """Heading of the share of interactions that users took; empty: a domain without interactions."""
    names = [each.taken for each in content.telling.interactions]
    return tables.metric_heading(names[0], content.metrics) if names else ""


def _person(content: Summary) -> str:
    return "Pseudo-user" if content.log is not None and content.log["pseudo_users"] else "User"


def _undrawn(all_looks: Sequence[Look], reference: str | None) -> Markup | None:
    """Reason why arms are in the tables and not in the figures."""
    arms = [look for look in all_looks if not look.drawn]
    if not arms:
        return None
    named = ", ".join(f"{code(look.arm)} ({', '.join(look.overrides)})" for look in arms)
    same = f"identical to {code(str(reference))} on every turn"
    return marked(f"Left out of the figures, being {same}: {named}.")


def _presets(all_looks: Sequence[Look], main_arms: Sequence[str]) -> list[Preset]:
    every = [look.arm for look in all_looks if look.drawn]
    sets = [("main arms", list(main_arms)), ("all", every), ("none", [])]
    return [
        Preset(label, json.dumps(arms)) for label, arms in sets if label != "main arms" or len(main_arms) < len(every)
    ]


def _saturation(content: Summary) -> SaturationRows:
    saturation = content.saturation
    rows = (
        ("Requests that repeat an earlier one of the same user word for word", saturation.verbatim),
        ("The same, in the last week", saturation.verbatim_last_week),
        ("Request types of a user of which all wordings were said", saturation.types_used_up),
        ("One-off requests that were drawn again", saturation.one_offs_again),
    )
    limit = typeset_value(saturation.limit, "share")
    noun = _noun(content)
    shares = [(named(what, noun), typeset_value(share, "share")) for what, share in rows]
    return SaturationRows(saturation.testable, limit, shares)


def _settings(run: Run, compositions: Mapping[str, Any], content: Summary) -> dict[str, Any]:
    """Context of the timelines: the learner, what each arm decides by, what is known, of whom, and causes."""
    known: dict[str, Any] = {"person": _person(content), "judged": content.log is None}
    if content.log is not None:
        known["monday"] = content.log["first_day"]
    causes = {cause: [str(CAUSES.index(cause)), LOSS_WORDS[cause][0]] for cause in LOSS_WORDS}
    for panel in content.telling.turn:
        known |= {"outcome": outcome_settings(run, panel)}
        causes = {}
    hidden = arms_without_hits(run)
    rules = {
        arm: _rules(compositions.get(arm) or {}, _suffix(run, arm, content.learner)) | {"own_words": arm in hidden}
        for arm in run.arms
    }
    report = f"skg-bench report {run.path} --user"
    return {"learner": content.learner, "rules": rules, "report": report, "causes": causes, **known}


def _rules(composition: Mapping[str, Any], suffix: str) -> dict[str, Any]:
    """One arm's threshold, weights of its signals, and rule for jobs that meet (null: learning takes no time)."""
    policy, signals = composition.get("policy") or {}, composition.get("signals") or {}
    jobs = composition.get("jobs") or {"call_seconds": 0}
    return {
        "suffix": suffix,
        "threshold": policy.get("threshold"),
        "weights": {name: signals[name] for name in ("similarity", "preference", "score") if name in signals},
        "conflict": None if jobs["call_seconds"] == 0 else jobs["conflict"],
    }


def _facts(run: Run, content: Summary) -> list[tuple[str, str]]:
    manifest = run.manifest
    imported = manifest.get("imported")
    commit = str(manifest.get("commit") or "not from a checkout")
    changed = f", with uncommitted changes {manifest['dirty']}" if manifest.get("dirty") else ""
    prices = content.utility
    paid = f"{prices.usd:g} × US dollars − {prices.second:g} × seconds − {prices.offer:g} × offers"
    worth = f"worth − {paid}" if content.telling.worth else f"right − {prices.wrong:g} × wrong − {paid}"
    late = f"{content.pending_feedback:,} in all arms: given, but known only after the end, and used in nothing"
    versions, data = manifest.get("versions") or {}, manifest.get("data") or {}
    corpus = manifest.get("corpus")  # one that others published
    removed = manifest.get("removed_users", 0)
    return [
        ("Identity", str(manifest.get("identity", ""))),
        ("Folder", str(run.path)),
        *(
            [("Removed since", f"{removed:,} of {manifest['users']:,} users; all figures are of the others")]
            * bool(removed)
        ),
        *([("Table", f"{imported['file']}: {', '.join(imported['columns'])}")] if imported else []),
        *([] if imported else [("Seed", str(content.seed))]),
        (f"Utility of a {_noun(content)}", worth),
        ("Reference arm", str(content.reference or "none")),
        *([] if imported else [("Serving", str(run.config.get("serving", "")))]),
        ("Commit", commit + changed),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("Data", ", ".join(f"{name} {str(digest)[:16]}" for name, digest in data.items()) or "–"),
        *(
            [("Corpus", f"{corpus['source']}; left out: {'; '.join(left_out(corpus['left_out'])) or 'no row'}")]
            if corpus
            else []
        ),
        *([] if imported else [(content.telling.late, late)]),
    ]


def _repeat(run: Run) -> str:
    """The command that makes this run again."""
    if imported := run.manifest.get("imported"):
        return str(imported["command"])
    given = run.manifest.get("overrides")
    if isinstance(given, list):
        return shlex.join(["skg-bench", "run", *map(str, given)])
    keys = ("experiment", "profile", "seed", "users", "weeks")
    return " ".join(["skg-bench run", *(f"{k}={run.config[k]}" for k in keys if run.config.get(k) is not None)])
