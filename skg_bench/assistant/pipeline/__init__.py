"""Router, signals, reranker, policy and curator: the assistant that the papers describe."""

from skg_bench.assistant.pipeline.pipeline import Pipeline

__all__ = ["Pipeline"]
