"""From a class to a verdict: in a notebook, and in a file of a repository of its own."""

import runpy
import subprocess
import sys
from pathlib import Path
from traceback import extract_tb
from typing import Any

import pytest

import skg_bench
from skg_bench.analysis.report.outside_arms import outside_sentences
from skg_bench.core.errors import UsageError
from tests.assistant.plugin import run
from tests.assistant.python.test_objects import FILE, NEVER, arms, playing, unchecked

NOTEBOOK = """
import skg_bench

PREFIX = "As I said: "


def worded(text):
    return PREFIX + text


class ExactCache:
    def __init__(self):
        self.memory = {}

    def answer(self, user, time, message, model):
        if message not in self.memory:
            self.memory[message] = model(message)
        return worded(self.memory[message])


if True:
    frozen = {"frozen": ["freeze=all", "freeze_at=30"], "fork": ["fork=ExactCache@30"]}
    world = ["users=3", "weeks=1", "simulator.volume_spread=0.2", "simulator.active_low=1"]
    print(skg_bench.evaluate(ExactCache, world, arms=frozen))
    try:
        skg_bench.evaluate(ExactCache, [*world, "workers=2", "cohort=2", "seed=1"])
    except skg_bench.UsageError as error:
        print("refused:", error)
"""


def finished(folder: Path) -> list[Path]:
    """Folders of runs that have their tables."""
    return [file.parent for file in (folder / "runs").glob("*/summary.json")]


def test_a_class_of_a_notebook_has_a_verdict_and_a_learning_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notebook.py"
    file.write_text(NOTEBOOK, "utf-8")
    made = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, check=True)
    said = " ".join(made.stdout.split())
    assert "ExactCache serves its users" in said or "Not shown that ExactCache" in said
    assert "ExactCache learned after turn 30 (against frozen)" in said
    assert "refused: __main__:ExactCache is a class of a notebook or script" in said
    (folder,) = finished(tmp_path)
    before = skg_bench.Run(folder).manifest["data"]["source.ExactCache"]
    smaller = NOTEBOOK.partition("    try:")[0].replace("world, arms=frozen", '["users=1", "weeks=1"]')
    smaller = smaller.replace("if True:", 'if __name__ == "__main__":')  # read again, it would not run once more
    file.write_text(smaller.replace("As I said", "As I told you"), "utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(file), run_name="__main__")
    texts = {skg_bench.Run(each).manifest["data"]["source.ExactCache"] for each in finished(tmp_path)}
    assert len(texts) == 2
    assert before in texts
    (guarded,) = (run for each in finished(tmp_path) if (run := skg_bench.Run(each)).path != folder)
    assert guarded.manifest["compositions"]["ExactCache"]["assistant"]["file"] == "notebook.py:ExactCache"


def test_errors_of_a_script_are_short_and_name_the_line_of_a_class(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="seeed") as wrong:
        skg_bench.run(["seeed=1"])
    assert len(extract_tb(wrong.value.__traceback__)) == 2  # this file, and where it is passed on
    with pytest.raises(UsageError, match=r"it raised ValueError: the disk is full \(.*objects.py:\d+\)") as raised:
        skg_bench.evaluate(f"{FILE}:Failing", ["users=2", f"out={tmp_path / 'run'}"])
    assert (len(extract_tb(raised.value.__traceback__)), raised.value.__cause__) == (2, None)


KERNEL = """
import linecache, sys
from skg_bench.assistant.python.source import ClassSource

def cell(text):
    name = f"/tmp/ipykernel_{len(linecache.cache)}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), sys.modules["__main__"].__dict__)

del __file__
"""
CELLS = """
cell('''PREFIX = "As I said: "
class Base:
    def answer(self, user, time, message, model):
        return PREFIX + model(message)
''')
cell('''class Mine(Base):
    def save(self): return b""
    def load(self, user, data): pass
''')
first = ClassSource.of("__main__:Mine", None, {}).digest()
cell("PREFIX = 'Again: '")
print(first == ClassSource.of("__main__:Mine", None, {}).digest(), len(first))
"""


def test_classes_of_cells_have_their_text_though_a_kernel_has_no_file(tmp_path: Path) -> None:
    """Once, `evaluate` of the README's class was refused in each Jupyter kernel."""
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL + CELLS, "utf-8")
    made = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (made.stdout.split(), made.stderr) == (["False", "64"], "")


