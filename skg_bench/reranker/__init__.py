"""Recipes that learn from rated turns."""
