"""Links between the documents of this repository lead to existing files and headings."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# External links are not checked.
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def documents() -> list[Path]:
    """The Markdown files that git does not ignore; without git, those in the usual directories."""
    options = ["-z", "--cached", "--others", "--exclude-standard", "*.md"]
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        return [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/results/*.md")]
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).exists()]


def anchors(path: Path) -> Iterator[str]:
    """The anchors that GitHub generates for the headings."""
    for title in re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_existing_files_and_headings(path: Path) -> None:
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        name, _, heading = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def test_documents_and_links_are_found() -> None:
    documents_by_name = {path.relative_to(ROOT).as_posix(): path for path in documents()}
    assert {"README.md", "docs/checks.md", "docs/decisions/README.md"} <= set(documents_by_name)
    assert len(LINK.findall(documents_by_name["README.md"].read_text())) > 20
