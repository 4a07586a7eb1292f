"""`python -m skg_bench` is `skg-bench`."""

from skg_bench.app.cli import main

if __name__ == "__main__":
    main()
