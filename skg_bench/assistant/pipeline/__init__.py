"""Router, signals, reranker, policy and curator: the assistant that the papers describe.

`decision` goes from a message to a choice, `skillbook_table` holds the skillbooks and applies batches, `conflicts` and
`under_way` are jobs that take time, `cause` books what fell short, `signs` makes ratings of outcomes.
"""

from skg_bench.assistant.pipeline.pipeline import Pipeline

__all__ = ["Pipeline"]
