"""Configuration, command line and wiring; the only part that knows Hydra."""
