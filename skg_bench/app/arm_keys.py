"""Keys of the configuration that all arms share, those in which arms may differ, and the parts of a pipeline."""

SHARED_SEAMS = ("simulator", "embedder", "tracker", "launcher")
PIPELINE = "skg_bench.assistant.pipeline.Pipeline"
PARTS_OF_PIPELINE = (
    "router", "reranker", "policy", "curator", "signals", "serving", "named_by", "refit_every", "refit_on_capture",
    "refit_apart", "scope", "pool", "decline_is_miss", "signs", "seeds", "jobs",
)  # fmt: skip
SEAMS_OF_ARMS = (
    "assistant", *PARTS_OF_PIPELINE, "llm", "hit_latency_ms", "fork", "book", "freeze", "freeze_at", "mood",
)  # fmt: skip
