"""Checks of the configuration's root keys, and of the keys in which an arm may differ."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from skg_bench.app.arm_keys import PARTS_OF_PIPELINE, PIPELINE, SEAMS_OF_ARMS, SHARED_SEAMS
from skg_bench.app.overrides import Override
from skg_bench.core.errors import UsageError, nearest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_PLAIN_WORDS = {None: "null", True: "true", False: "false"}  # as a command writes them
_PRICES = ("wrong", "usd", "second", "offer")  # keys of `utility`: PRICES, whose module takes long to import


def _whole(low: int, high: int = 2**31 - 1) -> Callable[[Any], str | None]:
    def wrong(value: Any) -> str | None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return None if whole and low <= value <= high else f"must be a whole number from {low} to {high}"

    return wrong


def _salt(value: Any) -> str | None:
    text = value in ("draw", "env") or (isinstance(value, str) and re.fullmatch("0x[0-9a-fA-F]{1,32}", value))
    if text or not _whole(0, 2**128 - 1)(value):
        return None
    return "must be draw, env, or a number of 128 bits: whole, from 0, or 0x and up to 32 hex digits"


def _or_null(check: Callable[[Any], str | None]) -> Callable[[Any], str | None]:
    def wrong(value: Any) -> str | None:
        reason = None if value is None else check(value)
        return reason and f"{reason}, or null: all of a recorded log"

    return wrong


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a text; quote it"


def _name(value: Any) -> str | None:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return None
    return "must be a name of letters, digits, - and _ (at most 40), as files are named by it"


def _path(value: Any) -> str | None:
    if isinstance(value, str) and value.partition("/")[0] == "~":
        return "would be a folder called ~ here, as no shell has replaced it; write the whole path"
    return None if value is None or (isinstance(value, str) and value) else "must be a folder, or null"


def _part(value: Any) -> str | None:
    match = None if value is None else re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(value))
    if value is None or (match and int(match[1]) < int(match[2])):
        return None
    return "must be I/N with I from 0 to N-1, such as 0/3, 1/3 and 2/3 for three parts, or null: the whole run"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _serving(value: Any) -> str | None:
    return None if value in ("stored", "prompted", "procedure") else "must be stored, prompted or procedure"


def _named_by(value: Any) -> str | None:
    return None if value in ("type", "intent") else "must be type or intent"


def _milliseconds(value: Any) -> str | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return None if number and 0 <= value < 1e12 else "must be milliseconds, not negative"


def _no_fork(value: Any) -> str | None:
    return None if value is None else "must be null: it is arms that fork, as in '+arms.NAME=[fork=ARM@TURN]'"


def _own(value: Any) -> str | None:
    return None if value == "own" else "must be own; an arm that forks may serve another: '+arms.NAME=[book=donor,...]'"


def _freeze(value: Any) -> str | None:
    return None if value in (None, "book", "book+scorer", "all") else "must be book, book+scorer or all, or null"


def _freeze_at(value: Any) -> str | None:
    return None if value is None else _whole(0)(value)


def _mood(value: Any) -> str | None:
    return None if value in ("own", "fresh") else "must be own or fresh"


def _scope(value: Any) -> str | None:
    return None if value in ("user", "pool", "pool+user") else "must be user, pool or pool+user"


def _pool(value: Any) -> str | None:
    if isinstance(value, str):
        return None if value else "must be a number of users, or the file of a fitted scorer"
    return _whole(1, 2**24)(value)


def _seeds(value: Any) -> str | None:
    return (
        None
        if value is None or (isinstance(value, str) and value)
        else "must be a name, or the file or folder of a skillbook"
    )


def _learner(value: Any) -> str | None:
    return None if value is None or isinstance(value, str) else "must be the name of an arm, or null"


def _contrasts(value: Any) -> str | None:
    if value == []:
        return None
    from skg_bench.analysis.comparison.contrasts import KINDS, Contrast

    keys = [field.name for field in fields(Contrast) if field.name != "bound"]
    if not isinstance(value, list) or not all(
        isinstance(entry, Mapping) and set(entry) - {"bound"} == set(keys) for entry in value
    ):
        return f"must be a list of entries with exactly the keys {', '.join(keys)}, and bound if you like"
    kinds = [entry["kind"] for entry in value if entry["kind"] not in KINDS]
    return f"has kind {kinds[0]!r}; kinds are {', '.join(map(repr, KINDS))}" if kinds else None


def _comparison(value: Any) -> str | None:
    keys = ("errs", "usd")
    if not isinstance(value, Mapping) or set(value) != set(keys):
        return f"must have exactly the keys {', '.join(keys)}"
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < 1e12 for v in value.values())
    return None if numbers and value["errs"] <= 0.5 else "must be numbers, none negative, and errs at most 0.5"


def _utility(value: Any) -> str | None:
    if not isinstance(value, Mapping) or set(value) != set(_PRICES):
        return f"must have exactly the keys {', '.join(_PRICES)}"
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < 1e12 for v in value.values())
    return None if numbers else "must be numbers, none negative"


SCALARS: Mapping[str, Callable[[Any], str | None]] = {
    "experiment": _name,
    "profile": _name,
    "question": _text,
    "seed": _whole(0, 2**63 - 1),
    "salt": _salt,
    "users": _or_null(_whole(1)),
    "weeks": _or_null(_whole(1, 520)),
    "cohort": _whole(1),
    "workers": _whole(1, 1024),
    "part": _part,
    "out": _path,
    "serving": _serving,
    "named_by": _named_by,
    "hit_latency_ms": _milliseconds,
    "refit_every": _whole(1),
    "refit_on_capture": _flag,
    "refit_apart": _whole(1),
    "scope": _scope,
    "pool": _pool,
    "decline_is_miss": _flag,
    "seeds": _seeds,
    "fork": _no_fork,
    "book": _own,
    "freeze": _freeze,
    "freeze_at": _freeze_at,
    "mood": _mood,
    "utility": _utility,
    "comparison": _comparison,
    "reference": _text,
    "learner": _learner,
    "contrasts": _contrasts,
}


def check_root(root: Mapping[str, Any]) -> None:
    """Keys and values of the composed root, components aside.

    Raises UsageError.
    """
    known = {*SCALARS, *SHARED_SEAMS, *SEAMS_OF_ARMS, "arms", "controls_of"}
    for key in root:
        if key not in known:
            raise UsageError(f"the configuration has an unknown key {key!r} at its root; {nearest(key, known)}")
    for key in known - set(root):
        raise UsageError(f"the configuration lacks {key!r}; write `{key}:` into the yaml of the experiment")
    for key, wrong in SCALARS.items():
        if (reason := wrong(root[key])) is not None:
            shown = _PLAIN_WORDS[root[key]] if isinstance(root[key], bool | None) else repr(root[key])
            raise UsageError(f"{key}={shown} {reason}")
    check_arms(root["arms"], root["reference"])
    if root["learner"] is not None and root["learner"] not in root["arms"]:
        raise UsageError(f"learner={root['learner']!r} is no arm; {nearest(root['learner'], root['arms'])}")
    for contrast in root["contrasts"]:
        for arm in (contrast["arm"], contrast["reference"], *([contrast["bound"]] if "bound" in contrast else [])):
            if arm not in root["arms"]:
                raise UsageError(
                    f"contrasts has {contrast['arm']} against {contrast['reference']}, and {arm!r} is no arm; "
                    f"{nearest(arm, root['arms'])}, or name no contrasts: contrasts=[]"
                )


def check_arms(arms: Any, reference: str) -> None:
    """A table of arms: names to lists of overrides.

    Raises UsageError.
    """
    if not isinstance(arms, Mapping) or not arms:
        raise UsageError("there are no arms; choose an experiment, or add one with '+arms.NAME=[policy=never]'")
    for name, texts in arms.items():
        if reason := _name(name):
            raise UsageError(f"arm {name!r}: its name {reason}")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            hint = "" if texts else f"; '~arms.{name}' removes the arm"
            raise UsageError(f"arm {name!r}: {texts!r} must be a list of overrides such as [policy=never]{hint}")
    if reference not in arms:
        raise UsageError(f"reference={reference!r} is no arm; {nearest(reference, arms)}")


def check_arm_key(override: Override, where: str) -> None:
    """Arms share users and random draws, so they differ in components only.

    Raises UsageError.
    """
    if override.head in SCALARS.keys() - set(SEAMS_OF_ARMS) or override.head in (*SHARED_SEAMS, "arms"):
        raise UsageError(
            f"{where}{override.text}: all arms share {override.head}, so that they are compared on the same users and "
            f"the same random draws; an arm may override {', '.join(SEAMS_OF_ARMS)}"
        )


def check_parts(assistant: str, overrides: Sequence[Override], where: str) -> None:
    """Only a pipeline has the parts of one; `assistant` is the class of the arm's.

    Raises UsageError.
    """
    wrong = [] if assistant == PIPELINE else [o for o in overrides if o.head in PARTS_OF_PIPELINE]
    if wrong:
        raise UsageError(
            f"{where}{wrong[0].text}: {wrong[0].head} is a part of assistant=pipeline, and this arm's assistant is "
            f"{assistant}; leave it out, or set what that one has: assistant.PARAMETER=VALUE"
        )
