"""The simulator's parameters: bad ones are refused by name."""

import pytest
import yaml

from skg_bench.core.errors import UsageError
from skg_bench.core.paths import CONF
from skg_bench.simulator.assistant import Assistant


def test_negative_rates_are_refused_by_name() -> None:
    defaults = yaml.safe_load((CONF / "simulator" / "assistant.yaml").read_text())
    del defaults["_target_"]
    with pytest.raises(UsageError, match="simulator.messages_per_day=-1"):
        Assistant(**defaults | {"messages_per_day": -1})
