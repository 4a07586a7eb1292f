"""RecordedModel: what is asked, what is played, what it gives."""

import os
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from skg_bench.asking import estimated_tokens, recording
from skg_bench.asking.asking import Completion, Kept, placed
from skg_bench.asking.prompts import load_prompt
from skg_bench.core.errors import BudgetReached, UsageError
from skg_bench.llm.budgeted import Budgeted
from skg_bench.llm.recorded import RecordedModel
from skg_bench.llm.scripted import Scripted
from tests.llm.asks import endpoint, free
from tests.llm.models import Streaming, Whole, prompt, prompts, sent
from tests.llm.server import Server


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFLINE", raising=False)


@pytest.fixture
def model(tmp_path: Path) -> Streaming:
    return Streaming(str(tmp_path / "sent"))


def both(model: Whole, tmp_path: Path) -> RecordedModel:
    return RecordedModel(model, "both", str(tmp_path / "asked"))


def forget() -> None:
    """As a new process."""
    recording.opened_recording.cache_clear()
    estimated_tokens.warn_of_estimates.cache_clear()


@pytest.mark.parametrize("kind", [Whole, Streaming])
@pytest.mark.parametrize("end", ["ok", "timeout", "invalid", "refused", "error"])
def test_a_replay_gives_the_same_completions_and_asks_nothing(kind: type[Whole], end: str, tmp_path: Path) -> None:
    model = kind(str(tmp_path / "sent"), ends=end)
    asked = [*prompts(70), prompt("any text", schema=None)]
    first = both(model, tmp_path).complete(asked)
    assert first == [model.answer(ask) for ask in asked]
    forget()
    count = len(sent(model))
    assert count == len(asked)
    assert both(model, tmp_path).complete(asked) == first
    assert replace(both(model, tmp_path), mode="play").complete(asked) == first
    assert len(sent(model)) == count


def test_a_replay_of_a_scripted_model_gives_the_same_completions(tmp_path: Path) -> None:
    model = Scripted("learner", 3.0, 15.0, 4000)
    reflector = load_prompt("reflector", None, ("question", "answer", "feedback", "skills_used", "skillbook"))
    data = {"answer": "a", "feedback": {"rating": "ok"}, "skills_used": [], "skillbook": ""}
    asked = [reflector.ask({**data, "question": f"q{i}"}, i, 500) for i in range(5)]
    first = RecordedModel(model, "both", str(tmp_path)).complete(asked)
    assert first == model.complete(asked)
    forget()
    assert RecordedModel(model, "play", str(tmp_path)).complete(asked) == first


@pytest.mark.parametrize("unknown", [False, True])
def test_a_replay_of_an_endpoint_costs_what_its_prices_now_say(unknown: bool, tmp_path: Path) -> None:
    """Who corrected the prices of a model, and played the recording again, got the costs of before."""
    with Server() as server:
        model = endpoint(server.address)
        (first,) = RecordedModel(model, "both", str(tmp_path)).complete([free()])
    forget()
    price = None if unknown else 4000.0
    dear = replace(model, usd_per_million_in=price, usd_per_million_cached=price, usd_per_million_out=price)
    (again,) = RecordedModel(Budgeted(dear, 9, None, str(tmp_path)), "play", str(tmp_path)).complete([free()])
    assert again == replace(first, cost_usd=0.0 if unknown else 0.004 * (first.tokens_in + first.tokens_out))
    assert (again.cost_usd == first.cost_usd) is False
    assert RecordedModel(model, "play", str(tmp_path)).complete([free()]) == [first]


