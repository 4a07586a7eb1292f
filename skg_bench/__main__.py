"""`python -m skg_bench` is `skg-bench`. Ctrl-C is handled before anything is imported that takes time."""

import sys

from skg_bench.app import interrupts


def main() -> None:
    """Entry point of `skg-bench`; Ctrl-C ends it with exit code 130, also while the command line is imported."""
    interrupts.install_handlers()
    try:
        from skg_bench.app import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(interrupts.CODE)


if __name__ == "__main__":
    main()
