"""Assistants of somebody else over a log of one's own: what is said of them, and what they leave in the run folder."""

from pathlib import Path

import pytest

import skg_bench
from skg_bench.core.errors import UsageError
from skg_bench.engine import execute
from skg_bench.simulator.answers import corpus
from tests.simulator.logs.logs import turn, write_csv

MORE = ("embedder=hashing", "policy.threshold=0.4", "~arms.everything", "~arms.exact_match", "~arms.skg_rated")


def test_an_arm_that_prompts_is_not_said_to_give_stored_answers(tmp_path: Path) -> None:
    """Once, it was said of `assistant=recall` to how many requests it would have given a stored answer."""
    known = corpus.load_corpus()
    days = [f"2024-03-{1 + i // 4:02d}T{8 + i % 4:02d}:00:00" for i in range(24)]
    rows = [turn(f"u{i % 3}", day, known.messages[0], answer="here") for i, day in enumerate(days)]
    path = write_csv(tmp_path / "log.csv", rows)
    given = ["simulator=recorded", f"simulator.path={path}", "simulator.columns={answer: answer}", *MORE]
    run = skg_bench.run([*given, "+arms.recall=[assistant=recall]", f"out={tmp_path / 'run'}"])
    of_arm = {arm: [text for text in skg_bench.explain(run) if text.startswith(arm)] for arm in ("recall", "skg")}
    (text,) = of_arm["recall"]
    assert text.startswith("recall would have put earlier answers into the model's prompt at 87.5 % of requests.")
    assert any("skg would have given a stored answer, right or wrong" in text for text in of_arm["skg"])
    assert not any("served answers of recall" in text for text in skg_bench.explain(run))


def test_a_message_in_which_a_reference_stands_is_no_leak_of_who_passes_it_on(tmp_path: Path) -> None:
    """Once, a class that answered such a message, or kept it in its prompts, was said to leak."""
    texts = ["what is the time?", "you said [answer 0123456789abcdef], why?", "[answer 00000000000000ff] was wrong"]
    rows = [turn(f"u{i % 2}", f"2024-03-{1 + i // 2:02d}T08:00:00", texts[i // 2 % 3], answer="ok") for i in range(24)]
    path = write_csv(tmp_path / "log.csv", rows)
    target = "assistant.target=tests.assistant.python.objects"
    arms = [
        f"+arms.{name}=[assistant=python,{target}.{name},assistant.controls=false{more}]"
        for name, more in (("PassOn", ""), ("ExactCache", ""), ("LastThree", ",assistant.parameters.spelled=blanks"))
    ]
    given = ["simulator=recorded", f"simulator.path={path}", "simulator.columns={answer: answer}"]
    run = skg_bench.run([*given, *MORE, *arms, f"out={tmp_path / 'run'}"])
    sentences = skg_bench.explain(run)
    assert not [text for text in sentences if "LEAKS" in text]
    assert any(text.startswith("PassOn would have given no stored answer") for text in sentences)
    assert run.turns("ExactCache", ["serving"])["serving"].to_pylist().count("stored") == 18
    assert run.turns("LastThree", ["serving"])["serving"].to_pylist().count("prompted") == 22


@pytest.mark.parametrize("redact", [False, True])
def test_what_a_class_remembers_of_a_redacted_log_stands_in_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redact: bool
) -> None:
    """Once, a run that was stopped left the messages in its folder, as the class saves them."""
    monkeypatch.setattr(execute, "CHECKPOINT", 0.0)
    rows = [turn("u", f"2024-03-{1 + i:02d}T08:00:00", "my pin is xyzzy") for i in range(24)]
    path = write_csv(tmp_path / "log.csv", rows)
    (tmp_path / "my.py").write_text(
        "class It:\n    n = 0\n    kept = ''\n"
        "    def answer(self, user, time, message, model):\n"
        "        self.n, self.kept = self.n + 1, message\n"
        "        return model(message) if self.n < 9 else 1 / 0\n"
        "    def save(self): return self.kept.encode()\n"
        "    def load(self, user, data): self.kept = data.decode()\n"
    )
    arm = f"+arms.it=[assistant=python,assistant.file={tmp_path / 'my.py'}:It,assistant.controls=false]"
    given = ["simulator=recorded", f"simulator.path={path}", f"simulator.redact={str(redact).lower()}", "workers=1"]
    with pytest.raises(UsageError, match="it raised ZeroDivisionError"):
        skg_bench.run([*given, *MORE, arm, f"out={tmp_path / 'run'}"])
    files = [file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()]
    shown = any(text in content for content in files for text in (b"xyzzy", b"xyzzy".hex().encode()))
    assert shown is not redact
