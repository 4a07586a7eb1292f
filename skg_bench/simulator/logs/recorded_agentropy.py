"""A folder as agentropy keeps one, or a folder of such, as a history: each is a user, its signals are the turns."""

from datetime import datetime, timedelta
from pathlib import Path

from skg_bench.core.errors import UsageError
from skg_bench.simulator.logs.recorded_rows import RecordedTurn
from skg_bench.skillbook.agentropy import PICKLE, SIGNALS, read_agentropy

_FIRST = datetime(2018, 1, 1, 9)  # a Monday
_HOUR = timedelta(hours=1)


def agentropy_turns(path: Path) -> list[RecordedTurn]:
    """All turns. The answer of a turn that a skill answered is the skill's: a fallback would not give it.

    Raises UsageError for a folder that is no such index, or torn.
    """
    rows = []
    for folder in _folders(path):
        lines = read_agentropy(folder, _FIRST).signals
        timeless = not any(line.get("time") for line in lines)
        for i, line in enumerate(lines):
            rows.append(
                RecordedTurn(
                    i + 1, folder.name, _FIRST + i * _HOUR if timeless else line.get("time"), line["message"],
                    f"{folder.name}/{line['user_msg_id']}", None, line.get("answer"), line["user_satisfaction"],
                    "llm" if line["fallback_to_llm"] else line["matched_skill"],
                )
            )  # fmt: skip
    return rows


def assumed(path: Path) -> dict[str, str]:
    """Assumptions: what such a log does not say, and what was not looked at."""
    folders = _folders(path)
    assumptions = {}
    if timeless := [f.name for f in folders if not any(line.get("time") for line in read_agentropy(f, _FIRST).signals)]:
        assumptions["time"] = f"invented for {', '.join(timeless)}: an hour between signals, in their order"
    if pickled := [folder.name for folder in folders if (folder / PICKLE).exists()]:
        assumptions["model"] = f"{PICKLE} of {', '.join(pickled)} is not opened: to unpickle is to run what it says"
    return assumptions


def _folders(path: Path) -> list[Path]:
    """The folder itself, or those in it."""
    folders = [path] if (path / SIGNALS).is_file() else sorted(file.parent for file in path.glob(f"*/{SIGNALS}"))
    if not folders:
        raise UsageError(
            f"simulator.path={path} holds no {SIGNALS}, and no folder in it does; it is no agentropy index"
        )
    return folders
