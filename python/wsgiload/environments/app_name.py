"""``APP``: a module, and an expression on it that yields the WSGI callable; and the modules of a
Django project, by the layout of its files.

The expression is an attribute, a nested attribute, or a call of either with literal arguments, as
gunicorn accepts it: ``shop:app``, ``site:dash.server``, ``shop:create_app("test")``.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from wsgiload.catalogue.contract import Interface
from wsgiload.errors import UsageError

SHIM_MODULE = "wsgiload_app"
SHIM_APP = f"{SHIM_MODULE}:application"
SHIM = '''"""Written by wsgiload: imports the app under a name that every server accepts."""

import importlib
import sys

sys.path[:0] = {path!r}
application = importlib.import_module({module!r}).{expression}
'''


@dataclass(frozen=True, slots=True)
class AppName:
    """A parsed ``APP``; ``expression`` is Python with literal arguments only."""

    module: str
    expression: str

    @property
    def text(self) -> str:
        """``module:expression``."""
        return f"{self.module}:{self.expression}"

    @property
    def is_plain(self) -> bool:
        """Whether the name is a dotted module and one attribute, which every server accepts."""
        return self.expression.isidentifier() and self.is_module_identifier

    @property
    def is_module_identifier(self) -> bool:
        """Whether an import statement can name the module."""
        return all(part.isidentifier() for part in self.module.split("."))


def parse_app(app: str) -> AppName:
    """The module and the expression of ``APP``. Raises UsageError for anything else."""
    module, _, expression = app.partition(":")
    if not _is_module(module):
        guess = f"{module or 'myapp'}:app" if module.isidentifier() or not module else "myapp:app"
        raise not_an_app(app, f"write it as module:callable, such as {guess}")
    if not expression:
        raise not_an_app(app, f"write it as module:callable, such as {module}:app")

    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None or not _is_accepted(tree):
        raise not_an_app(
            app,
            "the callable is an attribute, or a call with literal arguments, such as "
            f"'{module}:create_app(\"test\", debug=False)'",
        )
    return AppName(module, ast.unparse(tree))


def not_an_app(app: str, fix: str) -> UsageError:
    """The error for an ``APP`` of the wrong form."""
    return UsageError(f"APP {app!r} is not module:callable", fix)


def is_path(app: str) -> bool:
    """Whether ``APP`` names a file rather than a module."""
    module = app.partition(":")[0]
    return "/" in module or (module.endswith(".py") and module != ".py")


@dataclass(frozen=True, slots=True)
class ImportedFrom:
    """The combination of ``--chdir``, ``APP`` and ``--pythonpath``."""

    folder: Path
    name: AppName
    pythonpath: tuple[Path, ...] = ()


def modules_of_path(app: str, folder: Path) -> list[ImportedFrom]:
    """The possible module names of the file in ``APP``, the most likely first; empty if it does not
    exist.

    A file in a package is imported from the folder above its topmost package.
    """
    path, _, expression = app.partition(":")
    file = (folder / path).with_suffix(".py") if not path.endswith(".py") else folder / path
    file = file.resolve()
    if not file.is_file():
        return []

    top = file.parent
    while (top / "__init__.py").is_file() and top != top.parent:
        top = top.parent
    folders = [top]
    if file.is_relative_to(folder) and folder != top:
        folders.append(folder)
    names = [".".join(file.relative_to(parent).with_suffix("").parts) for parent in folders]
    return [
        ImportedFrom(parent, parse_app(f"{name}:{expression or 'app'}"))
        for parent, name in zip(folders, names, strict=True)
    ]


def from_here(path: Path) -> str:
    """The path, relative to the current folder if it is inside."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def shadowed_modules(folder: Path) -> list[str]:
    """The modules of ``folder`` with the name of a standard-library module."""
    try:
        local_modules = [path.stem for path in folder.glob("*.py")]
        local_modules += [path.parent.name for path in folder.glob("*/__init__.py")]
    except OSError:
        return []
    return sorted(set(local_modules) & sys.stdlib_module_names)


def needs_shim(app: str, folder: Path, pythonpath: Sequence[Path] = ()) -> bool:
    """Whether servers need a generated module to serve the app.

    ``PYTHONPATH`` precedes the standard library, so a ``json.py`` of the app would replace the
    server's ``json``. Without wsgiload, a server adds the app's folder only after it has started;
    the generated module does the same.
    """
    names = [name for place in (folder, *pythonpath) for name in shadowed_modules(place)]
    return bool(pythonpath or names) or not parse_app(app).is_plain


