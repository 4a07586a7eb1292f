"""Rerankers, one module each: recipes that learn scores from rated turns."""
