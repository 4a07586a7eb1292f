"""How each arm looks everywhere on the page: one colour, one dash, one width, the same in every figure and table.

Colours are told apart by readers with any colour vision (after Okabe and Ito 2008, darkened or lightened to at least
4.5:1 on their background); dashes tell arms apart on a grey printer. Learning arms are strong, frozen ones share a
family, controls are quiet.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skg_bench.analysis.summary.document import Summary
from skg_bench.runfolder.run import Run

ArmKind = Literal["learning", "frozen", "control"]
ARMS_SHOWN = 6  # arms that are on when the page opens


@dataclass(frozen=True, slots=True)
class Look:
    """An arm's name, what kind of arm it is, and how it is drawn."""

    arm: str
    css: str  # class name, safe whatever the arm is called
    kind: ArmKind
    light: str
    dark: str
    dash: str
    width: float
    shown: bool  # on when the page opens
    drawn: bool  # has lines in the charts
    main: bool  # the learner or its reference
    overrides: Sequence[str]

    @property
    def classes(self) -> str:
        """Classes of a drawn element of this arm."""
        return f"{self.css} {self.kind}{' main' if self.main else ''}"


LEARNING = (
    ("#0062b0", "#5cb0f5"), ("#c04a00", "#ff9a57"), ("#8e3a94", "#d893dd"), ("#00795c", "#3ecfa6"),
    ("#8a6a00", "#dcb93c"), ("#a8324a", "#f58ba0"),
)  # fmt: skip
FROZEN = (("#007a80", "#4fc3c9"), ("#4a7d2c", "#98cc74"), ("#80652a", "#cfae69"), ("#5a6b9c", "#a3b4e6"))
CONTROL = (("#8f5a7d", "#d59fc3"), ("#6b6b2f", "#bdbd74"), ("#5d6873", "#a3aeb9"), ("#91606a", "#d8a5ae"))
REFERENCE_COLOURS, ORACLE_COLOURS = ("#15191e", "#f0f2f4"), ("#76600f", "#d4bd62")
FROZEN_DASHES = ("7 3", "3 2.5", "9 2.5 2 2.5", "5 5")
CONTROL_DASHES = ("1.5 2", "6 2 1.5 2", "4 2", "10 3", "1.5 4")


def looks_of(run: Run, content: Summary) -> list[Look]:
    """The looks of a run's arms. An arm that did the same as the reference on every turn has no line of its own."""
    gaps = {arm: by_metric.get("utility") for arm, by_metric in content.differences.items()}
    same = [arm for arm, gap in gaps.items() if arm != content.learner and gap and gap.verdict == "identical"]
    compositions, overrides = run.manifest.get("compositions") or {}, run.config.get("arms") or {}
    return looks(run.arms, content.reference, compositions, overrides, learner=content.learner, same=same)


def looks(
    arms: Sequence[str],
    reference: str | None,
    compositions: Mapping[str, Any],
    overrides: Mapping[str, Any],
    prefix: str = "arm",
    *,
    learner: str | None = None,
    same: Collection[str] = (),
) -> list[Look]:
    """The look of each arm, in the order given; `prefix` begins the names of their classes.

    `learner`: the arm that the page is about, the first one by default. `same`: arms that are not drawn.
    """
    kinds = {arm: kind(arm, arms, reference, compositions) for arm in arms}
    main = [learner or arms[0], *([] if reference is None else [reference])]
    shown_arms = arms_shown([arm for arm in arms if arm not in same], kinds, main, compositions)
    seen = {"learning": 0, "frozen": 0, "control": 0}
    out = []
    for n, arm in enumerate(arms):
        arm_kind = kinds[arm]
        k = seen[arm_kind]
        seen[arm_kind] += arm != reference and not _is(compositions, arm, "oracle")
        if arm == reference:
            (light, dark), dash, width = REFERENCE_COLOURS, "none", 1.8
        elif _is(compositions, arm, "oracle"):
            (light, dark), dash, width = ORACLE_COLOURS, "8 2 2 2 2 2", 1.5
        elif arm_kind == "learning":
            (light, dark), dash, width = LEARNING[k % len(LEARNING)], "none" if k < 6 else "8 2", 2.4
        elif arm_kind == "frozen":
            (light, dark), dash, width = FROZEN[k % len(FROZEN)], FROZEN_DASHES[k % len(FROZEN_DASHES)], 1.8
        else:
            (light, dark), dash, width = CONTROL[k % len(CONTROL)], CONTROL_DASHES[k % len(CONTROL_DASHES)], 1.6
        out.append(
            Look(
                arm,
                f"{prefix}-{n}",
                arm_kind,
                light,
                dark,
                dash,
                width,
                arm in shown_arms,
                arm not in same,
                arm in main,
                list(overrides.get(arm) or ()),
            )
        )
    return out


def kind(arm: str, arms: Sequence[str], reference: str | None, compositions: Mapping[str, Any]) -> ArmKind:
    """A learning arm decides as the first arm does and may learn; a frozen one has learned; the rest are controls. An
    assistant of another kind, which has no policy, learns in its own way.
    """
    decides = ("policy", "router") if _has_policy(compositions, arm) else ()
    first = next((a for a in arms if _has_policy(compositions, a)), arm)
    if arm == reference or any(_target(compositions, arm, s) != _target(compositions, first, s) for s in decides):
        return "control"
    if (compositions.get(arm) or {}).get("freeze") is not None:
        return "frozen"
    return "control" if "none" in _target(compositions, arm, "curator").split(".") else "learning"


def arms_shown(
    arms: Sequence[str], kinds: Mapping[str, ArmKind], main: Sequence[str], compositions: Mapping[str, Any]
) -> set[str]:
    """Arms that are on at first: `main`, what was frozen, what learns, then controls with the same policy."""
    first = _target(compositions, arms[0], "policy")
    order = [
        *[a for a in arms if a in main],
        *[a for a in arms if kinds[a] == "frozen"],
        *[a for a in arms if kinds[a] == "learning"],
        *[a for a in arms if kinds[a] == "control" and _target(compositions, a, "policy") == first],
    ]
    return set(list(dict.fromkeys(order))[:ARMS_SHOWN])


def _target(compositions: Mapping[str, Any], arm: str, seam: str) -> str:
    component = (compositions.get(arm) or {}).get(seam)
    return str(component.get("_target_", "")) if isinstance(component, Mapping) else ""


def _has_policy(compositions: Mapping[str, Any], arm: str) -> bool:
    composition = compositions.get(arm) or {}
    return "policy" in composition or "assistant" not in composition


def _is(compositions: Mapping[str, Any], arm: str, word: str) -> bool:
    return any(word in _target(compositions, arm, seam).lower() for seam in ("policy", "router", "curator"))


def stylesheet(all_looks: Sequence[Look]) -> str:
    """Rules that give each arm its colour, dash and width."""
    light = "\n".join(f".{k.css} {{ --c: {k.light}; --d: {k.dash}; --w: {k.width}px; }}" for k in all_looks)
    dark = "\n".join(f"  .{k.css} {{ --c: {k.dark}; }}" for k in all_looks)
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}"