def shim_folder(
    app: str, folder: Path, scratch: Path, pythonpath: Sequence[Path] = ()
) -> Path | None:
    """A folder with the generated module, in which ``SHIM_APP`` names the app; None if not
    needed."""
    if not needs_shim(app, folder, pythonpath):
        return None
    name, shims = parse_app(app), scratch / "shim"
    path = [str(folder), *map(str, pythonpath)]
    text = SHIM.format(path=path, module=name.module, expression=name.expression)
    shims.mkdir(exist_ok=True)
    (shims / f"{SHIM_MODULE}.py").write_text(text, encoding="utf-8")
    return shims


def _is_module(module: str) -> bool:
    """Whether this can be a module name. ``my-app`` can: it is no identifier, but importable."""
    is_file = module.endswith(".py") or "/" in module
    return (
        not is_file
        and all(part and part == part.strip() for part in module.split("."))
        and module.isprintable()
        and not set(module) & set(" ()[]{}\"'`$;,=")
    )


def _is_accepted(tree: ast.expr) -> bool:
    if not isinstance(tree, ast.Call):
        return _is_attribute(tree)
    values = [*tree.args, *(keyword.value for keyword in tree.keywords)]
    is_named = all(keyword.arg is not None for keyword in tree.keywords)
    return is_named and _is_attribute(tree.func) and all(map(_is_literal, values))


def _is_attribute(tree: ast.expr) -> bool:
    while isinstance(tree, ast.Attribute):
        tree = tree.value
    return isinstance(tree, ast.Name)


def _is_literal(tree: ast.expr) -> bool:
    try:
        ast.literal_eval(tree)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


_SETTINGS = re.compile(r"""DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([A-Za-z_][\w.]*)['"]""")
_HOSTS = re.compile(r"ALLOWED_HOSTS\b[^\n=]*=(.*?)(?:\n\n|\n(?=\w)|\Z)", re.DOTALL)
_LITERAL = re.compile(r"""['"]([^'"\n]+)['"]""")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?")
MANAGE = "manage.py"
MAX_BYTES = 100_000
MAX_HOSTS = 8


def projects(folder: Path) -> list[Path]:
    """The folders with a ``manage.py``: the given one, then those in it."""
    return [
        path.parent
        for path in (folder / MANAGE, *sorted(folder.glob(f"*/{MANAGE}")))
        if path.is_file()
    ]


def app_modules(project: Path, interface: Interface) -> list[str]:
    """The modules of a project that are named like the interface, as in ``startproject``."""
    names = sorted(path.parent.name for path in project.glob(f"*/{interface}.py"))
    return [f"{name}.{interface}" for name in names if name.isidentifier()]


def settings_modules(project: Path) -> list[str]:
    """The settings modules: those that ``manage.py`` names, then those for production."""
    named = _SETTINGS.findall(_text(project / MANAGE))
    files = [
        *sorted(project.glob("*/settings/prod*.py")),
        *sorted(project.glob("*/settings.py")),
        *(file for file in sorted(project.glob("*/settings/__init__.py")) if _text(file).strip()),
    ]
    module_names = [".".join(file.relative_to(project).with_suffix("").parts) for file in files]
    return list(dict.fromkeys([*named, *(name.removesuffix(".__init__") for name in module_names)]))


def allowed_hosts(folder: Path) -> list[str]:
    """Host names that ALLOWED_HOSTS may contain, from the settings and the environment
    variables."""
    projects_of = dict.fromkeys([folder, *projects(folder)])
    patterns = ("*/settings*.py", "*/settings/*.py")
    files = [
        file for project in projects_of for glob in patterns for file in sorted(project.glob(glob))
    ]
    texts = [text for file in files for text in _HOSTS.findall(_text(file))]
    literals = chain.from_iterable(_LITERAL.findall(text) for text in texts)
    variables = [text for name, text in os.environ.items() if "ALLOWED_HOSTS" in name]
    names = chain.from_iterable(text.split(",") for text in chain(variables, literals))
    hosts = [name.strip().removeprefix(".") for name in names]
    return [name for name in dict.fromkeys(hosts) if _HOST.fullmatch(name)][:MAX_HOSTS]


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(MAX_BYTES)
    except OSError:
        return ""
