"""Memories of answers and of procedures, in a few lines each."""

from datetime import datetime

from skg_bench.asking.solving import REFLECT, UNSOLVED
from skg_bench.assistant.python.contract import Model

TOLD = "The answer is "
OF = " to the task: "


class Answers:
    """A memory of answers: it keeps what the user says is right, and shows all of it, the newest first."""

    def __init__(self) -> None:
        self._kept: list[str] = []

    def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the model, which reads the answers before the message."""
        words = model("\n".join([*reversed(self._kept), message]))
        if message.startswith(TOLD):
            self._kept.append(message)
        return words


class Procedures:
    """A memory of procedures: after a task it asks the model how such tasks are done, and shows what it said."""

    def __init__(self) -> None:
        self._kept: list[str] = []

    def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the model, which reads the procedures before the message."""
        words = model("\n".join([*reversed(self._kept), message]))
        if message.startswith(TOLD):
            procedure = model(f"{REFLECT}{message.partition(OF)[2]}")
            if procedure not in (*self._kept, UNSOLVED):
                self._kept.append(procedure)
        return words
