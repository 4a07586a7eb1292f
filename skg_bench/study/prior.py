"""Reader of priors of a simulator's parameters (prior.yaml), and draws: draw d is a function of (seed, d) alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import yaml

from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.core.grid import F64, I64
from skg_bench.core.text import text_hash

Scale = Literal["linear", "log"]
_PARAMETER = {"low", "high", "scale", "unit", "what", "source"}
_CHOICE = {"options", "what", "source"}
_FORM = "a line reads name: {low, high, scale, unit, what, source}, or name: {options, what, source}"


@dataclass(frozen=True)
class Parameter:
    """A uniform distribution on its scale, and why it is this one."""

    name: str
    low: float
    high: float
    scale: Scale
    unit: str
    what: str
    source: str

    def at(self, u: F64) -> F64:
        """Quantiles at `u` in (0, 1)."""
        if self.scale == "linear":
            return self.low + (self.high - self.low) * u
        log: F64 = np.exp(np.log(self.low) + (np.log(self.high) - np.log(self.low)) * u)
        return np.clip(log, self.low, self.high)

    def drawn(self, seed: int, draws: I64) -> F64:
        """Values at these numbers of draws, `[n]`."""
        return self.at(draw(key(seed, draws), 0, Purpose.PRIOR, text_hash(self.name)))


@dataclass(frozen=True)
class Choice:
    """Options that are equally likely, and why they are these."""

    name: str
    options: tuple[str, ...]
    what: str
    source: str

    def drawn(self, seed: int, draws: I64) -> np.ndarray:
        """Options at these numbers of draws, `[n]`."""
        u = draw(key(seed, draws), 0, Purpose.PRIOR, text_hash(self.name))
        return np.array(self.options)[(u * len(self.options)).astype(np.int64)]


@dataclass(frozen=True)
class Prior:
    """All that is drawn, in the order of its file."""

    parameters: tuple[Parameter, ...]
    choices: tuple[Choice, ...]


@lru_cache
def read(file: Path) -> Prior:
    """The prior of a yaml file: `name: {low, high, scale, unit, what, source}`, or `name: {options, what, source}`.

    Raises UsageError for a file that cannot be read, and for limits that are no interval.
    """
    try:
        content: Any = yaml.safe_load(text_of(file))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{file} is no prior: it cannot be read as yaml ({reason}); name another file") from error
    if not isinstance(content, Mapping) or not all(isinstance(row, Mapping) for row in content.values()):
        raise UsageError(f"{file} is no prior: {_FORM}")
    rows: Mapping[str, Mapping[str, Any]] = content
    for name, row in rows.items():
        valid = _CHOICE if "options" in row else _PARAMETER
        if set(row) != valid:
            given = ", ".join(map(str, row)) or "nothing"
            raise UsageError(f"{file} is no prior: {name} has {given}; {_FORM}")
    try:
        choices = {
            name: Choice(name, tuple(row["options"]), row["what"], row["source"])
            for name, row in rows.items()
            if "options" in row
        }
        parameters = tuple(
            Parameter(name, **{**row, "low": float(row["low"]), "high": float(row["high"]), "unit": str(row["unit"])})
            for name, row in rows.items()
            if name not in choices
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file} is no prior ({error}); {_FORM}") from error
    for each in parameters:
        if each.scale not in get_args(Scale) or not -np.inf < each.low <= each.high < np.inf:
            raise UsageError(
                f"{file}: {each.name} goes from {each.low:g} to {each.high:g} on scale {each.scale!r}; valid are two "
                "finite numbers, the smaller one first, on scale linear or log"
            )
        if each.scale == "log" and each.low <= 0:
            raise UsageError(f"{file}: {each.name} begins at {each.low:g}, and scale log needs numbers above 0")
    return Prior(parameters, tuple(choices.values()))
