"""Runs in the places where people follow them. The run directory is the source: what a place refuses is not lost."""
