"""The version of the package, for logs, the command line and `skg_bench.__version__`."""

VERSION = "0.2.0"
