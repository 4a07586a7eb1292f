"""Links in a folder of somebody else: those that stay inside are followed, and no other."""

from pathlib import Path

import pytest

from skg_bench.core.errors import UsageError
from skg_bench.runfolder.links import check_links
from skg_bench.runfolder.run import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (folder := tmp_path / "run").mkdir()
    (folder / "turns").mkdir()
    (folder / "manifest.json").write_text("{}")
    (tmp_path / "private").write_text("secret")
    (tmp_path / "run-of-others").mkdir()
    return folder


@pytest.mark.parametrize("leads", ["../private", "../run-of-others", "turns/../../private", "/etc/passwd", "../gone"])
@pytest.mark.parametrize("name", ["curves.svg", "turns/a.0.parquet"])
def test_a_link_that_leads_out_is_refused_with_its_name(leads: str, name: str, folder: Path) -> None:
    (folder / name).symlink_to(leads if name == "curves.svg" or leads[0] == "/" else f"../{leads}")
    with pytest.raises(UsageError, match=f"{folder / name} is a symbolic link that leads out"):
        check_links(folder)
    with pytest.raises(UsageError, match="leads out"):
        Run(folder)


def test_a_folder_of_logs_elsewhere_is_refused_too(folder: Path) -> None:
    (folder / "updates").symlink_to("../run-of-others", target_is_directory=True)
    with pytest.raises(UsageError, match="leads out"):
        check_links(folder)


def test_links_inside_and_a_run_that_is_reached_by_a_link_are_taken(folder: Path) -> None:
    (folder / "again.json").symlink_to("manifest.json")
    (folder / "loop").symlink_to("loop")
    (folder.parent / "here").symlink_to(folder)
    check_links(folder)
    check_links(folder.parent / "here")
    check_links(folder.parent / "none")
