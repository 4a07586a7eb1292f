"""Judges that are programs: a Python function, or a model that reads a rubric. They see a message and an answer, never
which arm gave it, in an order drawn by key.

Labels are kept beside the run as they come, so that a judge which fails, or whose budget is spent, goes on from there.
"""

import hashlib
import inspect
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from types import ModuleType
from typing import Any

import numpy as np

from skg_bench.analysis.labels.hit_pairs import HitPairs
from skg_bench.analysis.labels.labelled_run import Machine
from skg_bench.analysis.labels.machine_labels import machine_labels
from skg_bench.analysis.labels.rater_labels import JUDGE_FILE, RATER_LABELS, labels_text, merged, read_sheet
from skg_bench.app.building import build
from skg_bench.app.compose import composer
from skg_bench.app.overrides import parse
from skg_bench.app.progress import console
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.asking import arrivals
from skg_bench.asking.asking import Prompt, TextModel, check_writes, placed
from skg_bench.asking.prompts import PromptFile, load_prompt
from skg_bench.core.draws import Purpose, fold
from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.core.foreign import bytes_of, text_of
from skg_bench.core.package import beyond_file
from skg_bench.core.temporary import replace_whole
from skg_bench.core.text import plural
from skg_bench.runfolder.run import Run

MODEL_JUDGE = "model"
_ROLE, _DATA = "answer_judge", ("message", "answer")
_TOKENS = 200  # that an answer may have
_TWICE = 20  # first answers that a function is given twice
_EVERY = 1.0  # seconds between two writes of the labels so far
_SHOWN = 60  # characters of a text in an error
_SCALE = ", ".join(RATER_LABELS)

TakesLabel = Callable[[int, str], None]  # place of an answer to be judged, and its label
Pair = tuple[int, str, str]  # digest, message, answer
Judge = Callable[[Sequence[Pair], TakesLabel], None]  # judges all, and raises UsageError that names the place


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """A judge, and what tells it from others."""

    name: str
    digest: str
    judge: Judge


def judge_of(run: Run, name: str | None, texts: Sequence[str], seconds: float) -> Machine | None:
    """Labels by a judge: `exact`, a file, FILE.py:FUNCTION, MODULE:FUNCTION, or `model`, which is asked as the
    overrides of `curator.llm` in `texts` say. `seconds`: that a function may take for an answer.

    Raises UsageError for overrides of anything else, and for a judge that is not there.
    """
    if texts and name != MODEL_JUDGE:
        raise UsageError(f"{texts[0]}: overrides go with --judge {MODEL_JUDGE}")
    if name is None:
        return None
    if name == MODEL_JUDGE:
        return partial(_labels, run, _model(run, texts))
    place, colon, function = name.rpartition(":")
    if colon and function.isidentifier() and not Path(name).is_file():
        return partial(_labels, run, _function(name, place, function, seconds))
    return partial(machine_labels, name)


def _labels(run: Run, judge: NamedJudge, pairs: HitPairs) -> dict[int, int]:
    """Labels of all pairs; those that are kept are not asked for again.

    A judge sees the texts alone, so the same texts at another turn get the same label from it, unasked. Its errors
    there are taken out by labels of people, which are of one turn each.
    """
    file = run.path / JUDGE_FILE.format(judge.digest[:8])
    labels = {pair: dict(by_name) for pair, by_name in merged(read_sheet(file)).items()} if file.is_file() else {}
    texts = pairs.all_texts()
    same = dict[tuple[str, str], list[int]]()  # pairs by their texts
    for pair in sorted(texts):
        same.setdefault(texts[pair], []).append(pair)
    for alike in same.values():
        if known := next((labels[pair] for pair in alike if pair in labels), None):
            labels |= dict.fromkeys(alike, known)
    digests = np.array([alike[0] for alike in same.values() if alike[0] not in labels], np.uint64)
    order = np.argsort(fold(digests, int(Purpose.JUDGED)), kind="stable")
    left = [(pair, *texts[pair]) for pair in digests[order].tolist()]
    if before := len(same) - len(left):
        line = f"{before:,} of {plural(len(same), 'answer')} have labels of {judge.name} in {file}"
        again = "not judged again; move that file away to judge them anew"
        console().print(f"{line}: {again}", highlight=False, markup=False, soft_wrap=True)
    written = monotonic()

    def given(place: int, word: str) -> None:
        nonlocal written
        if word not in RATER_LABELS:
            raise UsageError(f"{_row(left, place)}: it says {word!r:.80}; valid: {_SCALE}")
        labels.update({pair: {judge.name: int(RATER_LABELS[word])} for pair in same[left[place][1:]]})
        if monotonic() - written > _EVERY:
            replace_whole(file, labels_text(labels, 0).encode())
            written = monotonic()

    try:
        judge.judge(left, given)
    except UsageError as error:
        kept = f"{len(labels):,} labels are kept in {file}, and the same command goes on from there"
        kind = BudgetReached if isinstance(error, BudgetReached) else UsageError
        raise kind(f"--judge {judge.name}: {error}; {kept}") from error
    finally:
        if labels:
            replace_whole(file, labels_text(labels, 0).encode())
    return {pair: next(iter(by_name.values())) for pair, by_name in labels.items() if pair in texts}


