"""Templates, stylesheets and scripts of the pages, which lie beside this module."""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

_PACKAGE = "skg_bench.analysis.report"


@cache
def page_template(name: str) -> Template:
    """A template; compiling that of a run's page takes as long as a page of a small run."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template(name)


def page_asset(name: str) -> Markup:
    """A stylesheet or script."""
    return Markup((files(_PACKAGE) / name).read_text("utf-8"))  # noqa: S704  our own file
