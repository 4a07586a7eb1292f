"""Corpora by name, and several of them as one.

    simulator.corpus=builtin                              the built-in one of 300 intents, as without a name
    simulator.corpus=builtin_120                          the 120 of them with which this project began
    simulator.corpus=[builtin,clinc150-exchange_rate]     both, the second without that intent
    simulator.corpus=[builtin,/my/corpus]                 a folder of one's own, in the format of data/corpus

A corpus keeps what it says of hours, weekdays and order; between corpora nothing follows. A message that an earlier
corpus has is left out of a later one, and counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.grid import Bool
from skg_bench.simulator.answers.clinc150_file import clinc150_corpus
from skg_bench.simulator.answers.corpus import BUILT_IN, Corpus, CorpusNames, Source, load_corpus

BY_NAME: Mapping[str, Callable[[], Corpus]] = {
    "builtin": load_corpus,
    "builtin_120": lambda: load_corpus(BUILT_IN[0]),
    "clinc150": lambda: clinc150_corpus(None, None, "test", 4),  # as conf/simulator/clinc150.yaml
}
OF_THE_PACKAGE = (None, False, "builtin", "builtin_120")  # values of `corpus` that read data of the package alone
_TWICE = "a message that an earlier corpus has"
_FIRST = 5  # of them, which are shown


@dataclass(frozen=True)
class CorpusPart:
    """A corpus of several, by the name that it was given, without the intents that were named after a hyphen."""

    name: str
    corpus: Corpus
    without: tuple[str, ...] = ()


def corpus_of(source: CorpusNames) -> Corpus:
    """The corpus that `simulator.corpus` names.

    Raises UsageError for what cannot be read, and for corpora that have an intent's name in common.
    """
    if isinstance(source, Source):
        return source.load()
    return one_corpus(corpus_parts([source or "builtin"] if isinstance(source, str | None) else source))


def corpus_parts(names: Sequence[object]) -> list[CorpusPart]:
    """The corpora of these names.

    Raises UsageError for an unknown name, one that stands twice, and intents to leave out that a corpus does not have.
    """
    texts = [name for name in names if isinstance(name, str) and name]
    if not texts or len(texts) < len(names):
        raise UsageError(
            f"simulator.corpus={list(names)} must name corpora by texts; valid are {', '.join(BY_NAME)}, and folders"
        )
    parts = [_part(text) for text in texts]
    stems = [part.name for part in parts]
    if twice := [stem for stem in stems if stems.count(stem) > 1]:
        raise UsageError(f"simulator.corpus names {twice[0]!r} twice; name each corpus once")
    return parts


def _part(text: str) -> CorpusPart:
    """A name, `-INTENT` after it for each intent to leave out. A folder's own name may have hyphens."""
    if text in BY_NAME or _is_folder(text) or "-" not in text:
        return CorpusPart(text, _named(text))
    stem = next((name for name in _stems(text) if name in BY_NAME or _is_folder(name)), "")
    if not stem:
        return CorpusPart(text, _named(text))
    without, corpus = tuple(text.removeprefix(f"{stem}-").split("-")), _named(stem)
    if unknown := [name for name in without if name not in corpus.intents]:
        raise UsageError(
            f"simulator.corpus: {text} leaves out {unknown[0]!r}, and {stem} has no such intent; it has "
            f"{', '.join(corpus.intents[:5])} and others"
        )
    if len(set(without)) == len(corpus.intents):
        raise UsageError(f"simulator.corpus: {text} leaves out all intents of {stem}; leave out the corpus")
    return CorpusPart(stem, corpus, without)


def _is_folder(text: str) -> bool:
    """Is there such a folder? None has a name that is too long for one."""
    try:
        return Path(text).is_dir()
    except OSError:
        return False


def _stems(text: str) -> Sequence[str]:
    """Texts before each hyphen, the longest first."""
    pieces = text.split("-")
    return ["-".join(pieces[:n]) for n in range(len(pieces) - 1, 0, -1)]


def _named(name: str) -> Corpus:
    if name in BY_NAME:
        return BY_NAME[name]()
    try:
        return load_corpus(name)
    except UsageError as error:
        if _is_folder(name):
            raise
        raise UsageError(f"simulator.corpus={name}: {error}; names are {', '.join(BY_NAME)}") from error


