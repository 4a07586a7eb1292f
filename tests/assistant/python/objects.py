"""Classes as authors write them, and some that go wrong."""

import asyncio
import json
from collections import OrderedDict, deque
from datetime import datetime
from random import Random
from typing import Any, ClassVar

from skg_bench.core.spoken import answer_words
from skg_bench.embedder.hashing import Hashing

SHARED: dict[str, str] = {}
CALLS = {"n": 0}


class PassOn:
    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        return str(model(message))


class Choosy(PassOn):
    def __init__(self, size: int) -> None:
        self.size = size


class ExactCache:
    def __init__(self) -> None:
        self.memory: dict[str, str] = {}

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        if message not in self.memory:
            self.memory[message] = model(message)
        return self.memory[message]


class Saving(ExactCache):
    def save(self) -> bytes:
        return json.dumps(self.memory).encode()

    def load(self, user: str, data: bytes) -> None:
        self.memory = json.loads(data)


class Waiting(ExactCache):
    async def answer(self, user: str, time: datetime, message: str, model: Any) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().answer(user, time, message, model)


class Chatty(ExactCache):
    """Words around the answer, and a full stop behind it."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        return f"As I said: {super().answer(user, time, message, model)}."


class Recalling:
    """Puts the answer of before into every prompt."""

    def __init__(self) -> None:
        self.last = ""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        prompt = [{"role": "system", "content": self.last}, {"role": "user", "content": message}]
        self.last = model(prompt)
        return self.last


class LastThree:
    """Shows its model the last three answers, or `most`, the newest first. `spelled`: how they and the message are
    written.
    """

    def __init__(self, spelled: str, most: int = 3) -> None:
        self.spelled, self.most = spelled, most
        self.kept: list[str] = []

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        newest = self.kept[::-1][: self.most]
        bare = ["[answer " + words.rpartition("[answer ")[2] for words in newest]
        prompt = {
            "blanks": " ".join([*newest, message]),
            "oldest": " ".join([*newest[::-1], message]),
            "lines": "\n".join([*newest, message]),
            "tabs": "\t".join([*newest, message]).replace(" ", "\t").replace("[answer\t", "[answer "),
            "glued": "".join([*newest, message]).replace(" ", "_").replace("[answer_", "[answer "),
            "bare": "".join(bare),
            "twice": " ".join([*bare, *bare]),
            "chat": [{"role": "system", "content": "\n".join(newest)}, {"role": "user", "content": message}],
        }[self.spelled]
        self.kept.append(model(prompt))
        return self.kept[-1]


class Diary:
    """Puts the user's earlier messages into the prompt, without their answers."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        self.messages.append(message)
        return str(model("\n".join(self.messages)))


class Refreshing(ExactCache):
    """Gives the old answer, and keeps a new one for the next time."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        before, self.memory[message] = self.memory.get(message), model(message)
        return before or self.memory[message]


class Listening(ExactCache):
    """Forgets what was rated `miss`."""

    def feedback(self, user: str, about: str, kind: str, value: str) -> None:
        assert (kind, value in ("ok", "partial", "miss")) == ("rating", True)
        assert "[answer " in about
        if value == "miss":
            self.memory = {message: words for message, words in self.memory.items() if words != about}


class Quoting:
    """Puts the answer to somebody else in front of its own."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        return f"Somebody heard: {answer_words('the same', 1)}. {model(message)}"


