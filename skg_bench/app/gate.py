"""Steps of `skg-bench gate`: hold a run against a baseline file, or write that file."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from skg_bench.analysis.counts.roles import roles
from skg_bench.analysis.counts.wording import number
from skg_bench.analysis.gate import baseline as baselines
from skg_bench.analysis.gate import outputs
from skg_bench.analysis.gate.against import Held, Reference, Which, ahead, harm, hold, lead
from skg_bench.analysis.gate.baseline import BUDGET, Baseline, check_anchor
from skg_bench.analysis.gate.judge import GateState, Harm, trials_for
from skg_bench.analysis.gate.outputs import GateOutcome, inert, one_line, worst
from skg_bench.analysis.gate.panel import Panel, panel, salt_of
from skg_bench.analysis.gate.rules import ABOUT_HITS, IMPORTED_RULES, RULES, Rule, blocking, refuse_hidden
from skg_bench.analysis.gate.verdict_turns import HarmedTurns, explain
from skg_bench.analysis.report.waterfall import reason_words
from skg_bench.analysis.summary import replace_text
from skg_bench.app import table_blocks
from skg_bench.app.counterexample import cases
from skg_bench.app.counterexample.cases import ArmSpec, Case, Scenario, answer_in_words
from skg_bench.app.counterexample.shrink import of_turn
from skg_bench.app.progress import console
from skg_bench.app.run_identity import code_digest, commits_between, identity_differences, uncommitted
from skg_bench.app.salts import MAKE_ONE, VARIABLE
from skg_bench.app.trust import FromFile
from skg_bench.core.draws import salted
from skg_bench.core.errors import UsageError
from skg_bench.core.temporary import PUBLIC_MODE
from skg_bench.core.text import plural
from skg_bench.runfolder.hidden_hits import arms_without_hits
from skg_bench.runfolder.measured_run import measured_run
from skg_bench.runfolder.run import Run, opened_run
from skg_bench.runfolder.worded_arms import arms_in_words

CODES: Mapping[GateState, int] = {"pass": 0, "fail": 1, "inconclusive": 3}
_COMPUTABLE = "the salt is the public default, from which an arm could compute the draws of this panel"
_TOLD = {"cost": "cost_usd", "wait": "latency_ms"}  # metrics by columns of a table of results made elsewhere
BUILDS = 250  # that change answers, a year: one a working day


@dataclass(frozen=True)
class Files:
    """Files to which the verdict is written as well."""

    junit: Path | None = None
    markdown: Path | None = None
    counterexample: Path | None = None
    annotations: bool = False  # on standard output


def gate(
    run: Run | str | Path,
    baseline: str | Path,
    release: str | Path | None = None,
    builds: int = BUILDS,
    *,
    unproven: bool = False,
) -> GateOutcome:
    """Hold a run against a baseline file, and against its anchor and the last release with the margins of the budget.
    `unproven`: also where the arm of the baseline is not ahead of `never`.

    Raises UsageError for files that are missing, corrupt, or of another panel or world, for runs that cannot be read,
    and for an arm that proves nothing.
    """
    run = measured_run(opened_run(run))
    main = baselines.read_baseline(Path(baseline))
    _refuse_unproven(main.panel, str(baseline), unproven)
    new = panel(run, main.panel.arm)
    refuse_hidden(main.rules, run, main.panel.arm, baseline)
    references = [Reference("baseline", main.panel, main.rules, str(baseline)), *_drift(main, baseline)]
    if release is not None:
        last = baselines.read_baseline(Path(release))
        if last.panel.arm != main.panel.arm:
            raise UsageError(f"{release} is of arm {last.panel.arm!r}, {baseline} of {main.panel.arm!r}; gate one arm")
        references.append(_budgeted("release", last.panel, main, str(release)))
    held = hold(new, references, str(run.path))
    return GateOutcome(
        run=str(run.path),
        arm=main.panel.arm,
        held=tuple(held),
        differences={judgement.which: _differences(judgement.base, new) for judgement in held},
        flips=_worded(explain(worst(held), run), run, main.panel.arm),
        session=(),
        builds=builds,
    )


def _worded(flips: HarmedTurns | None, run: Run, arm: str) -> HarmedTurns | None:
    """The turns with reasons as `compare` and the page name them, where the arm has no skillbook and no threshold."""
    if flips is None or arm not in arms_in_words(run):
        return flips

    def words(reason: str) -> str:
        return reason_words(reason, in_words=True)[0]

    users = tuple(
        replace(user, turns=tuple(replace(turn, reason=words(turn.reason)) for turn in user.turns))
        for user in flips.users
    )
    counts = Counter[str]()
    for reason, n in flips.reasons:
        counts[words(reason)] += n
    return replace(flips, reasons=tuple(counts.most_common()), users=users)


def _refuse_unproven(guarded: Panel, name: str, unproven: bool) -> None:
    if unproven or guarded.imported or ahead(guarded):
        return
    mean, least = (number(value, "utility", signed=True) for value in lead(guarded))
    raise UsageError(
        f"arm {guarded.arm!r} of {name} is not ahead of `never`, which reuses nothing: its lead is {mean} utility a "
        f"request, at least {least}. This arm proves nothing: giving the product up would pass. Gate one that is "
        "ahead, such as serving=prompted curator=everything router=recipe (conf/experiment/gate.yaml), with more users "
        "if the lead is small; or go on all the same with --unproven"
    )


def _drift(main: Baseline, file: str | Path) -> list[Reference]:
    """The anchor, where it is not what the file holds."""
    return [_budgeted("anchor", main.anchor, main, f"the anchor in {file}")] if main.drifts else []


def _budgeted(which: Which, base: Panel, main: Baseline, name: str) -> Reference:
    """A reference since which as much may be lost as the budget allows."""
    return Reference(which, base, tuple(rule.times(main.budget) for rule in main.rules), name)


def smallest(outcome: GateOutcome, *, trust: bool = False) -> Case | None:
    """The smallest session of a named user in which the configuration of the baseline answers rightly, and that of the
    run wrongly. None where the configuration is not what made it worse, and for a pass.

    Raises UsageError where a component reaches something, unless that is trusted.
    """
    held = worst(outcome.held)
    if held.new.imported:
        return None
    turns = [(turn, user.user) for user in (outcome.flips.users if outcome.flips else ()) for turn in user.turns]
    lost = sorted((turn.turn, user, turn.reason) for turn, user in turns if turn.lost)
    before, after = (cases.with_defaults(panel.made["compositions"][outcome.arm]) for panel in (held.base, held.new))
    forked = before.get("fork") or after.get("fork")  # an arm that a baseline does not hold
    scenario, old = _place(held.new), _place(held.base)
    if held.state == "pass" or not lost or before == after or scenario != old or forked:
        return None
    specs = {"arm": ArmSpec("after", {"after": after}), "reference": ArmSpec("before", {"before": before})}
    origin = FromFile(outcome.run, trust)
    cases.admit(origin, scenario, [specs["arm"]])
    cases.admit(FromFile(f"the {held.which} of {outcome.run}", trust), None, [specs["reference"]])
    turn, user, reason = lost[0]
    try:
        return of_turn(replace(scenario, user=user), specs, turn, reason, origin, right=False)
    except UsageError:  # the old configuration no longer does what it did: the code changed too
        return None


def _place(source_panel: Panel) -> Scenario:
    """The world of a panel, of its first user."""
    config = source_panel.made["config"]
    simulator, embedder = (cases.whole_node(config[seam]) for seam in ("simulator", "embedder"))
    if (salt := salt_of(source_panel)) is None:
        raise UsageError("its salt is secret, and a session that others can replay would tell it")
    seed = salted(config["seed"], salt)
    return Scenario(seed, config["weeks"], int(source_panel.users[0]), simulator, embedder)


def _told(case: Case) -> Iterator[str]:
    yield f"smallest session that shows it: {len(case.events)} events of user {case.scenario.user}"
    for at, event in enumerate(case.events):
        before, after = (answer_in_words(case.expected[role][at]) for role in ("reference", "arm"))
        yield f'  event {event["number"]} "{one_line(event["message"])}": {before} -> {after}'


def _differences(base: Panel, new: Panel) -> list[str]:
    before, after = (panel.made.get("versions") or {} for panel in (base, new))
    versions = [
        f"versions.{name}: {before.get(name)} -> {after.get(name)}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    return [*identity_differences(base.made, new.made), *versions, *_commits(base, new)]


def _commits(base: Panel, new: Panel) -> list[str]:
    """Commits from one panel to the other, of each package on its own, in the repository that it lies in."""
    before, after = (
        {"skg_bench": panel.made.get("commit")}
        | {name: known.get("commit") for name, known in (panel.made.get("packages") or {}).items()}
        for panel in (base, new)
    )
    lines = []
    for name in sorted({*before, *after}):
        old, now = before.get(name), after.get(name)
        if old != now:
            count = commits_between(name, old, now)
            counted = "" if count is None else f" ({count:,} commit{'' if count == 1 else 's'} of {name})"
            lines.append(f"commit.{name}: {old} -> {now}{counted}")
    return lines


def update_baseline(
    run: Run | str | Path, file: Path, arm: str | None = None, *, move_anchor: bool = False, unproven: bool = False
) -> tuple[Baseline, list[Held]]:
    """Write a baseline file from a run. What the file says of arm, metrics and budget stays, and so does its anchor,
    unless that moves; returned beside the baseline: the run against the one before, if it is of this panel and world,
    and against the anchor.

    Raises UsageError when what made the run is not committed, when the run cannot be read, or when its world or users
    are not those of the anchor that stays; when it is too small to judge any metric; and when its arm is not ahead of
    `never`, unless it may be `unproven`.
    """
    run = measured_run(opened_run(run))
    before = baselines.read_baseline(file) if file.exists() else None
    if not run.manifest.get("imported"):
        _refuse_dirty(run, file)
    if before is not None and arm not in (None, before.panel.arm):
        raise UsageError(f"{file} is of arm {before.panel.arm!r}; delete it to gate arm {arm!r}")
    new = panel(run, before.panel.arm if before else arm if arm is not None else roles(run).learner)
    _refuse_unproven(new, str(run.path), unproven)
    if before is None:
        known = (*RULES, *(Rule(metric.name, "informs") for metric in new.domain.metrics))
        if new.imported:
            known = (*IMPORTED_RULES, *(Rule(_TOLD[name], "informs") for name in _TOLD if name in new.imported))
        if new.arm in arms_without_hits(run):
            known = tuple(rule for rule in known if rule.metric not in ABOUT_HITS)
        rules = tuple(rule for rule in known if not rule.blocks or _judgeable(harm(new, new, rule)))
        if not blocking(rules):
            turns = plural(int(new.turns.sum()), "turn")
            raise UsageError(
                f"{run.path} has {plural(len(new.users), 'user')} with {turns}, too few to judge any metric, so that "
                "no build could fail; give more users"
            )
        after = Baseline(new, new, rules, BUDGET)
    else:
        refuse_hidden(before.rules, run, new.arm, file)
        anchor = new if move_anchor else before.anchor
        check_anchor(anchor, new, str(file))
        after = replace(before, panel=new, anchor=anchor)
    held = _against(new, before, after, str(file)) if before else []
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, baselines.baseline_text(after), mode=PUBLIC_MODE)
    return after, held


def _judgeable(judged: Harm) -> bool:
    """Are there trials enough, and users enough to find few?"""
    return judged.trials >= trials_for(judged.margin) and (
        judged.rule.role != "tail" or len(judged.users) >= judged.rule.least
    )


def _against(new: Panel, before: Baseline, after: Baseline, file: str) -> list[Held]:
    try:
        return hold(new, [Reference("baseline", before.panel, after.rules, file), *_drift(after, file)])
    except UsageError:
        return []  # of another panel or world: nothing to compare


def _refuse_dirty(run: Run, file: Path) -> None:
    why = "a baseline must be what a commit makes, so that anyone can make it again"
    if run.manifest.get("dirty") is not None:
        raise UsageError(
            f"{run.path} was made with skg_bench from a dirty tree; commit there, run again, then --update: {why}"
        )
    for name, known in run.manifest.get("packages", {}).items():
        if known["dirty"] is not None:
            raise UsageError(
                f"{run.path} was made with the package {name!r} from a dirty tree; commit there, run again, then "
                f"--update: {why}"
            )
    if dirty := [name for name in uncommitted() if Path(name).resolve() != file.resolve()]:
        raise UsageError(f"the tree is dirty: {', '.join(dirty[:5])}; commit, run again, then --update: {why}")
    if run.manifest.get("code") not in (None, code_digest()):
        raise UsageError(f"{run.path} was made by other code than this; run it again, then --update: {why}")


def command(
    run: Path,
    baseline: Path,
    release: Path | None,
    builds: int,
    files: Files,
    *,
    trust: bool = False,
    exact: bool = False,
    unproven: bool = False,
) -> int:
    """Print and write the verdict; returns the exit code. `exact`: that of a pass only for the same bits."""
    _clear(files, (baseline, release))
    outcome, screen = gate(run, baseline, release, builds, unproven=unproven), console()
    case = None
    try:
        case = smallest(outcome, trust=trust)
    except UsageError as error:  # the verdict does not need it
        screen.print(f"no session was looked for: {error}", markup=False, soft_wrap=True)
    if case is not None:
        outcome = replace(outcome, session=tuple(_told(case)))
    for held in outcome.held:
        if held.judged:
            screen.print(f"against the {held.which}; harm, positive is worse, with one-sided 95 % limits:")
            table_blocks.show_table(screen, outputs.GATE_HEADINGS, outputs.gate_rows(held))
    for sentence in outputs.sentences(outcome):
        screen.print(f"* {sentence}", markup=False)
    for which, lines in outcome.differences.items():
        for line in lines:
            screen.print(inert(f"  differs from the {which}: {line}"), markup=False, soft_wrap=True)
    for line in outputs.explained(outcome):
        screen.print(inert(line), markup=False, soft_wrap=True)
    screen.print(inert(outputs.gate_headline(outcome)), markup=False, soft_wrap=True)
    if _computable(outcome.held[0].new):
        screen.print(f"* {_computable_words(outcome.held[0].new)}", markup=False, soft_wrap=True)
    _write(outcome, case, files, screen)
    if exact and outcome.state == "pass" and not outcome.same:
        screen.print(f"other bits than the baseline's: exit code {CODES['inconclusive']}, as --exact asks for")
        return CODES["inconclusive"]
    return CODES[outcome.state]


def _clear(files: Files, read: Sequence[Path | None]) -> None:
    """Remove reports of an earlier verdict: where this one ends with an error, they would stand for it.

    Raises UsageError for a report that would replace one of the files to `read`.
    """
    places = [path.resolve() for path in read if path is not None]
    for option, path in (("--junit", files.junit), ("--markdown", files.markdown)):
        if path is None:
            continue
        if path.resolve() in places:
            raise UsageError(f"{option} {path} is a baseline file; give the report a name of its own")
        path.unlink(missing_ok=True)


def _write(outcome: GateOutcome, case: Case | None, files: Files, screen: Console) -> None:
    for path, text in ((files.junit, outputs.junit), (files.markdown, outputs.markdown)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, text(outcome), mode=PUBLIC_MODE)
    if files.counterexample is not None:
        if case is None:
            stays = "; what is there is of an earlier verdict" if files.counterexample.exists() else ""
            screen.print(f"{files.counterexample}: not written, no session shows it{stays}", soft_wrap=True)
        else:
            files.counterexample.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            cases.save_case(case, files.counterexample)
    if files.annotations:
        for line in outputs.annotations(outcome):
            screen.out(line, highlight=False)


def _computable(source: Panel) -> bool:
    """Could an arm compute the draws of the panel? Results that were made elsewhere have none."""
    return not source.imported and salt_of(source) == 0


def _computable_words(source: Panel) -> str:
    """Caution, with what gives another salt: a run reads the variable only where its configuration says so."""
    read = "" if source.made["config"].get("salt") == "env" else "salt=env in the command of the run and "
    return f"{_COMPUTABLE}; {read}{VARIABLE} give{'' if read else 's'} another"


def update_command(
    run: Path, baseline: Path, arm: str | None, *, move_anchor: bool = False, unproven: bool = False
) -> None:
    """Write the file, and print what changed."""
    after, held = update_baseline(run, baseline, arm, move_anchor=move_anchor, unproven=unproven)
    screen = console()
    for each in held:
        if each.same:
            screen.print("the same bits as before" if each.which == "baseline" else "the same bits as the anchor")
            continue
        what = "baseline before" if each.which == "baseline" else f"anchor, budget {after.budget:g} margins"
        screen.print(f"against the {what}; harm, positive is worse, with one-sided 95 % limits:")
        table_blocks.show_table(screen, outputs.GATE_HEADINGS, outputs.gate_rows(each))
        if each.which == "anchor" and each.state != "pass":
            screen.print(f"drift since the anchor: {outputs.STATE_WORDS[each.state]}; --move-anchor accepts it")
    rules = IMPORTED_RULES if after.panel.imported else RULES
    hidden = ABOUT_HITS if after.panel.arm in arms_without_hits(Run(run)) else frozenset[str]()
    for name in sorted({rule.metric for rule in blocking(rules)} - {rule.metric for rule in blocking(after.rules)}):
        why = "this panel has too few trials or users to judge it"
        if name in hidden:
            why = "this world judges words, and nobody can see what the arm answers from memory"
        screen.print(f"  {name} does not block: {why}", soft_wrap=True)
    margins = ", ".join(
        f"{rule.metric} {f'keeps {rule.option:.0%}' if rule.role == 'lead' else f'{rule.margin:g}'}"
        for rule in blocking(after.rules)
    )
    commit = after.anchor.made.get("commit")
    who = f"arm {after.panel.arm}, {len(after.panel.users):,} users; anchor: {commit or 'no commit'}"
    screen.print(f"{baseline}: {who}; margins: {margins}", markup=False, soft_wrap=True)
    if _computable(after.panel):
        words = f"{_computable_words(after.panel)}: {MAKE_ONE}, then run and --update again"
        screen.print(words, markup=False, soft_wrap=True)
