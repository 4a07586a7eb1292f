"""A user's skillbook: the value, its formats, algebra, prompts, proposals of models and stored documents.

`skillbook` is the value in a run, `conversion` goes between formats, `rebase` merges what was written meanwhile,
`storing` is the document of a store, `proposals` admits or refuses what a model wants. `ace` has the published formats
and modes, `agentropy` and `agent_skills` have formats of others. `word_cosines` compares what skills say, `tagging`
makes operations of late ratings, `statehash` is the hash of a book, `terms_of_book` has its
words.
"""