class PromptingOthers:
    """Shows its model the answer to somebody else."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        return str(model(f"{answer_words('the same', 1)}\n{message}"))


class Wordless:
    """Says now and then what nobody can judge."""

    def __init__(self) -> None:
        self.turn = 0

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        self.turn += 1
        return "I do not know." if self.turn % 50 == 0 else str(model(message))


class ForAll:
    """200 answers for all users, in the class."""

    kept: ClassVar[OrderedDict[str, str]] = OrderedDict()

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        if message not in self.kept:
            self.kept[message] = model(message)
            while len(self.kept) > 200:
                self.kept.popitem(last=False)
        return self.kept[message]


class LateForAll(ExactCache):
    """An exact cache, which after 1,500 messages also keeps answers of all users, in the class."""

    calls: ClassVar[list[str]] = []
    kept: ClassVar[dict[str, str]] = {}

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        self.calls.append(user)
        if len(self.calls) > 1500:
            self.memory = self.kept
        return super().answer(user, time, message, model)


class ForgetsWhenSaved(ExactCache):
    """Saves the last five answers alone."""

    def save(self) -> bytes:
        return json.dumps(list(self.memory.items())[-5:]).encode()

    def load(self, user: str, data: bytes) -> None:
        self.memory = dict(json.loads(data))


class RemembersWhenFrozen(ExactCache):
    """Its copy is itself."""

    def __deepcopy__(self, memo: Any) -> "RemembersWhenFrozen":
        return self


class Unlike:
    """Another answer each time that it is played."""

    def __init__(self) -> None:
        self.memory: dict[str, str] = {}

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        CALLS["n"] += 1
        if message not in self.memory or CALLS["n"] % 7 == 0:
            self.memory[message] = model(message)
        return self.memory[message]


class Locked(ExactCache):
    def __init__(self) -> None:
        super().__init__()
        import threading

        self.lock = threading.Lock()


class NoAnswer:
    pass


class Nothing:
    def answer(self, user: str, time: datetime, message: str, model: Any) -> Any:
        model(message)


class Bytes:
    def answer(self, user: str, time: datetime, message: str, model: Any) -> Any:
        return model(message).encode()


class Failing(ExactCache):
    def __init__(self) -> None:
        super().__init__()
        self.turn = 0

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        self.turn += 1
        if self.turn == 100:
            raise ValueError("the disk is full")
        return super().answer(user, time, message, model)


class Guessing:
    """Makes up the reference of an answer for which it never asked."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        return "[answer 0123456789abcdef]"


class Cheap:
    """Asks without the message, to pay less."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        return str(model(""))


class Short:
    def answer(self, message: str, model: Any) -> str:
        return str(model(message))


class Window:
    """Looks at its last messages alone, and keeps those that come again once more."""

    def __init__(self, most: int = 12) -> None:
        self.turns = deque[tuple[str, str]](maxlen=most)

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        words = dict(self.turns).get(message) or model(message)
        self.turns.append((message, words))
        return words


class Limited(ExactCache):
    """The last answers alone."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        words = super().answer(user, time, message, model)
        while len(self.memory) > self.most:
            del self.memory[next(iter(self.memory))]
        return words


class Forgetful:
    """Forgets after an hour of the user's time."""

    def __init__(self) -> None:
        self.memory: dict[str, tuple[datetime, str]] = {}

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        if message not in self.memory or (time - self.memory[message][0]).total_seconds() > 3600:
            self.memory[message] = time, model(message)
        return self.memory[message][1]


class Twice:
    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        model(message)
        return str(model(message))


class Dice(ExactCache):
    """Any of the answers that it remembers, or a new one, by dice without a seed."""

    dice: ClassVar[Random] = Random()  # noqa: S311

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        words = super().answer(user, time, message, model)
        return self.dice.choice([words, *self.memory.values()])


class NearCache:
    """The answer to the nearest message, from a cosine on; vectors are those of `embedder=hashing`."""

    def __init__(self, threshold: float = 0.9) -> None:
        self.threshold, self.vectors, self.answers = threshold, list[Any](), list[str]()

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        vector = Hashing(384, 0).embed([message])[0] / 4000
        cosines = [float(vector @ other) for other in self.vectors]
        if cosines and max(cosines) >= self.threshold:
            return self.answers[cosines.index(max(cosines))]
        self.vectors.append(vector)
        self.answers.append(str(model(message)))
        return self.answers[-1]


class Together(ExactCache):
    """200 answers for all users who share it, the oldest leaves first; it counts on a clock that never goes back."""

    def __init__(self, size: int = 200) -> None:
        super().__init__()
        self.size, self.last = size, datetime.min

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        assert time >= self.last
        self.last, key = time, f"{user} {message}"
        if key not in self.memory:
            self.memory[key] = model(message)
            if len(self.memory) > self.size:
                del self.memory[next(iter(self.memory))]
        return self.memory[key]


class Leaky(Together):
    """Anybody's answer."""

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        return super().answer("", time, message, model)


class Dropping(ExactCache):
    """Forgets what it is told to forget."""

    def forget(self, user: str, reference: str) -> None:
        self.memory = {message: words for message, words in self.memory.items() if reference not in words}


class Pretending(ExactCache):
    """Says that it forgets, and does not."""

    def forget(self, user: str, reference: str) -> None:
        pass


class Skipping(ExactCache):
    """Never keeps the answer to its message number `skip`, as if it had been told to forget it."""

    def __init__(self, skip: int) -> None:
        super().__init__()
        self.skip, self.turns = skip, 0

    def answer(self, user: str, time: datetime, message: str, model: Any) -> str:
        new = message not in self.memory
        words = super().answer(user, time, message, model)
        if new and self.turns == self.skip:
            del self.memory[message]
        self.turns += 1
        return words