def _row(left: Sequence[Pair], place: int) -> str:
    pair, message, answer = left[place]
    texts = " -> ".join(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..." for text in (message, answer))
    return f"answer {place + 1:,} of {len(left):,} (pair {pair:016x}: {texts})"


# ------------------------------------------------------------------------------------------------- functions


def _function(name: str, place: str, function: str, seconds: float) -> NamedJudge:
    """The function of a file or a module, with the digest of its text.

    Raises UsageError where it is not there, or no function of a message and an answer.
    """
    module = _of_file(name, Path(place)) if place.endswith(".py") else _imported(name, place)
    called = vars(module).get(function)
    if not callable(called):
        raise UsageError(f"--judge {name}: {place} has no function {function!r}")
    try:
        inspect.signature(called).bind("message", "answer")
    except TypeError as error:
        raise UsageError(f"--judge {name}: it must take a message and an answer: {error}") from error
    source = vars(module).get("__file__")
    root = module.__name__.partition(".")[0]
    texts = bytes_of(Path(source)) + beyond_file(Path(source), root).encode() if source else b""
    digest = hashlib.sha256(f"{name}\0".encode() + texts).hexdigest()
    return NamedJudge(name, digest, partial(_ask_function, called, seconds))


def _of_file(name: str, path: Path) -> ModuleType:
    module = ModuleType("skg_bench_judge")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look for the module of their class
    text = text_of(path)
    try:
        exec(compile(text, str(path), "exec"), vars(module))  # noqa: S102  the command names the file
    except (Exception, SystemExit) as error:  # whatever the file raises
        raise UsageError(f"--judge {name} fails: {type(error).__qualname__}: {error}") from error
    return module


def _imported(name: str, module: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(module)
    except (Exception, SystemExit) as error:  # whatever the module raises
        raise UsageError(
            f"--judge {name} cannot be imported: {type(error).__qualname__}: {error}; valid are exact, {MODEL_JUDGE}, "
            "a file of labels, FILE.py:FUNCTION and MODULE:FUNCTION of a module that Python finds"
        ) from error


def _ask_function(
    function: Callable[[str, str], object], seconds: float, pairs: Sequence[Pair], given: TakesLabel
) -> None:
    """Call the function in a thread, which a call that never ends does not hold up."""
    questions, labels = SimpleQueue[tuple[str, str]](), SimpleQueue[object]()

    def work() -> None:
        while True:
            words = questions.get()
            try:
                labels.put(function(*words))
            except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it raises is named with its row
                labels.put(error)

    def label_of(place: int) -> str:
        questions.put(pairs[place][1:])
        try:
            label = labels.get(timeout=seconds)
        except Empty:
            raise UsageError(
                f"{_row(pairs, place)}: it took more than {seconds:g} seconds; --seconds sets another limit"
            ) from None
        if isinstance(label, Exception | SystemExit):
            raise UsageError(f"{_row(pairs, place)}: it raised {type(label).__qualname__}: {label}") from label
        return label if isinstance(label, str) else repr(label)

    threading.Thread(target=work, name="judge", daemon=True).start()
    for place in range(len(pairs)):
        label = label_of(place)
        if place < _TWICE and (again := label_of(place)) != label:
            raise UsageError(f"{_row(pairs, place)}: it says {label!r:.80}, and then {again!r:.80}; it must not draw")
        given(place, label)


# ---------------------------------------------------------------------------------------------------- models


def _model(run: Run, texts: Sequence[str]) -> NamedJudge:
    """The model that overrides of `curator.llm` name, with the rubric of `curator.prompts`."""
    overrides = parse(["curator=reflecting", *texts])
    for override in overrides[1:]:
        if not override.path.startswith(("curator.llm", "curator.prompts")):
            raise UsageError(f"{override.text}: --judge {MODEL_JUDGE} takes curator.llm=..., curator.llm.KEY=... and "
                             "curator.prompts=FOLDER, and nothing else")  # fmt: skip
    node: Mapping[str, Any] = composer().root(overrides)["curator"]
    model: TextModel = build("llm", node["llm"], COMMAND_LINE)
    check_writes(model, "curator.llm")
    rubric = load_prompt(_ROLE, node["prompts"], _DATA)
    settings = f"{sorted(model.settings.items())}{rubric.digest}"
    digest = hashlib.sha256(settings.encode()).hexdigest()
    by = "" if node["prompts"] is None else f" by {Path(node['prompts']).resolve().name}"
    name = f"{model.settings['model']}{by}"
    return NamedJudge(name, digest, partial(_ask_model, placed(model, run.path), rubric))


def _ask_model(model: TextModel, rubric: PromptFile, pairs: Sequence[Pair], given: TakesLabel) -> None:
    prompts = [_prompt(rubric, pair) for pair in pairs]

    def done(answers: arrivals.CompletionsByPlace) -> None:
        labelled = {place: completion for place, completion in answers.items() if completion.end == "ok"}
        for place, completion in labelled.items():
            given(place, str(completion.value["label"]))
        for place in answers.keys() - labelled.keys():
            end, reason = answers[place].end, answers[place].reason
            raise UsageError(
                f"{_row(pairs, place)}: no label came ({end}: {reason or end}). A recording repeats this; another "
                "curator.llm.folder asks anew"
            )

    arrivals.ask_each(model, prompts, done)


def _prompt(rubric: PromptFile, pair: Pair) -> Prompt:
    digest, message, answer = pair
    return rubric.ask({"message": message, "answer": answer}, digest >> 1, _TOKENS, recorded=True)
