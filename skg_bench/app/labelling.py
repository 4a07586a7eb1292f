"""`skg-bench data label`: turns of a log or of tasks for people to judge, and what their labels say of all."""

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from math import isnan
from pathlib import Path

from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.labels.allocation import next_turns
from skg_bench.analysis.labels.asked_again import NO_CONVERSATIONS, count_share
from skg_bench.analysis.labels.hit_pairs import STRATA, HitPairs
from skg_bench.analysis.labels.label_shares import LabelShare, PairLabel
from skg_bench.analysis.labels.labelled_run import (
    ArmLabels,
    ByRater,
    LabelledRun,
    judged_arms,
    kept_labels,
    kept_seed,
    labelled_run,
)
from skg_bench.analysis.labels.machine_labels import EXACT
from skg_bench.analysis.labels.price_decision import PriceDecision, decision_words
from skg_bench.analysis.labels.rater_labels import (
    LABELS_FILE,
    RaterLabel,
    check_texts,
    label_word,
    labels_text,
    merged,
    read_sheet,
    replaced,
    sheet_labels,
)
from skg_bench.analysis.labels.sheets import label_page, sheet_rows, sheet_text
from skg_bench.analysis.labels.word_differences import labelled_words
from skg_bench.analysis.labels.word_pairs import has_tasks
from skg_bench.analysis.labels.word_table import word_tables
from skg_bench.app import table_blocks
from skg_bench.app.answer_judges import judge_of
from skg_bench.app.judged_words import show_words
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.temporary import replace_whole, write_private
from skg_bench.core.text import printable
from skg_bench.runfolder.lock import held
from skg_bench.runfolder.run import Run

_PATIENCE = 60.0  # seconds for which labels wait for others of the same run
_DIFFERENCES, _SHORT = 5, 60  # pairs that are shown, characters of a text
_MANY = 20  # labels on which a judge that errs now and then hardly agrees with all
_FOUND = ("arm", "wrong by people: the judge says so too", "not wrong by people: the judge says so too")
_WEEKS = ("arm", "week", "hits", "wrong by the judge", "wrong by people, of what they judged")
_HEADINGS = ("arm", "hits", "judged", "wrong", "the log's own", "beyond the log's own")
_APART = (
    "beyond the log's own: estimated by itself, as the two are equally wrong where they are the same words; so it need "
    "not be the difference of the two columns"
)
_INTERVALS = (
    "intervals: 95 %, for this log; near counts as not wrong; where a label is unknown or raters differ, the interval "
    "covers both cases"
)


def draw_sheets(folder: Path, n: int, seed: int | None, out: Path | None, page: Path | None) -> None:
    """Write turns to be judged, chosen for all arms.

    Raises UsageError for a run without turns to judge, and files that are there; OSError.
    """
    run = Run(folder)
    order = kept_seed(run) if seed is None else seed
    if has_tasks(run):
        pairs, labels = labelled_words(run, kept_labels(run), order)
        _write(run, pairs, order, next_turns(pairs, labels, n, decides=True), out=out, page=page)
        return
    labelled = labelled_run(run, kept_labels(run), seed=order)
    turns = next_turns(labelled.hit_pairs, labelled.labelled, n, decides=False)
    _write(run, labelled.hit_pairs, order, turns, out=out, page=page)


def draw_decisive(
    folder: Path, n: int, *, arm: str | None, price: float | None, seed: int | None, out: Path | None, page: Path | None
) -> None:
    """Write the turns that narrow the decision on an arm most, unless the decision stands.

    Raises UsageError as `draw_sheets` does, and for an unknown arm; OSError.
    """
    run = Run(folder)
    if has_tasks(run):
        raise UsageError("--next draws answers from memory of a log; of a run on tasks --n draws what decides most")
    name, order = _arm(run, arm), kept_seed(run) if seed is None else seed
    labelled = labelled_run(run, kept_labels(run), [name], seed=order)
    if not labelled.arms:
        raise UsageError(f"--arm {name}: it answered no turn from memory, so there is nothing to judge")
    (figures,) = labelled.arms
    screen = console()
    if price is not None and figures.decision.verdict(price) != "open":
        screen.print(
            f"decided: {_verdict(name, figures.decision, price)}; more labels are not needed at this price",
            soft_wrap=True,
        )
        return
    turns = next_turns(labelled.hit_pairs, labelled.labelled, n, decides=True)
    if not turns:
        screen.print(f"{name}: every hit that could tell is judged; no label can change the decision", soft_wrap=True)
        return
    _write(run, labelled.hit_pairs, order, turns, out=out, page=page)


