"""Runs in the places where people follow them. The run directory is the source: what a sink refuses is not lost."""
