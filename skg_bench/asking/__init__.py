"""Asking models of texts: prompts, exchanges, recordings, budgets and the event loop.

`prompts` reads `skg_bench/prompts/*.md`, `exchange` is one prompt and its completion, `sending` retries, `refusals`
says what no retry can mend, `recording` keeps answers, `spending` counts money. Models themselves stand in `llm`.
"""
