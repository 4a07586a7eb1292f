"""Python objects as an assistant: what an author writes is in `contract`, what plays it in `outside`."""

from skg_bench.assistant.python.component import Python
from skg_bench.assistant.python.contract import Model, Prompt
from skg_bench.assistant.python.outside import ObjectSource, Outside

__all__ = ["Model", "ObjectSource", "Outside", "Prompt", "Python"]