def take_labels(
    folder: Path,
    sheets: Sequence[Path],
    *,
    arm: str | None,
    price: float | None,
    judge: str | None,
    seed: int | None,
    overrides: Sequence[str] = (),
    seconds: float = 60.0,
) -> None:
    """Keep the labels of sheets beside the run, and print what all labels say of all hits. `judge`: a machine whose
    errors they take out; see `judge_of`.

    Raises UsageError for a faulty sheet, one of another run, and contradictions; then nothing is kept. Locked where
    another process still keeps labels of the run after a minute. OSError.
    """
    run = Run(folder)
    with held(run.path, "tables", wait=_PATIENCE) if sheets else nullcontext():  # else labels of the other would go
        _take_labels(run, sheets, arm, price, judge=judge, seed=seed, overrides=overrides, seconds=seconds)


def _take_labels(
    run: Run,
    sheets: Sequence[Path],
    arm: str | None,
    price: float | None,
    *,
    judge: str | None,
    seed: int | None,
    overrides: Sequence[str],
    seconds: float,
) -> None:
    order = kept_seed(run) if seed is None else seed
    kept = run.path / LABELS_FILE
    labels = read_sheet(kept) if kept.is_file() else []
    given = {sheet: sheet_labels(sheet) for sheet in sheets}
    fresh = {sheet: [row for row in rows if row.label != PairLabel.UNJUDGED] for sheet, rows in given.items()}
    _check_order(run, fresh, order)
    anew = [label for sheet in fresh.values() for label in sheet]
    left, n_corrected, n_withdrawn = replaced(labels, [row for rows in given.values() for row in rows])
    by_rater = merged([*left, *anew])
    machine = judge_of(run, judge, overrides, seconds)
    if has_tasks(run):
        if arm is not None or price is not None:
            raise UsageError("--arm and --price are of answers from memory of a log; leave them out for a run on tasks")
        if judge == EXACT:
            raise UsageError("--judge exact compares with a log's own answers; for tasks take simulator.check=exact")
        pairs, _ = labelled_words(run, by_rater, order)
        _check_sheets(run, fresh, pairs)
        if fresh:
            replace_whole(kept, labels_text(by_rater, order).encode())
            _show_replaced(n_corrected, n_withdrawn)
        grades = {} if machine is None else {str(judge): machine(pairs)}
        sheet = grades if judge is not None and Path(judge).is_file() else {}  # others lie beside the run
        if tables := word_tables(run, sheet, order):
            show_words(console(), tables)
        return
    shown = None if arm is None else _arm(run, arm)
    labelled = labelled_run(run, by_rater, judge=machine, seed=order)
    _check_sheets(run, fresh, labelled.hit_pairs)
    if fresh:
        replace_whole(kept, labels_text(by_rater, order).encode())
        _show_replaced(n_corrected, n_withdrawn)
    _show_labelled(run.path, labelled, by_rater, arm=shown, price=price, judge=judge)


def _show_replaced(n_corrected: int, n_withdrawn: int) -> None:
    for number_of, what in ((n_corrected, "replaced"), (n_withdrawn, "withdrawn: their rows are blank now")):
        if number_of:
            console().print(f"{number_of:,} labels of the same raters are {what}", soft_wrap=True)


