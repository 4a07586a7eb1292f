"""Classes that drop the references of their answers: nobody can tell what they answer from memory."""

import json
from pathlib import Path

import pytest

import skg_bench
from skg_bench.analysis.summary import read_summary
from skg_bench.runfolder.hidden_hits import HIT_METRICS
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call

CLASS = '''
class Dropping:
    """Gives an answer again without its reference."""
    def __init__(self): self.words = {}
    def answer(self, user, time, message, model):
        if message in self.words: return self.words[message].split("[")[0]
        self.words[message] = model(message)
        return self.words[message]

class Keeping(Dropping):
    def answer(self, user, time, message, model):
        super().answer(user, time, message, model)
        return self.words[message]
'''


def played(folder: Path, *overrides: str) -> Run:
    """A run of both classes beside the model alone."""
    (folder / "my.py").write_text(CLASS, "utf-8")
    table = {"never": ["policy=never", "curator=none"]}
    for name in ("Dropping", "Keeping"):
        node = ["assistant=python", f"assistant.file={folder}/my.py:{name}", "assistant.controls=false"]
        table[name.lower()] = node
    words = [f"arms={json.dumps(table)}", "reference=never", "learner=dropping", "contrasts=[]", "workers=1"]
    return skg_bench.run([*words, *overrides, f"out={folder / 'run'}"], progress=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return played(tmp_path_factory.mktemp("unmarked"), "users=4", "weeks=3")


def unmarked(run: Run) -> int:
    """Turns at which the class did not ask its model: it repeats itself there."""
    tokens: list[int] = run.turns("dropping", ["tokens_in"])["tokens_in"].to_pylist()
    return tokens.count(0)


def test_answers_that_lost_their_reference_are_not_said_to_be_no_memory(run: Run) -> None:
    """Once, such a cache had `never answered from memory`, and a hit rate of 0 % *equal for every user*."""
    repeated, turns = unmarked(run), len(run.turns("dropping", ["turn"]))
    assert 0 < repeated < turns
    sentences = skg_bench.explain(run)
    said = [text for text in sentences if text.startswith("dropping asked its model at")]
    assert f"{turns - repeated:,} of {turns:,} turns; how much of its prompts and answers came from memory" in said[0]
    assert not any("dropping never answered" in text for text in sentences)


def test_no_figure_counts_them_as_no_hits(run: Run) -> None:
    shown = read_summary(run)
    known = {name for name in HIT_METRICS if (figure := shown.arms["dropping"].get(name)) and figure.mean is not None}
    assert not known
    assert not shown.differences["dropping"].keys() & HIT_METRICS
    assert shown.arms["keeping"]["hit_rate"].mean
    assert "hit_rate" in shown.differences["keeping"]
    code, out, _ = call("compare", str(run.path), "--metric", "hit_rate")
    (row,) = [line for line in out.splitlines() if line.startswith("dropping ") and "not measured" in line]
    assert (code, "equal" in row) == (0, False)


def test_a_comparison_says_why_it_has_no_verdict(run: Run) -> None:
    """Once, `compare` said `worse 0; better 0` of such an arm, and not what was left out."""
    repeated, turns = unmarked(run), len(run.turns("dropping", ["turn"]))
    about = f"Nobody can judge {repeated:,} of {turns:,} answers of dropping"
    assert [gap.partition(" (")[0] for gap in skg_bench.compare(run).gaps] == [about]
    _, out, _ = call("compare", str(run.path))
    assert f"  {about} (" in out
    assert "no reference.\n" in out


def test_a_reference_that_nobody_can_judge_is_named(tmp_path: Path) -> None:
    run = played(tmp_path, "users=2", "weeks=3", "reference=dropping", "learner=keeping")
    (said,) = [text for text in skg_bench.explain(run) if text.startswith("Nobody can judge")]
    assert said.endswith("So no arm is compared with it by what answers are worth.")


def test_of_a_log_it_is_said_at_how_many_turns(tmp_path: Path) -> None:
    rows = [f"{user},2026-01-{day:02}T09:0{user},{day % 3} open?,yes" for day in range(1, 13) for user in range(4)]
    (tmp_path / "log.csv").write_text("\n".join(["user,time,message,answer", *rows]), "utf-8")
    log = [f"simulator.path={tmp_path / 'log.csv'}", "simulator=recorded", "embedder=hashing", "users=null"]
    run = played(tmp_path, *log, "weeks=null")
    repeated, turns = unmarked(run), len(run.turns("dropping", ["turn"]))
    assert (repeated, turns) == (36, 48)
    sentences = skg_bench.explain(run)
    (said,) = [text for text in sentences if text.startswith("dropping did not ask its model")]
    assert f"at {repeated} of {turns} turns" in said
    assert "dropping would have given no stored answer that can be seen." in sentences
    assert not any(text.startswith("keeping did not ask") for text in sentences)
