"""Functions of several rerankers: `feature_check` refuses features that are no numbers."""
