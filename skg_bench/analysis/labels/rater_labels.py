"""Labels of raters: read from sheets, checked row by row, kept beside a run, and merged."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np

from skg_bench.analysis.labels.hit_pairs import HitPairs, text_digest
from skg_bench.analysis.labels.label_shares import PairLabel
from skg_bench.analysis.labels.sheets import unguarded
from skg_bench.analysis.statistics.intervals import ALPHA, t_quantile
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.core.grid import F64, I64, U64
from skg_bench.core.text import plural

RATER_LABELS = {label.name.lower(): label for label in PairLabel if label != PairLabel.UNJUDGED}
"""Labels by word."""
LABELS_FILE = "labels.csv"  # beside the run
JUDGE_FILE = "judge-{}.csv"  # beside the run, by digest: labels of a program
_HEAD = ("pair", "rater", "label", "seed")
_SCALE = ", ".join(RATER_LABELS)


def label_word(label: int) -> str:
    """Word of a label."""
    return PairLabel(label).name.lower()


@dataclass(frozen=True, slots=True)
class RaterLabel:
    """Label that a rater gave a pair, and where it stands."""

    pair: int
    rater: str
    label: int
    place: str  # file and row
    texts: tuple[str, str] | None = None  # message and answer, where the row has them


def read_sheet(file: Path) -> list[RaterLabel]:
    """Labels of a sheet; see `sheet_labels`. Rows without a label are left out."""
    return [label for label in sheet_labels(file) if label.label != PairLabel.UNJUDGED]


def sheet_labels(file: Path) -> list[RaterLabel]:
    """Label of each row of a sheet, UNJUDGED where it is blank. Without a column `rater`, the rater is the file's name.
    Spreadsheet programs may begin the file with a byte order mark, and part its cells by semicolons.

    Raises UsageError for a file that is no such sheet, naming the row.
    """
    text = text_of(file).removeprefix("\ufeff")
    heading = text.partition("\n")[0]
    sign = ";" if heading.count(";") > heading.count(",") else ","
    try:
        rows = list(csv.reader(StringIO(text, newline=""), strict=True, delimiter=sign))
    except csv.Error as error:
        raise UsageError(f"{file} is no whole CSV file ({error}); export it again") from error
    head = [name.strip().lower() for name in rows[0]] if rows else []
    if lacking := [name for name in ("pair", "label") if name not in head]:
        raise UsageError(f"{file} has no column {lacking[0]!r}; it has {', '.join(head) or 'none'}")
    if again := next((name for name in ("pair", "label", "rater", "message", "answer") if head.count(name) > 1), None):
        raise UsageError(f"{file} has the column {again!r} twice; leave one of them")
    labels = []
    for number, cells in enumerate(rows[1:], 2):
        if not any(cells):
            continue
        place = f"{file}, row {number}"
        if len(cells) != len(head):
            count = f"{plural(len(cells), 'cell')}, and {plural(len(head), 'column')}"
            raise UsageError(f"{place}: {count}; the file is torn, export it again")
        row = dict(zip(head, map(str.strip, cells), strict=True))
        labels.append(_label(row, dict(zip(head, cells, strict=True)), place, file))
    return labels


def _label(row: Mapping[str, str], texts: Mapping[str, str], place: str, file: Path) -> RaterLabel:
    word = row["label"].lower()
    if word and word not in RATER_LABELS:
        raise UsageError(f"{place}: label {row['label']!r}; valid: {_SCALE}, or nothing for not judged")
    try:
        pair = -1 if "_" in row["pair"] else int(row["pair"], 16)  # Python takes 1_0 for 10
    except ValueError:
        pair = -1
    if not 0 <= pair < 2**64:
        raise UsageError(f"{place}: pair {row['pair']!r} is no digest of 16 hexadecimal digits, as sheets have them")
    words = (texts["message"], texts["answer"]) if {"message", "answer"} <= set(texts) else None
    label = RATER_LABELS[word] if word else PairLabel.UNJUDGED
    return RaterLabel(pair, row.get("rater") or file.stem, label, place, words)


def check_texts(labels: Sequence[RaterLabel], pairs: HitPairs) -> None:
    """Raises UsageError for a row whose texts are not those of its pair."""
    texts = pairs.all_texts() if any(label.texts for label in labels) else {}
    for label in labels:
        if label.texts is None or label.pair not in texts:
            continue
        for given, text in zip(label.texts, texts[label.pair], strict=True):
            if text_digest(unguarded(given)) != text_digest(text):
                raise UsageError(
                    f"{label.place}: its message or answer is not the one of pair {label.pair:016x}; sort whole "
                    "rows only, and leave the texts as they were written"
                )


def merged(labels: Sequence[RaterLabel]) -> dict[int, dict[str, int]]:
    """Labels by pair and rater.

    Raises UsageError where one rater says two things of one pair.
    """
    by_pair = dict[int, dict[str, RaterLabel]]()
    for label in labels:
        first = by_pair.setdefault(label.pair, {}).setdefault(label.rater, label)
        if first.label != label.label:
            raise UsageError(
                f"{label.place}: rater {label.rater!r} says {label_word(label.label)!r}, and of the same pair "
                f"{label_word(first.label)!r} in {first.place}; keep one of them"
            )
    return {pair: {rater: label.label for rater, label in by_name.items()} for pair, by_name in by_pair.items()}


def replaced(kept: Sequence[RaterLabel], given: Sequence[RaterLabel]) -> tuple[list[RaterLabel], int, int]:
    """Kept labels without those that the same raters give anew or leave blank now, how many of these say something
    else now, and how many nothing. A row that is blank in one sheet and filled in another is filled.
    """
    blank_first = sorted(given, key=lambda label: label.label != PairLabel.UNJUDGED)
    anew = {(label.pair, label.rater): label.label for label in blank_first}
    left = [label for label in kept if (label.pair, label.rater) not in anew]
    changed = [now for label in kept if (now := anew.get((label.pair, label.rater), label.label)) != label.label]
    n_withdrawn = changed.count(PairLabel.UNJUDGED)
    return left, len(changed) - n_withdrawn, n_withdrawn


def settled(by_pair: Mapping[int, Mapping[str, int]]) -> dict[int, int]:
    """One label a pair; `unknown` where raters differ, so that every interval covers what each of them said."""
    return {
        pair: next(iter(labels)) if len(labels := set(by_rater.values())) == 1 else PairLabel.UNKNOWN
        for pair, by_rater in by_pair.items()
    }


def labels_of(pairs: U64, labels: Mapping[int, int]) -> I64:
    """Label of each pair, UNJUDGED where there is none."""
    if not labels:
        return np.full(len(pairs), PairLabel.UNJUDGED, np.int64)
    known = np.array(sorted(labels), np.uint64)
    values = np.array([labels[pair] for pair in known.tolist()], np.int64)
    at = np.minimum(np.searchsorted(known, pairs), len(known) - 1)
    return np.where(known[at] == pairs, values[at], PairLabel.UNJUDGED)


def labels_text(by_pair: Mapping[int, Mapping[str, int]], seed: int) -> str:
    """The file of labels that lies beside a run: digests, raters and labels, no words. `seed`: of the order in which
    the run's turns are judged.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEAD)
    writer.writerows(
        (f"{pair:016x}", rater, label_word(by_pair[pair][rater]), seed)
        for pair in sorted(by_pair)
        for rater in sorted(by_pair[pair])
    )
    return text.getvalue()


