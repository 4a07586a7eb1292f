"""What several models of texts use."""