def test_estimated_tokens_are_said_once_and_in_a_replay_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Costs and verdicts came from estimates of ours, and nothing said so."""
    forget()
    words = "the server of gpt-4.1-mini does not count tokens: they are estimated, one for 4 characters"
    with Server("no usage") as server:
        recorded = RecordedModel(endpoint(server.address), "both", str(tmp_path))
        for end in (recorded.complete([free(), free("again")]), recorded.complete([free()])):
            assert {completion.served for completion in end} == {"gpt-4.1-mini, tokens estimated"}
    assert [record.message.startswith(words) for record in caplog.records] == [True]
    forget()
    caplog.clear()
    recorded.complete([free()])
    assert [record.message.startswith(words) for record in caplog.records] == [True]


def test_what_is_not_recorded_is_asked_and_what_is_comes_from_the_recording(model: Streaming, tmp_path: Path) -> None:
    both(model, tmp_path).complete(prompts(3))
    answers = both(model, tmp_path).complete(prompts(5))
    assert answers == [model.answer(ask) for ask in prompts(5)]
    assert sent(model) == [f"question {i} 1" for i in range(5)]


def test_equal_asks_of_a_call_are_sent_once_where_the_temperature_is_0(model: Streaming, tmp_path: Path) -> None:
    asked = [replace(ask, draw=i) for i, ask in enumerate(prompts(2) * 3)]
    answers = both(model, tmp_path).complete(asked)
    assert len(sent(model)) == 2
    assert answers == [model.answer(ask) for ask in asked]


def test_above_temperature_0_each_draw_is_asked_by_itself(model: Streaming, tmp_path: Path) -> None:
    model = replace(model, temperature=0.7)
    asked = [replace(ask, draw=i) for i, ask in enumerate(prompts(2) * 3)]
    answers = both(model, tmp_path).complete(asked)
    assert len(sent(model)) == 6
    assert len({answer.text for answer in answers}) == 6
    assert both(model, tmp_path).complete(asked) == answers


def test_record_begins_a_recording_and_refuses_a_folder_that_holds_one_before_anything_is_asked(
    model: Streaming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording_model = RecordedModel(model, "record", None).kept_in(tmp_path)
    first = recording_model.complete(prompts(3))
    assert recording_model.complete(prompts(3)) == first
    assert len(sent(model)) == 3
    forget()
    for folder in (None, str(tmp_path / "asked")):
        with pytest.raises(UsageError, match=r"curator\.llm\.mode=record begins a recording, and .*asked holds one"):
            RecordedModel(model, "record", folder).kept_in(tmp_path)
    monkeypatch.setenv("OFFLINE", "1")  # plays in any mode
    assert RecordedModel(model, "record", None).kept_in(tmp_path).complete(prompts(3)) == first


def test_answers_are_handed_on_one_by_one_after_they_are_on_the_disk(
    model: Streaming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = 0
    fsync = os.fsync

    def counted(descriptor: int) -> None:
        nonlocal synced
        fsync(descriptor)
        synced += 1

    monkeypatch.setattr(os, "fsync", counted)
    handed: dict[int, Completion] = {}

    def done(answers: Mapping[int, Completion]) -> None:
        fresh = recording.Recording(tmp_path / "asked")
        fresh.refresh()
        on_disk = {line["user"] for line in fresh.asks()}
        assert {prompts(9)[index].user for index in answers} <= on_disk
        assert synced
        handed.update(answers)

    both(replace(model, seconds=0.01), tmp_path).each(prompts(9), done)
    assert handed == dict(enumerate(model.answer(ask) for ask in prompts(9)))


def test_answers_that_arrive_together_share_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    both(Whole(str(tmp_path / "sent")), tmp_path).complete(prompts(300))
    assert len(syncs) < 100


def test_a_slow_disk_holds_back_further_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill then loses the answers in flight and no others."""
    folder, lost = tmp_path / "asked", []
    with Server() as server:
        model = RecordedModel(endpoint(server.address, in_flight=3), "both", str(folder))
        model.complete([free()])
        kept = recording.opened_recording(folder)

        def slow(_: int) -> None:
            time.sleep(0.02)
            lost.append(server.requests - len(kept))

        monkeypatch.setattr(os, "fsync", slow)
        model.complete([free(str(n)) for n in range(40)])
    assert server.requests == len(kept) == 41
    assert max(lost) <= 3
    assert 40 / 3 <= len(lost) < 40  # groups


def test_what_was_answered_before_an_error_is_recorded_and_handed_on(model: Streaming, tmp_path: Path) -> None:
    handed: dict[int, Completion] = {}
    with pytest.raises(UsageError, match="the key is wrong"):
        both(replace(model, fails_at=5), tmp_path).each(prompts(20), handed.update)
    assert len(sent(model)) == len(handed) + 1
    assert both(model, tmp_path).complete(prompts(20)) == [model.answer(ask) for ask in prompts(20)]
    assert len(sent(model)) == 21  # the one that failed is sent again, no other


