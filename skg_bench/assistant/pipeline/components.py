"""The components of a pipeline, and when they are called."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

from skg_bench.asking.asking import components_within
from skg_bench.assistant.pipeline.learning_time import LearningTime
from skg_bench.assistant.pipeline.seeding import SeedBook
from skg_bench.assistant.pipeline.signals import Signals
from skg_bench.assistant.pipeline.signs import Signs
from skg_bench.core.abilities import AsksModel, LimitsPrompt, WritesStrategies
from skg_bench.core.arms import Arm
from skg_bench.core.deciding import Policy
from skg_bench.core.errors import UsageError
from skg_bench.core.types import Curator, Reranker, Router, Serving
from skg_bench.core.world import ReadingWorld, World
from skg_bench.skillbook.library.strategies import packaged, strategies
from skg_bench.skillbook.prompt_layout import frame_size

Scope = Literal["user", "pool", "pool+user"]
NamedBy = Literal["type", "intent"]


AT_ONCE = LearningTime(0.0, 0.0, 0.0, 0.0, "rebase", 1.0)


@dataclass(frozen=True)
class Components:
    """One complete choice."""

    router: Router
    reranker: Reranker
    policy: Policy[Any]
    curator: Curator[Any]
    signals: Signals
    serving: Serving
    named_by: NamedBy  # what users are asked to name: the request as it is, or all requests of its intent
    refit_every: int  # turns of a user between refits of the scorer
    refit_on_capture: bool
    refit_apart: int  # turns of a user at least from one refit to the next: captures between them wait
    decline_is_miss: bool  # a declined offer is logged as "miss" (SKG paper, section 3, step 2)
    scope: Scope = "user"  # whose ratings the scorer learns from, see pretraining.py
    pool: int | str = 100  # people on whom a shared scorer is fitted, or the file of one
    signs: Signs | None = None  # what feedback counts as; None: nothing
    seeds: SeedBook | None = None  # what each user's skillbook starts with; None: nothing
    jobs: LearningTime = AT_ONCE  # how long learning takes

    def __post_init__(self) -> None:
        if self.serving not in get_args(Serving):
            raise UsageError(f"serving={self.serving!r}, valid are {', '.join(get_args(Serving))}")
        if self.named_by not in get_args(NamedBy):
            raise UsageError(f"named_by={self.named_by!r}, valid are {', '.join(get_args(NamedBy))}")
        if self.serving != "stored" and "agrees" in self.policy.reads:
            raise UsageError(
                f"serving={self.serving} leaves {type(self.policy).__name__} without stored answers to compare; take "
                "serving=stored, or another policy"
            )
        if not isinstance(self.router, Router):
            raise UsageError(
                f"router={type(self.router).__name__} is no core.types.Router; its class must declare sees_truth, and "
                "as top_k how many places its shortlists have"
            )
        if self.refit_every < 1:
            raise UsageError(f"refit_every={self.refit_every} must be at least 1")
        if self.refit_apart < 1:
            raise UsageError(f"refit_apart={self.refit_apart} must be at least 1")
        if self.scope not in get_args(Scope):
            raise UsageError(f"scope={self.scope!r}, valid are {', '.join(get_args(Scope))}")
        if isinstance(self.pool, int) and self.pool < 1:
            raise UsageError(f"pool={self.pool} must be a number of users, at least 1, or the file of a fitted scorer")

    @property
    def sees_truth(self) -> bool:
        """Is one of them an oracle?"""
        return self.router.sees_truth or self.curator.sees_truth

    def check(self, arm: Arm) -> None:
        """Raises UsageError for what the arm asks of them and they do not do."""
        if arm.book != "own" and self.curator.reasons:
            raise UsageError(f"book={arm.book} serves a given skillbook and learns nothing; add curator=none")
        if not self.jobs.at_once and self.curator.reasons and not asks_model(self.curator):
            raise UsageError(
                f"jobs.call_seconds={self.jobs.call_seconds}: curator={type(self.curator).__name__} "
                "learns at once; take curator=reflective or reflecting, or jobs=at_once"
            )
        if arm.freeze is not None and self.curator.sees_truth:
            raise UsageError(f"freeze={arm.freeze} cannot stop a curator that sees the truth; take another curator")
        if arm.fork is None:
            return
        trunk = arm.fork.arm
        if not isinstance(trunk.assistant, HasComponents):
            raise UsageError(f"fork={trunk.name}@{arm.fork.turn}: {trunk.name} has no skillbook to go on from")
        if arm.fork.turn > 0 and components(trunk).seeds != self.seeds:
            raise UsageError(
                f"seeds differ from those of {trunk.name}, whose skillbooks this arm goes on with; leave them out"
            )
        if arm.fork.turn > 0 and self.jobs.at_once and not components(trunk).jobs.at_once:
            raise UsageError(
                f"jobs.call_seconds=0, and learning jobs of {trunk.name} under way at the fork would never end; leave "
                "jobs as they are there"
            )
        if components(trunk).signals.names != self.signals.names:
            raise UsageError(
                f"signals.features differ from those of {trunk.name}, on which the ratings of the time before "
                "the fork were recorded; fork from an arm with the same features"
            )

    def unlogged(self) -> str | None:
        """Reason why a replayed log cannot serve them, after `arm NAME`; None: it can."""
        if "agrees" in self.policy.reads:
            return "compares answers of the LLM with stored ones, and a log does not say which agree"
        if self.serving == "procedure":
            return "runs procedures, and nobody knows what they would have said; take serving=stored or prompted"
        if self.scope != "user" and not isinstance(self.pool, str):
            return "learns from people beside the users, and a log has no others"
        return None

    def unread(self, world: World[Any]) -> str | None:
        """Reason why they cannot be used in a world, after `arm NAME`; None: they can."""
        if self.signs is not None:
            self.signs.check(world.domain)
        if world.domain.in_words:
            return self._unworded()
        if not world.domain.answers:
            return self._unsaid(cast("ReadingWorld[Any]", world))
        if self.seeds is not None and self.seeds.described:
            return (
                "has a folder of skills as seeds, and where skills are answers, what a skill says changes nothing; "
                "take a world that reads what skills say, one that judges words, or seeds=null"
            )
        return None

    def _unworded(self) -> str | None:
        """Reason why a world that judges words cannot use them, after `arm NAME`; None: it can."""
        if self.serving == "procedure":
            return "has serving=procedure, and this world judges words alone; take serving=prompted or stored"
        if "agrees" in self.policy.reads:
            return (
                f"compares answers with stored ones ({type(self.policy).__name__}), and this world does not say "
                "whether two texts agree; take another policy"
            )
        return None

    def _unsaid(self, world: ReadingWorld[Any]) -> str | None:
        """Reason why a world that reads what skills say cannot use them, after `arm NAME`; None: it can."""
        if self.serving != "prompted":
            return f"has serving={self.serving}, and what skills say goes into a prompt; take serving=prompted"
        for part in components_within(self.curator):
            if isinstance(part, WritesStrategies) and strategies(folder := part.strategies).digest != world.digest:
                return (
                    f"learns strategies of {folder or packaged()} (curator.strategies), and the world has others "
                    "(simulator.strategies); give both the same folder"
                )
        whole = isinstance(self.router, LimitsPrompt) and self.router.lists_whole
        if self.seeds is not None and self.seeds.described and whole:
            return "has a folder of skills as seeds, of which descriptions are listed; take router=described"
        seeds = () if self.seeds is None else [skill.content for skill in self.seeds.skills]
        shortest = min(frame_size(content) for content in (*world.texts, *seeds) if content is not None)
        if isinstance(self.router, LimitsPrompt) and (limit := self.router.limit) < shortest:
            return f"has router.limit={limit}, and the shortest strategy takes {shortest} characters of a prompt"
        return None


@runtime_checkable
class HasComponents(Protocol):
    """An assistant that is made of components: a pipeline."""

    @property
    def components(self) -> Components:
        """One choice of each."""
        ...


def asks_model(curator: Curator[Any]) -> bool:
    """Does it, or a curator inside of it, learn by asking a model, real or simulated?"""
    return any(isinstance(part, AsksModel) and part.asks_model for part in components_within(curator))


def components(arm: Arm) -> Components:
    """Components of an arm with a pipeline."""
    parts: Components = arm.assistant.components  # type: ignore[union-attr]
    return parts


def with_components(arm: Arm, **changes: Any) -> Arm:
    """An arm with a pipeline in which these components are others; the arms that it forks from stay."""
    return replace(arm, assistant=replace(arm.assistant, components=replace(components(arm), **changes)))  # type: ignore[type-var]


def refits(arm: Arm, turn: int) -> bool:
    """May the scorer learn at the user's turn `turn`? Not if the curator learns nothing, or from the truth."""
    curator = components(arm).curator
    learning = bool(curator.reasons) and not curator.sees_truth
    return learning and arm.frozen(turn) in (None, "book")
