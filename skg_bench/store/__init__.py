"""Stores of skillbooks: one document and one version a user, changed by compare and swap."""
