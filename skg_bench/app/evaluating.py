"""`skg_bench.evaluate`: from a class of a notebook, of a file or of a package to a verdict."""

import ast
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skg_bench.analysis.report import verdict
from skg_bench.analysis.report.hidden_memory import silence_sentences
from skg_bench.analysis.report.hit_cosines import cosine_sentences
from skg_bench.analysis.report.outside_arms import outside_sentences
from skg_bench.analysis.summary import read_summary
from skg_bench.app import api
from skg_bench.app.overrides import check_override_texts, override_value
from skg_bench.core.errors import UsageError, brief
from skg_bench.core.foreign import text_of
from skg_bench.core.package import edited_files
from skg_bench.core.text import printable, wrapped

if TYPE_CHECKING:
    from skg_bench.engine.execute import Progress
    from skg_bench.runfolder.run import Run

_REFERENCE = "never"
_SIZE = ("users=40", "weeks=8")  # seconds for a class that answers at once


@dataclass(frozen=True)
class Evaluation:
    """A finished run of an assistant beside the model alone, and what it shows."""

    run: "Run"
    arm: str
    sentences: Sequence[str]  # leaks and what nobody can judge first, then the verdict

    @property
    def verdict(self) -> str:
        """The first sentence."""
        return self.sentences[0]

    @property
    def page(self) -> str:
        """Path of the page."""
        return str(self.run.path / "report.html")

    def compare(self) -> Any:
        """Differences of all metrics against the model alone, with intervals."""
        return api.compare(self.run, reference=_REFERENCE)

    def __repr__(self) -> str:
        wrong = (
            f"next: skg-bench compare {shlex.quote(str(self.run.path))} --flips 5  # turns that it gets wrong, and why"
        )
        lines = [*(wrapped(f"* {text}", 100) for text in self.sentences), f"page: {self.page}", wrong]
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(printable(text))}</li>" for text in self.sentences)
        return f"<ul>{items}</ul><p>page: {escape(printable(self.page))}</p>"


@brief
def evaluate(
    assistant: "type | str",
    overrides: Sequence[str] = (),
    *,
    parameters: Mapping[str, Any] | None = None,
    arms: Mapping[str, Sequence[str]] | None = None,
    progress: "Progress | bool | None" = None,
) -> Evaluation:
    """Play a class beside the model alone, and say what it is worth to its users.

    `assistant` is a class with `answer(user, time, message, model) -> str` (assistant/python/contract.py), or its name:
    `my.py:Class`, `package.module.Class`. `parameters` are its keywords. `overrides` are those of a run; default: 40
    users, 8 weeks. `arms` are further ones of the same class: `{"frozen": ["freeze=all", "freeze_at=60"]}`.

    >>> evaluate(ExactCache, ["users=12", "weeks=4"])

    Raises UsageError for a class that cannot be played, and for bad overrides.
    """
    name, chosen = _chosen(assistant)
    check_override_texts(overrides)
    _check_names(name, arms or {}, overrides)
    mine = ["assistant=python", chosen]
    if parameters:
        mine.append(f"assistant.parameters={override_value(parameters)}")
    more = {arm: _deepened(mine, texts) for arm, texts in (arms or {}).items()}
    table = {_REFERENCE: ["policy=never", "curator=none"], name: mine, **more}
    question = f"question={override_value(f'Is {name} better for its users than the model alone?')}"
    words = [
        *_SIZE,
        question,
        f"arms={json.dumps(table, ensure_ascii=False)}",
        f"reference={_REFERENCE}",
        f"learner={override_value(name)}",
        "contrasts=[]",
    ]
    alone = ["workers=1"] if chosen.startswith('assistant.target="__main__') else []
    edited_files()  # of an earlier run
    run = api.run([*words, *alone, *overrides], progress)
    summary = read_summary(run)
    of_arms = [sentence for arm, sentence in verdict.arm_sentences(summary) if arm in (name, *more)]
    lines = [*outside_sentences(run, _REFERENCE), *of_arms, *verdict.finding_sentences(summary, name)]
    lines += [*verdict.cautions(summary), *silence_sentences(run), *cosine_sentences(run)]
    return Evaluation(run, name, [*_edited(), *(sentence.text for sentence in lines)])


def _edited() -> list[str]:
    """A sentence on modules that were edited and are played as they were, if there are such."""
    if not (files := edited_files()):
        return []
    remedy = "Load it again (importlib.reload), or start Python anew"
    names = ", ".join(map(str, files))
    return [f"{names}: edited since this Python process imported it, and played as it was before. {remedy}."]


def _check_names(name: str, arms: Mapping[str, Sequence[str]], overrides: Sequence[str]) -> None:
    """Raises UsageError where the model alone, with which the class is compared, would be something else."""
    if name == _REFERENCE:
        raise UsageError(
            f"the class is called {name}, as the model alone is, with which it is compared; give it another name"
        )
    for taken in (_REFERENCE, name):
        if taken in arms:
            what = "the model alone" if taken == _REFERENCE else "the class"
            raise UsageError(f"arms={{{taken!r}: ...}}: {what} is called {taken} already; give this arm another name")
    for text in overrides:
        if text.partition("=")[0].lstrip("+~") in ("reference", "arms", f"arms.{_REFERENCE}", f"arms.{name}"):
            raise UsageError(
                f"{text}: evaluate compares the class with the model alone; give further arms of the class by "
                "arms={...}, and play anything else by skg_bench.run and skg_bench.compare"
            )


def _deepened(mine: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Overrides of a further arm, which plays the same class unless it says otherwise."""
    return list(texts) if any(text.startswith("assistant=") for text in texts) else [*mine, *texts]


def _chosen(assistant: "type | str") -> tuple[str, str]:
    """Name of the arm, and the override that names the class.

    Raises UsageError for what is no class, and for one that has no name outside of a function.
    """
    if isinstance(assistant, str):
        key = "file" if ":" in assistant and assistant.rpartition(":")[0].endswith(".py") else "target"
        return assistant.replace(":", ".").rpartition(".")[2], f"assistant.{key}={override_value(assistant)}"
    if not isinstance(assistant, type):
        raise UsageError(
            f"evaluate was given a {type(assistant).__qualname__}; valid is a class, of which each user has an "
            "object, such as evaluate(ExactCache), or a text: evaluate('my.py:ExactCache')"
        )
    if "<locals>" in assistant.__qualname__:
        raise UsageError(
            f"{assistant.__qualname__} is defined inside of a function, so that its source text cannot be found again; "
            "define it in a cell of its own, or in a file: evaluate('my.py:ExactCache')"
        )
    if (script := _guarded_script(assistant)) is not None:  # another command can play it again, too
        return assistant.__name__, f"assistant.file={override_value(f'{script}:{assistant.__name__}')}"
    return assistant.__name__, f"assistant.target={override_value(f'{assistant.__module__}:{assistant.__qualname__}')}"


def _guarded_script(assistant: type) -> Path | None:
    """The script that defines the class at its top and runs; None: there is none, or it would run once more if it were
    read again, as nothing in it asks for `__name__`.
    """
    file = vars(sys.modules["__main__"]).get("__file__")
    if assistant.__module__ != "__main__" or file is None or not Path(file).is_file():
        return None
    script = Path(file).resolve()
    body = ast.parse(text_of(script)).body
    asks = any(isinstance(each, ast.If) and "__name__" in ast.unparse(each.test) for each in body)
    defines = any(isinstance(each, ast.ClassDef) and each.name == assistant.__qualname__ for each in body)
    if not (asks and defines):
        return None
    return script.relative_to(here) if script.is_relative_to(here := Path.cwd()) else script
