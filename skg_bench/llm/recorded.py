"""A model whose answers are recorded, so that they are played again instead of paid for again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from skg_bench.asking import arrivals
from skg_bench.asking.asking import ASKS_FOLDER, Completion, Prices, Prompt, TextModel, components_within
from skg_bench.asking.environment import offline
from skg_bench.asking.estimated_tokens import warn_where_estimated
from skg_bench.asking.recorded_asks import Ask
from skg_bench.asking.recording import Recording, opened_recording
from skg_bench.asking.structured import value_of
from skg_bench.asking.unrecorded import difference
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import Confined, Reach, Reaches
from skg_bench.llm.endpoint import Endpoint

RecordingMode = Literal["record", "play", "both"]
Answer = tuple[bytes, Completion]  # by the key of its ask


@dataclass(frozen=True)
class RecordedModel:
    """`llm`, recorded in `folder`; null: in the run's own.

    `both` plays what is recorded, and asks and records what is not. `play` asks nothing; so do all where the
    environment has OFFLINE=1. `record` is `both` for a run that is to begin a recording: a folder that holds one is
    refused before anything is asked. Every end is recorded, time limits and errors too: a run that goes on repeats
    them. Another folder asks anew.

    Equal asks of a call are sent once. Each of them has the answer's tokens and cost, as in a replay. What an answer of
    an endpoint costs is counted from its tokens, by the prices that the model has now, and not when it was recorded.
    """

    llm: TextModel
    mode: RecordingMode
    folder: str | None
    beside: ClassVar[Sequence[str]] = ("mode", "folder")  # parameters that do not change what comes out
    reaches: ClassVar[Reaches] = {"folder": Reach(("reads", "writes"))}
    confined: ClassVar[Confined] = Confined({"mode": "play"}, inside="llm")

    def __post_init__(self) -> None:
        if self.mode not in get_args(RecordingMode):
            raise UsageError(f"curator.llm.mode={self.mode!r}, valid are {', '.join(get_args(RecordingMode))}")

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the model inside."""
        return self.llm.settings

    @property
    def prices(self) -> Prices | None:
        """Prices of the model inside."""
        return self.llm.prices

    def kept_in(self, folder: Path) -> "RecordedModel":
        """RecordedModel with the run in `folder`, where no other folder is given."""
        if self.mode == "record" and not offline():
            place = Path(self.folder) if self.folder is not None else folder / ASKS_FOLDER
            if any(place.glob("*.jsonl.zst")):
                raise UsageError(
                    f"curator.llm.mode=record begins a recording, and {place} holds one; curator.llm.mode=both plays "
                    "it and records what is missing, and another curator.llm.folder asks anew"
                )
        return self if self.folder is not None else replace(self, folder=str(folder / ASKS_FOLDER))

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers in order.

        Raises UsageError as `each` does.
        """
        return arrivals.complete(self.each, prompts)

    def each(self, prompts: Sequence[Prompt], done: arrivals.Done) -> None:
        """Call `done` for answers: at once for those that are played, for others as soon as they are recorded. Answers
        that arrive while a group is written to the disk form the next group. They are in flight until it is written.

        Raises UsageError for prompts that no file may hold, asks that are not recorded and may not be sent, a recording
        that cannot be read or written, and as the model inside does. What that had answered is recorded all the same.
        """
        if not prompts:
            return
        recording, mode = self._recording(prompts), "play" if offline() else self.mode
        settings = self.settings
        asks = [Ask(prompt, settings) for prompt in prompts]
        places: dict[bytes, list[int]] = {}
        for i, ask in enumerate(asks):
            places.setdefault(ask.key, []).append(i)
        known = [(key, answer) for key in places if (answer := recording.get(key))]
        played = {key for key, _ in known}
        missing = [(key, asks[positions[0]]) for key, positions in places.items() if key not in played]
        if missing and mode == "play":
            raise UsageError(self._unrecorded(missing[0][1], recording))

        by_tokens, prices = any(isinstance(part, Endpoint) for part in components_within(self.llm)), self.prices

        def priced(answer: Completion) -> Completion:
            if not by_tokens:
                return answer
            cost = prices.cost(answer.tokens_in, answer.tokens_cached, answer.tokens_out) if prices else 0.0
            return replace(answer, cost_usd=cost)

        def hand_on(answers: Sequence[Answer]) -> None:
            warn_where_estimated((answer for _, answer in answers), str(settings["model"]))
            done({i: _valued(priced(answer), prompts[i]) for key, answer in answers for i in places[key]})

        def arrived(answers: arrivals.CompletionsByPlace) -> None:
            hand_on(recording.add([(*missing[index], completion) for index, completion in answers.items()]))

        if known:
            hand_on(known)
        if missing:
            arrivals.ask_each(self.llm, [ask.prompt for _, ask in missing], arrived)

    def _recording(self, prompts: Sequence[Prompt]) -> Recording:
        """Recording up to now."""
        if self.folder is None:
            raise UsageError(
                "curator.llm=recorded needs a folder outside of runs: set curator.llm.folder to where its "
                "files are to lie"
            )
        if any(prompt.redacted for prompt in prompts):
            raise UsageError(
                "curator.llm=recorded would write messages to a file that the logs of this run may not show; "
                "take the model by itself, without a recording, or a log that is not redacted"
            )
        recording = opened_recording(Path(self.folder).absolute())
        recording.refresh()
        return recording

    def _unrecorded(self, ask: Ask, recording: Recording) -> str:
        reason = "OFFLINE is set" if offline() else f"curator.llm.mode={self.mode}"
        record = f"run the same command with curator.llm.mode=both{', without OFFLINE' if offline() else ''}"
        if not len(recording):
            return f"nothing is recorded in {recording.folder}, and nothing is asked, as {reason}; to record, {record}"
        return (
            f"an ask of role {ask.prompt.role!r} is not recorded in {recording.folder}, and nothing is asked, as "
            f"{reason}. {difference(ask, recording.asks())} If that is a change of yours, undo it; to record "
            f"this ask, {record}"
        )


def _valued(answer: Completion, prompt: Prompt) -> Completion:
    if answer.end != "ok" or prompt.schema is None:
        return answer
    return replace(answer, value=value_of(answer.text))
