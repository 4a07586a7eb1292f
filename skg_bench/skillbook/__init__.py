"""A user's skillbook: the value, its formats, algebra, prompts, proposals of models and stored documents."""
