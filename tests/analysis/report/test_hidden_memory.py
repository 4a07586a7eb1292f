"""Classes in a world that judges words, where nobody can tell what they answer from memory: what readers see."""

import csv
import json
import re
from html import unescape
from pathlib import Path

import pytest

import skg_bench
from skg_bench.analysis.report.several_runs import runs_html
from skg_bench.analysis.summary import read_summary
from skg_bench.analysis.summary.describe import REUSE
from skg_bench.runfolder.hidden_hits import HIT_METRICS
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call

CLASSES = '''
class Mine:
    """Puts all earlier messages into its prompt, so that it answers from nothing else."""
    def __init__(self): self.earlier = []
    def answer(self, user, time, message, model):
        self.earlier.append(message)
        return model("\\n".join(self.earlier))

class Cache:
    def __init__(self): self.words = {}
    def answer(self, user, time, message, model):
        if message not in self.words: self.words[message] = model(message)
        return self.words[message]

class Silent:
    def answer(self, user, time, message, model): return ""
'''
SIZE = ["simulator=told", "llm=in_words", "users=6", "weeks=2", "workers=1", "simulator.asks_per_week=15"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("hidden")
    (folder / "my.py").write_text(CLASSES, "utf-8")

    def playing(name: str, *more: str) -> list[str]:
        return ["assistant=python", f"assistant.file={folder}/my.py:{name}", "assistant.controls=false", *more]

    table = {
        "never": ["policy=never", "curator=none"],
        "mine": playing("Mine"),
        "cache": playing("Cache"),
        "silent": playing("Silent"),
        "frozen": playing("Mine", "freeze=all", "freeze_at=20"),
        "book": ["curator=everything", "policy.threshold=0.6"],
        "everything": ["assistant=recall"],
    }
    words = [*SIZE, f"arms={json.dumps(table)}", "reference=never", "learner=mine", "contrasts=[]"]
    return skg_bench.run([*words, f"out={folder / 'run'}"], progress=False)


def asked(run: Run, arm: str) -> tuple[int, int]:
    """Turns at which an arm asked its model, and all of its turns."""
    serving = run.turns(arm, ["serving"])["serving"].to_pylist()
    return serving.count("llm"), len(serving)


def test_no_sentence_says_what_a_class_answers_from_memory(run: Run) -> None:
    """Once, a class whose prompts hold all earlier messages had `never answered from memory`."""
    sentences = skg_bench.explain(run)
    (mine,) = [text for text in sentences if text.startswith("mine asked its model")]
    n = asked(run, "mine")[1]
    begins = f"mine asked its model at {n:,} of {n:,} turns; how much of its prompts came from memory"
    assert mine.startswith(f"{begins} cannot be seen here. Of all its answers ")
    assert mine.endswith(" of never's.")
    assert not any(re.match(r"(mine|cache|silent|frozen) .*answered.* from memory", text) for text in sentences)
    assert f"silent said nothing at {n:,} of {n:,} turns: its words were empty." in sentences
    assert [text for text in sentences if " said nothing at " in text] == [sentences[-1]]


def test_the_page_says_how_often_each_class_asked_its_model(run: Run) -> None:
    page = unescape(re.sub(r"<[^>]+>", "", (run.path / "report.html").read_text("utf-8")))
    some, n = asked(run, "cache")
    assert 0 < some < n
    assert f"cache asked its model at {some:,} of {n:,} turns; how much of its prompts and answers came from" in page
    assert f"silent asked its model at none of {n:,} turns; how much of its answers came from memory" in page
    assert f"silent said nothing at {n:,} of {n:,} turns" in page
    assert "never never answered from memory" in page
    assert re.search(r"book answered [\d.]+\u202f% \(.*?\) of messages from memory", page)
    assert re.search(r"everything answered [\d.]+\u202f% \(.*?\) of messages from memory", page)
    assert not re.search(r"Answers of (mine|cache|silent|frozen) from memory pay", page)


def test_figures_of_hits_are_left_out_for_classes_alone(run: Run) -> None:
    """Trackers send what stands in `summary.json`, so it has none either."""
    shown = read_summary(run)
    metrics = [*shown.arms["book"]]
    assert {*metrics} | REUSE.keys() >= HIT_METRICS
    for arm, figures in shown.arms.items():
        hidden = arm not in ("never", "book", "everything")
        known = {name: figure.mean is not None for name, figure in figures.items()}
        gaps = shown.differences.get(arm, {})
        if hidden:
            assert not any(known.get(name, False) for name in HIT_METRICS), arm
            assert not gaps.keys() & HIT_METRICS, arm
            assert known["correct"], arm
        else:
            assert known["hit_rate"], arm
    assert "hit_rate" in shown.differences["book"]
    frozen = shown.effects["frozen"].metrics
    assert "utility" in frozen
    assert not frozen.keys() & HIT_METRICS
    with (run.path / "curves.csv").open(newline="") as file:
        drawn = {(row["arm"], row["metric"]) for row in csv.DictReader(file)}
    assert {("mine", "correct"), ("book", "hit_rate"), ("book", "correct")} <= drawn
    assert not {("mine", metric) for metric in HIT_METRICS} & drawn
    hits, right = repr(skg_bench.plot(run, "hit_rate", "correct", arms=["book", "mine"])).splitlines()
    assert ("mine" in hits, "book" in hits, "mine" in right) == (False, True, True)


def test_commands_show_dashes_in_the_place_of_hits(run: Run) -> None:
    _, out, _ = call("compare", str(run.path), "--metric", "hit_rate", "--metric", "utility")
    hits, utility = out.partition("\nutility\n")[::2]
    for arm in ("mine", "cache", "silent"):
        (row,) = [line.split() for line in hits.splitlines() if line.startswith(f"{arm} ")]
        assert row[:5] == [arm, "-", "-", "not", "measured"]
        assert next(line for line in utility.splitlines() if line.startswith(f"{arm} ")).split()[1] != "-"
    assert re.search(r"(?m)^book +\+\d", hits)
    pays = utility.partition("answers from memory: they pay")[2]
    assert re.search(r"(?m)^book ", pays)
    assert not re.search(r"(?m)^(mine|cache|silent|frozen) ", pays.partition("at matched error rate")[0])


def test_a_comparison_in_python_has_no_hits_that_nobody_can_tell(run: Run) -> None:
    compared = skg_bench.compare(run)
    table = compared.to_pandas()
    of_hits = {*table[table.metric.isin(HIT_METRICS)].arm}
    assert ("book" in of_hits, of_hits & {"mine", "cache", "silent", "frozen"}) == (True, set())
    assert {*table.arm} >= {"mine", "cache", "silent", "frozen", "book"}
    assert not {*compared.break_even, *(match.arm for match in compared.matched)} & {"mine", "cache", "silent"}
    assert not {*skg_bench.compare(run, reference="cache").to_pandas().metric} & HIT_METRICS


def test_a_figure_has_no_mark_for_hits_that_nobody_can_tell(run: Run, tmp_path: Path) -> None:
    call("compare", str(run.path), "--figure", str(tmp_path / "all.svg"))
    panels = (tmp_path / "all.svg").read_text("utf-8").split('class="title"')[2:]
    marks = {re.findall(">(.*?)</text>", panel)[0]: panel.count('class="dot"') for panel in panels}
    assert (marks["utility"], marks["right answers"]) == (6, 6)
    assert marks["hit rate"] == 2


def test_nobody_is_compared_with_hits_that_nobody_can_tell(run: Run) -> None:
    _, out, _ = call("compare", str(run.path), "--reference", "cache", "--metric", "hit_rate")
    (row,) = [line for line in out.splitlines() if line.startswith("book ")][:1]
    assert re.match(r"book +- +- +not measured +- +\d+\.\d % +- ", row)
    assert "at matched error rate" not in out


def test_pages_of_several_runs_have_dashes_too(run: Run, tmp_path: Path) -> None:
    again = skg_bench.run([*SIZE, "arms={never: [policy=never, curator=none], mine: [assistant=recall]}",
                           "reference=never", "learner=mine", f"out={tmp_path / 'again'}"], progress=False)  # fmt: skip
    page = runs_html([run, again])
    hits, right = (cells_of(page, metric, "mine") for metric in ("hit_rate", "correct"))
    assert hits[0].startswith("–")
    assert all(re.match(r"[\d.]+\u202f%", cell) for cell in (hits[1], *right))


def cells_of(page: str, metric: str, arm: str) -> list[str]:
    """Texts of an arm's row in the table of a metric."""
    table = page.partition(f'data-name="{metric}"')[2].partition("</table>")[0]
    row = table.partition(f'<th scope="row">{arm}</th>')[2].partition("</tr>")[0]
    return [re.sub(r"<[^>]+>", "", cell) for cell in row.split("<td>")[1:]]
