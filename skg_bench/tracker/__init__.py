"""Trackers, one module each: runs in the places where people follow them, such as MLflow and Opik.

The run directory is the source: what a sink refuses is not lost. `events` and `learning_traces` make the traces
that all send.
"""
