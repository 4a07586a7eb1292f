"""Assistants, one module or folder each: they answer messages and learn from feedback. `pipeline` is ours."""