def _show_labelled(
    folder: Path, labelled: LabelledRun, by_rater: ByRater, *, arm: str | None, price: float | None, judge: str | None
) -> None:
    """Print what labels say of all hits of an arm (None: of all arms), and what comes next."""
    screen = console()
    for line in _heard(labelled, by_rater):
        screen.print(line, soft_wrap=True)
    arms = [figures for figures in labelled.arms if arm in (None, figures.arm)]
    if arms:
        headings = _HEADINGS if judge is None else (*_HEADINGS[:3], f"wrong, as judged by {judge}", *_HEADINGS[3:])
        table_blocks.show_table(screen, headings, [_cells(figures) for figures in arms])
    if judge is not None and arms:
        table_blocks.show_table(screen, _FOUND, [row for figures in arms for row in _confused(figures)])
        table_blocks.show_table(screen, _WEEKS, [row for figures in arms for row in _by_week(figures)])
    for figures in arms:
        for line in _decided(figures, price, judge):
            screen.print(line, soft_wrap=True)
        if price is not None and figures.decision.verdict(price) == "open" and figures.shares.judged:
            screen.print(f"  more labels: {_more(folder, figures.arm, price)}", soft_wrap=True)
    screen.print(NO_CONVERSATIONS if labelled.again is None else labelled.again.words, soft_wrap=True)
    for line in (_APART, _INTERVALS) if arms else (_INTERVALS,):
        screen.print(line, soft_wrap=True)
    screen.print(f"next: {shlex.join(['skg-bench', 'report', str(folder)])}", soft_wrap=True)


def _check_order(run: Run, fresh: Mapping[Path, Sequence[RaterLabel]], order: int) -> None:
    """Raises UsageError for a sheet that was not drawn in this order: it would replace that of the run."""
    now = kept_seed(run)
    for sheet, given in fresh.items() if order != now and not has_tasks(run) else ():
        counted, instead = (
            max((each.shares.judged for each in labelled_run(run, merged(given), seed=seed).arms), default=0)
            for seed in (order, now)
        )
        if counted < instead:
            raise UsageError(
                f"--seed {order}: {sheet} was drawn in another order, in which {instead:,} of its answers count; with "
                f"this one {counted:,} would, and labels that are kept would not. Leave --seed out"
            )


def _check_sheets(run: Run, fresh: Mapping[Path, Sequence[RaterLabel]], pairs: HitPairs) -> None:
    known = set(pairs.pairs.tolist())
    check_texts([label for given in fresh.values() for label in given], pairs)
    for sheet, given in fresh.items():
        if not given:
            raise UsageError(f"{sheet} holds no label yet; fill its column label with wrong, near, right or unknown")
        if not any(label.pair in known for label in given):
            raise UsageError(f"{sheet}: none of its {len(given):,} pairs of message and answer occurs in {run.path}")


def _arm(run: Run, arm: str | None) -> str:
    known = judged_arms(run)
    if arm is not None and arm not in known:
        raise UsageError(f"--arm {arm}: {nearest(arm, known)}")
    if arm is None and len(known) != 1:
        raise UsageError(f"{run.path} has {len(known)} arms that answer from memory; add --arm: {', '.join(known)}")
    return known[0] if arm is None else arm


def _write(run: Run, pairs: HitPairs, order: int, turns: Sequence[int], *, out: Path | None, page: Path | None) -> None:
    groups = sheet_rows(pairs, turns)
    if not groups:
        hits = any(len(each.turn) for each in pairs.arms)
        none = "all arms say the same words" if has_tasks(run) else "no arm answered a turn from memory"
        reason = "every answer that could tell is judged" if hits else none
        raise UsageError(f"{run.path}: {reason}, so there is nothing to judge")
    if out is None and page is None:
        raise UsageError("neither --out nor --page says where to write the turns to be judged")
    for path in (path for path in (out, page) if path is not None):
        if path.exists():
            raise UsageError(f"{path} is there already, maybe with labels in it; name another file, or remove it")
    screen = console()
    name = out.name if out is not None else page.with_suffix(".csv").name if page is not None else "label.csv"
    n = sum(map(len, groups))
    if out is not None:
        write_private(out, sheet_text(groups))
    if page is not None:
        write_private(page, label_page(groups, name))
    files = " and ".join(str(path) for path in (out, page) if path is not None)
    screen.print(f"{len(groups):,} turns with {n:,} answers to judge: {files}", soft_wrap=True)
    sheet = out if out is not None else Path(name)
    words = ["skg-bench", "data", "label", str(run.path), "--read", str(sheet)]
    command = shlex.join([*words, *(["--seed", str(order)] if order != kept_seed(run) else [])])
    screen.print(f"then: {command}", soft_wrap=True)


