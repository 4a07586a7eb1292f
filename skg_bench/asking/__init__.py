"""Asking models of texts: prompts, exchanges, recordings, budgets and the event loop."""