def labels_seed(file: Path) -> int:
    """Seed of the order of judging, from the file beside a run; 0: none stands there."""
    row = next(csv.DictReader(StringIO(text_of(file), newline="")), {})
    seed = row.get("seed") or "0"
    if not (seed.isascii() and seed.isdigit()):
        raise UsageError(f"{file}, row 2: seed {seed!r} is no whole number")
    return int(seed)


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Two raters on the pairs that both judged."""

    raters: tuple[str, str]
    pairs: int
    same: int
    kappa: float  # Cohen's; NaN where both use one label only
    low: float
    high: float
    differ: tuple[int, ...]  # pairs

    @property
    def words(self) -> str:
        """The agreement as a sentence without its end."""
        ends = "" if np.isnan(self.kappa) else f", kappa {self.kappa:.2f} ({self.low:.2f} to {self.high:.2f})"
        return f"{' and '.join(self.raters)}: the same label at {self.same:,} of {self.pairs:,} pairs{ends}"


def agreements(by_pair: Mapping[int, Mapping[str, int]]) -> list[RaterAgreement]:
    """RaterAgreement of each two raters who judged a pair in common: Cohen (1960), Fleiss and others (1969)."""
    raters = sorted({rater for by_rater in by_pair.values() for rater in by_rater})
    pairs_of_raters = [(a, b) for i, a in enumerate(raters) for b in raters[i + 1 :]]
    return [agreement for a, b in pairs_of_raters if (agreement := _agreement(by_pair, a, b)).pairs]


def _agreement(by_pair: Mapping[int, Mapping[str, int]], a: str, b: str) -> RaterAgreement:
    common = {pair: (labels[a], labels[b]) for pair, labels in by_pair.items() if a in labels and b in labels}
    counts: F64 = np.zeros((len(RATER_LABELS),) * 2)
    for first, second in common.values():
        counts[first, second] += 1
    used = np.flatnonzero(counts.sum(axis=0) + counts.sum(axis=1))
    differ = tuple(pair for pair, (first, second) in common.items() if first != second)
    kappa = low = high = np.nan
    if len(used) > 1:
        kappa, low, high = _kappa(counts)
    return RaterAgreement((a, b), len(common), len(common) - len(differ), kappa, max(low, -1.0), min(high, 1.0), differ)


def _kappa(counts: F64) -> tuple[float, float, float]:
    """Cohen's kappa of a table of two raters' labels, with its 95 % interval by the large-sample error of Fleiss."""
    n = float(counts.sum())
    shares = counts / n
    first, second = shares.sum(axis=1), shares.sum(axis=0)
    same, chance = np.diag(shares), float(first @ second)
    kappa = (float(same.sum()) - chance) / (1 - chance)
    at_same = float(same @ (1 - (first + second) * (1 - kappa)) ** 2)
    apart = shares * (second[:, None] + first) ** 2
    at_other = (1 - kappa) ** 2 * float(apart.sum() - np.diag(apart).sum())
    variance = (at_same + at_other - (kappa - chance * (1 - kappa)) ** 2) / ((1 - chance) ** 2 * n)
    error = t_quantile(1 - ALPHA / 2, np.inf) * max(variance, 0.0) ** 0.5
    return kappa, kappa - error, kappa + error