KEPT = """
def digest():
    return ClassSource.of("__main__:It", None, {}).digest()

for before, text in (
    ("LIMIT = {}", "class It:\\n    limit = LIMIT"),
    ("LIMIT = {}", "class It:\\n    def __init__(self, limit=LIMIT): pass"),
    ("LIMIT = {}", "class It:\\n    def save(self, *, limit=LIMIT): pass\\n    def load(self, user, data): pass"),
    ("LIMIT = {}", "from dataclasses import dataclass, field\\n@dataclass\\nclass It:\\n    limit: int = LIMIT\\n"
                   "    memory: dict = field(default_factory=dict)"),
    ("def made(n):\\n    def rule(): return n\\n    return rule\\nrule = made({})",
     "class It:\\n    def held(self): rule()"),
    ("class Base:\\n    def held(self): return {}", "class It(Base):\\n    def save(self): return b''\\n"
                                                    "    def load(self, user, data): return super()"),
    ("def often(f):\\n    def more(*a): return f(*a) or {}\\n    return more", "class It:\\n    @often\\n"
                                                                             "    def held(self): pass"),
):
    body = text + "\\n    def answer(self, user, time, message, model): return model(message)\\n"
    found = []
    for number in (1, 2, 1):
        cell(before.format(number))
        cell(body)
        found.append(digest())
    print(found[0] == found[2] != found[1])
"""


def test_a_class_of_a_cell_counts_with_what_it_got_when_it_was_defined(tmp_path: Path) -> None:
    """Once, a cell that was run again with another LIMIT got the finished run of the one before."""
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL + KEPT, "utf-8")
    made = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (made.stdout.split(), made.stderr) == (["True"] * 7, "")


def test_a_class_inside_of_a_function_is_refused_by_name() -> None:
    class Inner:
        def answer(self) -> None: ...

    with pytest.raises(skg_bench.UsageError, match="Inner is defined inside of a function"):
        skg_bench.evaluate(Inner)
    with pytest.raises(skg_bench.UsageError, match="evaluate was given a int"):
        skg_bench.evaluate(3)  # type: ignore[arg-type]