def one_corpus(parts: Sequence[CorpusPart]) -> Corpus:
    """All of these as one corpus; one alone, of which nothing is left out, as it is.

    Raises UsageError for an intent's name that two have, and for a request of which no wording is left.
    """
    if len(parts) == 1 and not parts[0].without:
        return parts[0].corpus
    _refuse_shared_names(parts)
    corpora = [_reduced(part.corpus, part.without) for part in parts]
    again = _again(corpora)
    out = [
        f"{text + 1} of {part.name}"
        for part, twice in zip(parts, again, strict=True)
        for text in np.flatnonzero(twice).tolist()
    ]
    rows, one_offs = list[Sequence[str]](), list[str]()
    for part, corpus, twice in zip(parts, corpora, again, strict=True):
        for t, name in enumerate(corpus.types):
            texts = corpus.wordings[t, : corpus.n_wordings[t]]
            rows.append([corpus.messages[text] for text in texts if not twice[text]])
            if not rows[-1]:
                raise UsageError(f"{part.name}: earlier corpora have all wordings of {name!r}; leave out its intent")
        one_offs += [corpus.messages[text] for text in corpus.one_offs if not twice[text]]
    digest = blake2b(repr([(part.corpus.digest, sorted(part.without)) for part in parts]).encode(), digest_size=16)
    n_wordings = np.array([len(row) for row in rows], np.int32)
    wordings = np.full((len(rows), n_wordings.max()), -1, np.int32)
    wordings[np.arange(wordings.shape[1]) < n_wordings[:, None]] = np.arange(n_wordings.sum())
    first_intents = np.cumsum([0, *(len(corpus.intents) for corpus in corpora)])[:-1]
    return Corpus(
        messages=(*(text for row in rows for text in row), *one_offs),
        intents=tuple(name for corpus in corpora for name in corpus.intents),
        types=tuple(name for corpus in corpora for name in corpus.types),
        answers=tuple(answer for corpus in corpora for answer in corpus.answers),
        wordings=wordings,
        n_wordings=n_wordings,
        intent=np.concatenate(
            [corpus.intent + np.int32(first) for corpus, first in zip(corpora, first_intents, strict=True)]
        ),
        kind=np.concatenate([corpus.kind for corpus in corpora]),
        effect=np.concatenate([corpus.effect for corpus in corpora]),
        ttl=np.concatenate([corpus.ttl for corpus in corpora]),
        hour_weight=np.concatenate([corpus.hour_weight for corpus in corpora]),
        day_weight=np.concatenate([corpus.day_weight for corpus in corpora]),
        follows=_blocks([corpus.follows for corpus in corpora]),
        one_offs=np.arange(n_wordings.sum(), n_wordings.sum() + len(one_offs), dtype=np.int32),
        digest=digest.hexdigest(),
        source=" and ".join(part.name for part in parts),
        left_out={_TWICE: {"rows": len(out), "first": out[:_FIRST]}} if out else {},
    )


def _refuse_shared_names(parts: Sequence[CorpusPart]) -> None:
    """Raises UsageError, with the names that are valid, where two corpora have an intent of the same name."""
    owner: dict[str, str] = {}
    for part in parts:
        kept = [name for name in part.corpus.intents if name not in part.without]
        shared = sorted(name for name in kept if name in owner)
        if shared and len(shared) == len(kept):
            raise UsageError(
                f"simulator.corpus: {owner[shared[0]]} has all intents of {part.name}; leave {part.name} out"
            )
        if shared:
            without = "-".join([part.name, *sorted(part.without), *shared])
            raise UsageError(
                f"simulator.corpus: {owner[shared[0]]} and {part.name} both have the intent {shared[0]!r} (row "
                f"{part.corpus.intents.index(shared[0]) + 1} of {part.name})"
                + (f", and {len(shared) - 1} more names" if len(shared) > 1 else "")
                + f"; leave out those of the second: {without}"
            )
        owner |= dict.fromkeys(kept, part.name)


def _reduced(corpus: Corpus, without: Sequence[str]) -> Corpus:
    """The corpus without these intents; their messages stay where they are, and no request type has them."""
    keep = ~np.isin(corpus.intents, without)
    types = keep[corpus.intent]
    return replace(
        corpus,
        intents=tuple(name for name in corpus.intents if name not in without),
        types=tuple(name for name, kept in zip(corpus.types, types, strict=True) if kept),
        answers=tuple(answer for answer, kept in zip(corpus.answers, types, strict=True) if kept),
        wordings=corpus.wordings[types],
        n_wordings=corpus.n_wordings[types],
        intent=(np.cumsum(keep) - 1)[corpus.intent[types]].astype(np.int32),
        kind=corpus.kind[keep],
        effect=corpus.effect[keep],
        ttl=corpus.ttl[keep],
        hour_weight=corpus.hour_weight[keep],
        day_weight=corpus.day_weight[keep],
        follows=corpus.follows[np.ix_(keep, keep)],
    )


def _again(corpora: Sequence[Corpus]) -> list[Bool]:
    """Messages of each corpus that an earlier one has too; those of intents that are left out count nowhere."""
    seen, again = set[str](), list[Bool]()
    for corpus in corpora:
        used = np.zeros(len(corpus.messages), np.bool_)
        used[corpus.wordings[corpus.wordings >= 0]] = True
        used[corpus.one_offs] = True
        again.append(used & np.array([text in seen for text in corpus.messages], np.bool_))
        seen |= {corpus.messages[text] for text in np.flatnonzero(used)}
    return again


def _blocks(squares: Sequence[Bool]) -> Bool:
    """Squares along the diagonal, and nothing beside them."""
    n = sum(map(len, squares))
    whole: Bool = np.zeros((n, n), np.bool_)
    at = 0
    for square in squares:
        whole[at : at + len(square), at : at + len(square)] = square
        at += len(square)
    return whole
