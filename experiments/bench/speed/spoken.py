"""Answers in words: what a turn costs the core where a model of a few lines reads its prompt, from events to logs."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.engine import execute as engine
from skg_bench.launcher.local import Local

MEMORY = 200  # messages that the Python memory keeps of each user
ARMS = {  # and turns a second that each must reach
    "never": ("policy=never, curator=none", 20_000),
    "python": (f"assistant=python, assistant.target={__name__}.Kept", 2_000),
}
NAMES = {"never": "no memory", "python": f"a Python memory of {MEMORY} messages a user"}
USERS = {"never": (512, 2048), "python": (40, 120)}  # quick, and else
EVEN = ["simulator=told", "simulator.things=30", "simulator.asks_per_week=10", "weeks=26", "salt=0"]


class Kept:
    """A dict of words: the three of the last messages with the most words in common stand in the prompt."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, str, set[str]]] = deque()
        self._places: dict[str, dict[int, str]] = {}
        self._count = 0

    def answer(self, user: str, time: datetime, message: str, model: Callable[[str], str]) -> str:
        """Words of the model, which reads these messages before this one."""
        words = set(message.lower().strip("?.").split())
        common = Counter(place for word in words for place in self._places.get(word, ()))
        near = sorted(common, key=lambda place: (-common[place], -place))[:3]
        first = self._kept[0][0] if self._kept else 0
        reply = model("\n".join([*(self._kept[place - first][1] for place in near), message]))
        for word in words:
            self._places.setdefault(word, {})[self._count] = message
        self._kept.append((self._count, message, words))
        self._count += 1
        if len(self._kept) > MEMORY:
            oldest, _, gone = self._kept.popleft()
            for word in gone:
                del self._places[word][oldest]
        return reply


def turns_a_second(arm: str, users: int) -> float:
    """Turns a second of core time in this process, of a run without its tables and page."""
    plan = prepare(compose([*EVEN, f"arms={{mine: [{ARMS[arm][0]}]}}", "reference=mine", f"users={users}"])).plan
    count = 0

    def progress(_: int, total: int) -> None:
        nonlocal count
        count = total

    with TemporaryDirectory() as folder:
        begun = time.process_time()
        engine.execute(plan, Path(folder), cohort=512, workers=1, launcher=Local(), progress=progress)
        return count / (time.process_time() - begun)


def rows(quick: bool) -> Iterator[tuple[str, str, str, str]]:
    """Figure, measured, mark, ratio to the mark: for the table of all that is timed."""
    for arm, (_, mark) in ARMS.items():
        turns_a_second(arm, 2)  # imports
        rate = turns_a_second(arm, USERS[arm][0 if quick else 1])
        name = f"answers in words, {NAMES[arm]}, a scripted reader, core time"
        yield name, f"{rate:,.0f} turns/s", f"{mark:,}", f"{rate / mark:.2f}x"
