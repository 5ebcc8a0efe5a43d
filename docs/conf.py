"""The documentation site: the Markdown that GitHub shows, built with Sphinx by `make docs`.

The lists of docs/README.md are its navigation and its llms.txt.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
SUMMARY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")

project = "wsgiload"
release = PACKAGE["version"]
copyright = PACKAGE["license"]
extensions = ["myst_parser"]
root_doc = "README"
myst_heading_anchors = 4
highlight_language = "none"
smartquotes = False  # they would change `--`
html_theme = "furo"
html_title = f"wsgiload {release}"
html_search_scorer = str(DOCS / "search.js")
html_theme_options = {
    "source_repository": f"{PACKAGE['repository']}/",
    "source_branch": "main",
    "source_directory": "docs/",
}


def setup(app: Sphinx) -> None:
    app.connect("source-read", prepare)
    app.connect("build-finished", add_files)


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Lead links out of docs/ to the repository, and make the lists of a README navigation."""
    folder = (DOCS / name).parent
    text = LINK.sub(lambda link: outward(folder, link), source[0])
    if name in (root_doc, "decisions/README"):
        text += "".join(map(toctree, re.split(r"^## ", source[0], flags=re.MULTILINE)))
    source[0] = text


def outward(folder: Path, link: re.Match[str]) -> str:
    target = (folder / link[1]).resolve()
    if target.is_relative_to(DOCS):
        return link[0]
    return f"]({PACKAGE['repository']}/blob/main/{target.relative_to(ROOT)}{link[2] or ''})"


def toctree(section: str) -> str:
    """The pages that a section links to, hidden, because it lists them itself."""
    caption, _, lines = section.lstrip("# ").partition("\n")
    pages = [link[0] for link in LINK.findall(lines) if not link[0].startswith("../")]
    names = "\n".join(dict.fromkeys(page.removesuffix(".md") for page in pages))
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{names}\n```\n" if names else ""


def add_files(app: Sphinx, error: Exception | None) -> None:
    """The start page by its usual name, and llms.txt, which links to the sources of the pages."""
    if error is None and app.builder.format == "html":
        shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")
        pages = (DOCS / "README.md").read_text()
        pages = pages.replace("\n\n", f"\n\n> {SUMMARY}\n\n", 1)
        (app.outdir / "llms.txt").write_text(LINK.sub(source_link, pages))


def source_link(link: re.Match[str]) -> str:
    if link[1].startswith("../"):
        return outward(DOCS, link)
    return f"](_sources/{link[1]}.txt)"
