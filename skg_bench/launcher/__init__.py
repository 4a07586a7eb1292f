"""Launchers, one module each: how the tasks of a run are spread over processes."""
