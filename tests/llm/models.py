"""Models of texts for tests: they count what they are sent, in a file that all processes share."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skg_bench.asking.asking import Completion, Prices, Prompt
from skg_bench.core.errors import UsageError

SCHEMA = {"type": "object", "properties": {"says": {"type": "string"}}, "required": ["says"]}


def prompt(user: str, **fields: Any) -> Prompt:
    fields = {"role": "reflector", "system": "You reflect.", "schema": SCHEMA, "draw": 1, "limit": 100, **fields}
    return Prompt(user=user, **fields)


def prompts(n: int, start: int = 0) -> list[Prompt]:
    return [prompt(f"question {i}") for i in range(start, start + n)]


@dataclass(frozen=True)
class Whole:
    """Answers calls as a whole: 10 tokens in, 5 out, 0.5 USD."""

    log: str  # a line for each ask
    salt: str = ""  # part of the answers; pid: another one in each process, as servers do
    temperature: float = 0.0
    model: str = "m"
    top_p: float = 1.0
    priced: bool = True
    ends: str = "ok"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": self.model, "temperature": self.temperature, "top_p": self.top_p}

    @property
    def prices(self) -> Prices | None:
        return Prices(1.0, 1.0, 1.0) if self.priced else None

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        for prompt in prompts:
            self.send(prompt)
        return [self.answer(prompt) for prompt in prompts]

    def send(self, prompt: Prompt) -> None:
        with Path(self.log).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{prompt.user} {prompt.draw}\n")

    def answer(self, prompt: Prompt) -> Completion:
        salt = str(os.getpid()) if self.salt == "pid" else self.salt
        said = {"says": f"{prompt.user}{salt}{prompt.draw if self.temperature else ''}"}
        if self.ends == "ok":
            return Completion(json.dumps(said), said if prompt.schema else None, "ok", 10, 3, 5, 0.5, 123.456)
        return Completion("", None, self.ends, 10, 0, 0, 0.1, 10_000.25, "no answer")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Streaming(Whole):
    """Answers one by one, the last sent first; `in_flight` are under way at once."""

    in_flight: int = 4
    seconds: float = 0.0  # of an ask
    fails_at: int = -1  # the ask that raises UsageError

    def each(self, prompts: Sequence[Prompt], done: Callable[[Mapping[int, Completion]], None]) -> None:
        waiting, flying, error = list(range(len(prompts))), list[int](), None
        while flying or (waiting and error is None):
            while waiting and error is None and len(flying) < self.in_flight:
                flying.append(waiting.pop(0))
                self.send(prompts[flying[-1]])
            i = flying.pop()
            time.sleep(self.seconds)
            if i == self.fails_at:
                error = UsageError("the key is wrong")
                continue
            try:
                done({i: self.answer(prompts[i])})
            except UsageError as raised:
                assert error is None, "a second error"
                error = raised
        if error is not None:
            raise error


def sent(model: Whole) -> list[str]:
    """What a model was sent, each with its draw."""
    log = Path(model.log)
    return log.read_text().splitlines() if log.exists() else []