def _more(folder: Path, arm: str, price: float) -> str:
    """Command that draws the turns which decide most."""
    n = next(n for n in range(1, 1000) if not Path(f"more-{n}.csv").exists())
    words = [
        "--next",
        "20",
        "--arm",
        arm,
        "--price",
        f"{price:g}",
        "--out",
        f"more-{n}.csv",
        "--page",
        f"more-{n}.html",
    ]
    return shlex.join(["skg-bench", "data", "label", str(folder), *words])


def _heard(labelled: LabelledRun, by_rater: ByRater) -> Iterator[str]:
    other = f"; {labelled.n_other:,} others do not occur in it" if labelled.n_other else ""
    yield (
        f"{labelled.n_labels:,} answers of this run have a label{other}. A hit counts as judged if its answer and the "
        "log's own have one, and so have those of all hits of its kind that were drawn before it; a sheet's rows are "
        f"in another order. Kinds, by what the log knows of the answer: {', '.join(STRATA)}"
    )
    for each in labelled.agreements:
        yield printable(each.words)
        for pair in each.differ[:_DIFFERENCES]:
            message, answer = (_short(text) for text in labelled.hit_pairs.texts(pair))
            labels = (f"{rater}: {label_word(by_rater[pair][rater])}" for rater in each.raters)
            yield printable(f"  {message} -> {answer} ({', '.join(labels)})")
        if len(each.differ) > _DIFFERENCES:
            yield f"  and {len(each.differ) - _DIFFERENCES:,} more, in {LABELS_FILE} beside the run"


def _short(text: str) -> str:
    return textwrap.shorten(text, _SHORT, placeholder="...")


def _cells(figures: ArmLabels) -> list[str]:
    machine = figures.machine
    shares = figures.shares if machine is None else machine.corrected
    estimates = [_share(share) for share in (shares.wrong, shares.logged_wrong, shares.excess)]
    alone = [] if machine is None else [number(machine.wrong, "share")]
    return [figures.arm, f"{shares.hits:,}", f"{shares.judged:,}", *alone, *estimates]


def _share(share: LabelShare) -> str:
    ends = interval(share.low, share.high, "share")
    return f"not known ({ends})" if isnan(share.mean) else f"{number(share.mean, 'share')} ({ends})"


def _decided(figures: ArmLabels, price: float | None, judge: str | None) -> Iterator[str]:
    """Decision on an arm; none by a machine alone."""
    machine = figures.machine
    decision = figures.decision if machine is None else machine.decision
    if not figures.shares.judged:
        yield f"{figures.arm}: no decision without labels of people"
        return
    shares = figures.shares if machine is None else machine.corrected
    yield f"{figures.arm}: {decision_words(decision)}"
    yield f"  wrong or near: {_share(shares.wrong_or_near)}"
    if price is not None:
        yield f"  {_verdict(figures.arm, decision, price)}"
    if machine is not None:
        (hit, missed), (false, passed) = machine.confusion.tolist()
        if missed == false == 0 and hit + passed >= _MANY:
            yield f"  {judge} agrees with every label: if it was made from them, its figures are worth nothing"


def _confused(figures: ArmLabels) -> Iterator[list[str]]:
    """Pairs that people judged, as the machine has them."""
    if figures.machine is not None:
        (hit, missed), (false, passed) = figures.machine.confusion.tolist()
        yield [figures.arm, count_share(hit, hit + missed), count_share(passed, false + passed)]


def _by_week(figures: ArmLabels) -> Iterator[list[str]]:
    for week in figures.machine.weeks if figures.machine is not None else ():
        name = f"{week.first}" if week.first == week.last else f"{week.first}-{week.last}"
        wrong = number(week.wrong / week.hits, "share") if week.hits else "-"
        yield [figures.arm, name, f"{week.hits:,}", wrong, count_share(week.people_wrong, week.people)]


def _verdict(arm: str, decision: PriceDecision, price: float) -> str:
    verdict = decision.verdict(price)
    words = {"pays": "pays", "does not pay": "does not pay", "open": "is not decided yet"}[verdict]
    return f"at {decision.saving.words(price)} a wrong answer, {arm} {words}"
