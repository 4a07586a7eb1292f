"""A curator that learns with another program, such as a published package, whose model is the arm's.

The program runs in an environment of its own. For each turn that its user judged, it gets the turn and the book, and
returns operations. They are admitted or refused as those of every proposer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, get_args

from skg_bench.asking.asking import TextModel
from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.package import files_named
from skg_bench.core.reach import NO_REACH, Reach, Reaches
from skg_bench.curator.shared.book_prompts import check_asking
from skg_bench.curator.shared.learning_job import LearningJob, Proposal
from skg_bench.curator.shared.proposer import Proposer
from skg_bench.skillbook.proposals import Batches, Limits

_ROOM = 100_000  # characters of a book for check_asking; a peer gets the whole book, so that no limit is to check


@dataclass(frozen=True)
class Peer(Proposer):
    """Hands learning jobs to a program, one at a time. Each process of a run starts a program of its own.

    If the program fails in a job, the job ends as `error` or `timeout`, and the program is stopped. The next job starts
    it again.
    """

    llm: TextModel
    command: Sequence[str] | None
    name: str | None
    makes: str | None
    batches: Batches
    limits: Limits
    starts: float
    seconds: float
    asks: int
    answer_tokens: int
    beside: ClassVar[Sequence[str]] = ("makes", "starts")
    reaches: ClassVar[Reaches] = {"command": Reach(("code",)), "name": NO_REACH, "makes": NO_REACH}

    def __post_init__(self) -> None:
        check_asking(self.llm, _ROOM, self.answer_tokens)
        if self.command is not None and not self.command:
            raise UsageError("curator.command is empty; it must be a list of words, such as [python3, peer.py]")
        if self.batches not in get_args(Batches):
            raise UsageError(f"curator.batches={self.batches!r}, valid are {', '.join(get_args(Batches))}")
        for name in ("starts", "seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(f"curator.{name}={getattr(self, name)} must be above 0")
        if self.asks < 1:
            raise UsageError(f"curator.asks={self.asks} must be at least 1")

    @property
    def programs(self) -> Sequence[Path]:
        """Files that words of the command name, by which a run is known. Raises UsageError where there is none."""
        return files_named(self._given)

    @property
    def _given(self) -> Sequence[str]:
        if self.command is None:
            raise UsageError(
                "curator.command is null; give the command that starts the peer, such as [python3, /path/to/peer.py], "
                "or take curator=ace_framework"
            )
        return self.command

    def propose(self, jobs: Sequence[LearningJob]) -> list[Proposal]:
        """Proposals of the program, one job after the other."""
        return [self._jobs.proposal(job) for job in jobs]

    @cached_property
    def _jobs(self) -> Any:
        command = self._given
        try:
            from skg_bench.curator.shared.peer_jobs import PeerJobs, PeerSettings
        except ImportError as error:
            raise UsageError(f"curator=peer needs {error.name}: {install_hint('llm')}") from error
        settings = PeerSettings(
            command, self.name, self.makes, self.starts, self.seconds, self.asks, self.answer_tokens, self.batches
        )
        return PeerJobs(settings, self.llm)

    def __getstate__(self) -> dict[str, Any]:
        """State without the program: another process starts its own."""
        return {key: value for key, value in vars(self).items() if key != "_jobs"}
