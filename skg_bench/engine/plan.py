"""Plan of a run: all that it is made of."""

from dataclasses import dataclass
from typing import Any

from skg_bench.core.arms import Arm
from skg_bench.core.assistant import Keeping, Stackable
from skg_bench.core.draws import salted
from skg_bench.core.errors import UsageError
from skg_bench.core.record import replay_of
from skg_bench.core.spoken import SpeakingLLM
from skg_bench.core.types import Embedder
from skg_bench.core.world import World
from skg_bench.engine.agreement_judge import JUDGE, AgreementJudge
from skg_bench.engine.sharing_arms import check_instances


@dataclass(frozen=True)
class Plan:
    """Arms over the events of the same users."""

    seed: int
    users: int
    weeks: int
    simulator: World[Any]
    embedder: Embedder
    arms: tuple[Arm, ...]
    comparison: AgreementJudge = JUDGE  # of answers, for arms that read `agrees`
    salt: int = 0  # 128 bits, in the key of every draw beside the seed

    @property
    def salted(self) -> int:
        """Seed and salt, as worlds and keys take them (core/draws.py)."""
        return salted(self.seed, self.salt)

    def __post_init__(self) -> None:
        if self.simulator.stream == "reactive" and len(self.arms) > 1:
            raise UsageError(
                f"the users of this simulator bring other events after other answers (stream: reactive), so that "
                f"{self.arms[0].name} and {self.arms[1].name} cannot be held against one another event by event; run "
                "one arm at a time, without forks"
            )
        if replay_of(self.simulator) is not None:
            for arm in self.arms:
                if reason := _unlogged(arm):
                    raise UsageError(f"arm {arm.name!r} {reason}; leave it out: '~arms.{arm.name}'")
        check_instances(self.arms, self.users, self.simulator.stream)
        for arm in self.arms:
            if reason := _unspoken(arm, self.simulator) or _unread(arm, self.simulator):
                raise UsageError(f"arm {arm.name!r} {reason}")


def _unspoken(arm: Arm, world: World[Any]) -> str | None:
    """Reason why a world cannot judge what the model of an arm says; None: it can."""
    speaks = all(isinstance(phase.llm, SpeakingLLM) for phase in arm.phases)
    if world.domain.in_words and not speaks:
        return (
            "is answered by a model without words (llm=simulated), and this world judges words; take llm=in_words, "
            "with the model to be asked inside: llm.llm=scripted, endpoint or recorded"
        )
    if not world.domain.in_words and any(isinstance(phase.llm, SpeakingLLM) for phase in arm.phases):
        return (
            "is answered in words (llm=in_words), and this world judges only answers that it made itself; take "
            "llm=simulated, or a world that judges words: simulator=told"
        )
    return None


def _unread(arm: Arm, world: World[Any]) -> str | None:
    """Reason why an arm and this world do not agree on what is said; None: they do."""
    if world.domain.answers and any(phase.mood == "fresh" for phase in arm.phases):
        return "has mood=fresh, and users remember nothing that was said here; leave mood out"
    assistants = [phase.assistant for phase in arm.phases]
    if not world.domain.answers and (words := [each.name for each in assistants if isinstance(each, Keeping)]):
        return (
            f"says words of its own ({words[0]}), and this world reads what skills of a skillbook say, and no words; "
            "take simulator=assistant, facts or told"
        )
    reasons = [assistant.unread(world) for assistant in assistants if isinstance(assistant, Stackable)]
    return next((reason for reason in reasons if reason), None)


def _unlogged(arm: Arm) -> str | None:
    """Reason why a replayed log cannot serve an arm; None: it can."""
    assistants = [phase.assistant for phase in arm.phases]
    if any(assistant.sees_truth for assistant in assistants):
        return "knows which answers are right, and no log does"
    reasons = [assistant.unlogged() for assistant in assistants if isinstance(assistant, Stackable)]
    if arm.book == "donor":
        reasons.append("learns from people beside the users, and a log has no others")
    return next((reason for reason in reasons if reason), None)
