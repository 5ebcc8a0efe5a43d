"""Only ``documents.base`` lets msgspec build descriptions of types, because that is not safe in
threads (``tests/integration/test_first_use.py`` uses them)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import wsgiload

PACKAGE = Path(wsgiload.__file__).parent


def builders(path: Path) -> Iterator[str]:
    """The calls that build a description of a type."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            is_typed = len(node.args) > 1 or any(word.arg == "type" for word in node.keywords)
            if called.startswith("msgspec.") and (
                called.endswith(("convert", "Decoder")) or (called.endswith("decode") and is_typed)
            ):
                yield ast.unparse(node)


def test_types_are_built_in_one_module() -> None:
    found = {
        str(path.relative_to(PACKAGE)): calls
        for path in PACKAGE.rglob("*.py")
        if (calls := list(builders(path)))
    }
    assert found.keys() == {"documents/base.py"}