@pytest.mark.usefixtures("bare")
def test_the_manifest_names_the_commit_of_the_files_own_repository(tmp_path: Path) -> None:
    file = tmp_path / "repo" / "my.py"
    file.parent.mkdir()
    file.write_text(FILE.read_text("utf-8"), "utf-8")
    git = ["git", "-C", str(file.parent), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "my.py"], ["commit", "-qm", "Mine"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    table = arms(never=NEVER, it=["assistant=python", f"assistant.file={file}:PassOn"])
    made = run(tmp_path / "clean", table, "reference=never", "users=2", "weeks=1")
    assert made.manifest["packages"]["my.py"] == {"version": None, "commit": head, "dirty": None}
    file.write_text(f"# changed\n{FILE.read_text('utf-8')}", "utf-8")
    other = run(tmp_path / "dirty", table, "reference=never", "users=2", "weeks=1")
    assert other.manifest["packages"]["my.py"]["dirty"]


@pytest.mark.usefixtures("bare")
def test_words_of_a_prompt_that_no_model_read_are_told(tmp_path: Path) -> None:
    table = arms(
        never=NEVER, pass_on=unchecked("PassOn"), dict=unchecked("ExactCache"), recalling=unchecked("Recalling"),
        diary=unchecked("Diary"), twice=unchecked("Twice"),
    )  # fmt: skip
    made = run(tmp_path / "run", table, "reference=never")
    (said,) = [sentence for sentence in outside_sentences(made, "never") if "paid for more words" in sentence.text]
    paid = [made.turns(arm, ["tokens_in"])["tokens_in"].to_numpy() for arm in ("diary", "never")]
    n = len(paid[0])
    assert said.text.startswith(
        f"diary paid for more words than the model alone at {(paid[0] > paid[1]).sum():,} of {n:,}"
    )
    assert (paid[0] > paid[1]).sum() > n / 2
    assert said.tone == "caution"
    (twice,) = [sentence for sentence in outside_sentences(made, "never") if "more than once" in sentence.text]
    assert twice.text.startswith(f"twice asked its model more than once at {n:,} of {n:,} turns, and paid for each")
    assert not any("paid for more words" in sentence.text for sentence in outside_sentences(made, "dict"))
    assert not any("paid for more words" in sentence.text for sentence in outside_sentences(made, None))


def test_answers_without_references_say_what_to_return(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(
        "class Bare:\n    def answer(self, user, time, message, model):\n        return model(message).split('[')[0]\n"
    )
    bare = ["assistant=python", f"assistant.file={tmp_path}/bare.py:Bare", "assistant.controls=false"]
    made = run(tmp_path / "run", arms(never=NEVER, bare=bare), "reference=never")
    said = skg_bench.explain(made)
    assert any(text.startswith("Nobody can judge ") for text in said)
    assert any(text.endswith("Let it return the [answer ...] at the end of its model's words.") for text in said)
    assert any("How many of all its answers were wrong is not known." in text for text in said)


def test_leaks_come_first_and_what_nobody_can_judge_has_bounds(tmp_path: Path) -> None:
    table = arms(
        never=NEVER, wordless=playing("Wordless"), dict=playing("ExactCache"),
        leaky=playing("ForAll", "assistant.controls=false"),
    )  # fmt: skip
    made = run(tmp_path / "run", table, "reference=never", "cohort=3", "simulator.corpus=builtin_120")
    first, second, third, *rest = [sentence.text for sentence in outside_sentences(made, "never")]
    turns = made.turns("leaky", ["serving"])["serving"].to_pylist()
    assert first.startswith(f"leaky LEAKS: {turns.count('leaked'):,} of {len(turns):,} answers")
    assert turns.count("leaked") > 3
    assert second.startswith("Nobody can judge ")
    assert "if all of them were right: " in second
    assert "if all of them were wrong: -0." in second
    assert third.startswith("leaky was not checked for memory outside of its state")
    assert rest == []
    assert "LEAKS" in (made.path / "report.html").read_text("utf-8")


PARAMETERS = {
    "most": 3, "least": 1e-07, "said": 'a "b" c\\n d\\', "all": True, "none": None, "number": "12", "empty": "",
    "deep": {"list": [1, "two", {"sign": "it's, {so}: [ok]"}], "nothing": {}, "line": "Zoë\nand 😀"},
}  # fmt: skip


def test_parameters_are_the_keywords_of_the_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "class Mine:\n    def __init__(self, **given):\n        self.given = given\n\n"
        "    def answer(self, user, time, message, model):\n        return repr(sorted(self.given))\n"
    )
    made = skg_bench.evaluate("mine.py:Mine", ["users=1", "weeks=1"], parameters=PARAMETERS, progress=False)
    assert made.run.manifest["compositions"]["Mine"]["assistant"]["parameters"] == PARAMETERS
    with pytest.raises(
        UsageError, match=r"arm 'Mine': assistant\.parameters\.api_key is named as a secret is"
    ) as error:
        skg_bench.evaluate("mine.py:Mine", parameters={"api_key": "hunter2-and-more"})
    assert "hunter2" not in str(error.value)


EDITED = """
import importlib, sys
from pathlib import Path
import skg_bench
from skg_bench.assistant.python.source import ClassSource

sys.path.insert(0, ".")
rule, mine = Path("rule_of_mine.py"), Path("mine_of_rule.py")
rule.write_text("LIMIT = 1")
mine.write_text("from rule_of_mine import LIMIT" + chr(10) + {body!r})
by_file, by_name = ({{"file": "mine_of_rule.py:It"}}, {{"target": "mine_of_rule:It"}})

def found(**given):
    source = ClassSource.of(given.get("target"), given.get("file"), {{}})
    return source.digest(), source.kind().answer.__globals__["LIMIT"]

def first_words():
    return skg_bench.evaluate("mine_of_rule.py:It", ["users=2", "weeks=1"]).sentences[0]

before, said = [found(**each) for each in (by_file, by_name)], first_words()
rule.write_text("LIMIT = 100")
print([found(**each) for each in (by_file, by_name)] == before, "edited" in said, str(rule) in first_words())
for name in ("rule_of_mine", "mine_of_rule"):
    importlib.reload(sys.modules[name])
print([new[0] == old[0] for new, old in zip([found(**each) for each in (by_file, by_name)], before)])
print([found(**each)[1] for each in (by_file, by_name)], "edited" in first_words())
"""


def test_a_module_counts_as_it_was_loaded_last_and_one_that_was_edited_since_is_named(tmp_path: Path) -> None:
    """Once, a notebook that loads modules again, as they are edited, was given the finished run of the one before."""
    (tmp_path / "kernel.py").write_text(EDITED.format(body=BODY.format("It")), "utf-8")
    made = subprocess.run([sys.executable, "kernel.py"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert made.stdout.splitlines() == ["True False True", "[False, False]", "[100, 100] False"], made.stderr


BODY = "class {}:\n    def answer(self, user, time, message, model):\n        return model(message)\n"
SMALL = ["users=2", "weeks=1"]


@pytest.mark.parametrize(
    ("name", "more", "reason"),
    [
        ("never", {}, "the class is called never, as the model alone is, with which it is compared"),
        ("It", {"arms": {"never": ["freeze=all", "freeze_at=9"]}}, "the model alone is called never already"),
        ("It", {"arms": {"It": ["freeze=all", "freeze_at=9"]}}, "the class is called It already"),
        ("It", {"overrides": ["reference=It"]}, "reference=It: evaluate compares the class with the model alone"),
        ("It", {"overrides": ["arms.never=[policy=always]"]}, "evaluate compares the class with the model alone"),
        ("It", {"overrides": "users=2"}, r"given as 'users=2'; valid is a list of texts, such as \['users=2'\]"),
        ("Größe", {}, r"arm 'Größe': its name must be a name of letters, digits, - and _"),
        ("It", {"parameters": {"days": float("inf")}}, r"arm 'It': assistant.parameters.days=inf must be a finite"),
    ],
)
def test_what_would_not_be_held_against_the_model_alone_is_refused(
    tmp_path: Path, name: str, more: dict[str, Any], reason: str
) -> None:
    """Once, a class called `never` was compared with nobody, and such arms took the place of the model or the class."""
    (tmp_path / "my.py").write_text(BODY.format(name), "utf-8")
    with pytest.raises(UsageError, match=reason):
        skg_bench.evaluate(f"{tmp_path / 'my.py'}:{name}", **{"overrides": SMALL, **more})
    assert not finished(tmp_path)


def test_a_class_is_refused_where_the_world_reads_no_words(tmp_path: Path) -> None:
    """Once, its controls said that this was a fault of skg_bench, and without them the page was a traceback."""
    (tmp_path / "my.py").write_text(BODY.format("It"), "utf-8")
    arm = f"+arms.it=[assistant=python,assistant.file={tmp_path / 'my.py'}:It]"
    with pytest.raises(UsageError, match=r"arm 'it' says words of its own \(.*my.py:It\), and this world reads what"):
        skg_bench.run(["experiment=guardian", *SMALL, arm, f"out={tmp_path / 'run'}"])


def test_overrides_of_a_script_are_a_list() -> None:
    with pytest.raises(UsageError, match="overrides were given as 'profile=smoke'; valid is a list of texts"):
        skg_bench.run("profile=smoke")
