"""Stores of skillbooks, one module each: one document and one version a user, changed by compare and swap."""