def test_an_error_of_the_caller_ends_the_sending_and_keeps_what_was_answered(model: Streaming, tmp_path: Path) -> None:
    def done(_: Mapping[int, Completion]) -> None:
        raise BudgetReached("enough")

    with pytest.raises(BudgetReached):
        both(replace(model, seconds=0.02), tmp_path).each(prompts(50), done)
    count = len(sent(model))
    assert count < 20
    kept = recording.Recording(tmp_path / "asked")
    kept.refresh()
    assert len(kept) == count


def test_a_disk_that_takes_nothing_ends_the_sending_with_a_plain_error(
    model: Streaming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both(model, tmp_path).complete(prompts(2))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(UsageError, match=r"cannot be recorded in .*asked.*No space left"):
            both(replace(model, seconds=0.02), tmp_path).complete(prompts(50))
    assert len(sent(model)) < 20
    forget()
    assert both(model, tmp_path).complete(prompts(3)) == [model.answer(ask) for ask in prompts(3)]


@pytest.mark.parametrize("word", ["1", "true", "YES"])
@pytest.mark.parametrize("mode", ["both", "record", "play"])
def test_offline_nothing_is_asked(
    mode: str, word: str, model: Streaming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = both(model, tmp_path).complete(prompts(2))
    monkeypatch.setenv("OFFLINE", word)
    offline = replace(both(model, tmp_path), mode=mode)  # type: ignore[arg-type]
    assert offline.complete(prompts(2)) == first
    with pytest.raises(UsageError, match="OFFLINE is set"):
        offline.complete(prompts(3))
    assert len(sent(model)) == 2


@pytest.mark.parametrize("word", ["", "0", "no", "false"])
def test_offline_is_a_word_that_says_yes(
    word: str, model: Streaming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLINE", word)
    both(model, tmp_path).complete(prompts(2))
    assert len(sent(model)) == 2


def test_offline_without_a_recording_says_how_to_record(
    model: Streaming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLINE", "1")
    with pytest.raises(UsageError, match=r"nothing is recorded in .*asked.*llm.mode=both, without OFFLINE"):
        both(model, tmp_path).complete(prompts(1))
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("mode", ["both", "record", "play"])
def test_a_message_that_no_file_may_hold_is_not_recorded(mode: str, model: Streaming, tmp_path: Path) -> None:
    recorded = replace(both(model, tmp_path), mode=mode)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="without a recording"):
        recorded.complete([*prompts(2), prompt("secret", redacted=True)])
    assert not sent(model)
    assert not (tmp_path / "asked").exists()


def test_a_folder_that_is_not_given_is_the_runs_own_and_one_that_is_given_stays(model: Streaming) -> None:
    inner = Budgeted(model, None, None, None)
    recorded = placed(RecordedModel(inner, "both", None), Path("run"))
    assert isinstance(recorded, Kept)
    assert recorded == RecordedModel(replace(inner, folder="run/asked"), "both", "run/asked")
    assert placed(recorded, Path("other")) is recorded
    with pytest.raises(UsageError, match=r"set curator.llm\.folder"):
        RecordedModel(model, "both", None).complete(prompts(1))


def test_what_the_model_is_comes_from_the_one_inside(model: Streaming) -> None:
    recorded = RecordedModel(model, "both", None)
    assert (recorded.settings, recorded.prices) == (model.settings, model.prices)
    assert set(recorded.beside) == {f.name for f in fields(recorded)} - {"llm"}


def test_a_mode_that_there_is_not_is_refused(model: Streaming) -> None:
    with pytest.raises(UsageError, match=r"curator.llm\.mode='replay', valid are record, play, both"):
        RecordedModel(model, "replay", None)  # type: ignore[arg-type]


def test_no_prompts_make_no_file(model: Streaming, tmp_path: Path) -> None:
    assert both(model, tmp_path).complete([]) == []
    assert not (tmp_path / "asked").exists()
