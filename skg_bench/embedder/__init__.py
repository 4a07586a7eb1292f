"""Embedders, one class each: texts to vectors on the integer grid. `cache` keeps vectors for all processes."""
