"""What several rerankers use: `feature_check` refuses features that are no numbers."""
