"""App names and imports: every app that cannot be served gets one error line with a working fix."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from wsgiload.catalogue.contract import Interface
from wsgiload.environments import app_import
from wsgiload.environments.app_import import ImportContext, check_app
from wsgiload.environments.app_name import SHIM_APP, needs_shim, parse_app, shim_folder
from wsgiload.environments.interpreter import find_app_interpreter
from wsgiload.errors import AppImportError, UsageError

WSGI = "def app(environ, start_response): ...\n"
FACTORY = """
def create_app(greeting=None):
    def application(environ, start_response): ...
    return application
"""
SITE = """
class Site:
    @staticmethod
    def server(environ, start_response): ...
site = Site()
"""
ASGI = """
class App:
    async def __call__(self, scope, receive, send): ...
app = App()
async def function(scope, receive, send): ...
def make(): return App()
"""


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(tmp_path)


def check(
    directory: Path,
    app: str,
    text: str | None = None,
    timeout_s: float = 30.0,
    interface: Interface = "wsgi",
) -> None:
    if text is not None:
        (directory / "shop.py").write_text(text)

    interpreter = find_app_interpreter(directory)
    context = ImportContext(interpreter, os.environ, timeout_s=timeout_s, interface=interface)
    check_app(app, directory, context)


def test_a_valid_app_may_print_and_start_threads(tmp_path: Path) -> None:
    check(
        tmp_path,
        "shop:app",
        "import threading, time\nprint('noise')\nthreading.Thread(target=time.sleep, "
        "args=(600,)).start()\n"
        "def app(environ, start_response): ...\n",
    )


@pytest.mark.parametrize(
    ("app", "fix"),
    [
        ("shop.py:app", "shop.py does not exist"),
        ("src/shop.py:main", "src/shop.py does not exist"),
        ("shop:app(*range(2))", "literal arguments"),
        ("shop:app(open)", "literal arguments"),
        ("shop:app().other", "literal arguments"),
        ("shop:app[0]", "literal arguments"),
        ("shop:", "shop:app"),
        ("shop:" + "(" * 5_000, "literal arguments"),
        ("", "myapp:app"),
    ],
)
def test_a_malformed_app_name_is_a_usage_error(tmp_path: Path, app: str, fix: str) -> None:
    with pytest.raises(UsageError, match="is not module:callable") as error:
        check(tmp_path, app)
    assert fix in (error.value.fix or "")


def test_misspelled_names_get_suggestions(tmp_path: Path) -> None:
    text = "LIMIT = 3\ndef application(environ, start_response): ...\n"
    with pytest.raises(UsageError, match=r"no module 'shpo'.*did you mean shop:application\?"):
        check(tmp_path, "shpo:app", text)
    with pytest.raises(UsageError, match=r"no module 'shop\.deep'"):
        check(tmp_path, "shop.deep:app")
    with pytest.raises(UsageError, match=r"has no 'aplication'; did you mean shop:application"):
        check(tmp_path, "shop:aplication")
    with pytest.raises(UsageError, match="shop:LIMIT is not callable: it is of type int"):
        check(tmp_path, "shop:LIMIT")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\ndef broken(:\n", r"SyntaxError: invalid syntax at \S+shop\.py:2"),
        (
            "import not_there_at_all\n",
            r"ModuleNotFoundError: .*'not_there_at_all' at \S+shop\.py:1",
        ),
        ("from json import nothing\n", r"ImportError: cannot import name 'nothing'"),
        ("import json\n\njson.loads('{')\n", r"JSONDecodeError: .* at \S+shop\.py:3"),
        ("raise SystemExit(4)\n", r"SystemExit: 4 at \S+shop\.py:1"),
    ],
)
def test_an_import_error_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(AppImportError, match=line) as error:
        check(tmp_path, "shop:app", text)

    assert "\n" not in str(error.value)
    assert error.value.fix


def test_an_app_that_exits_at_import_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AppImportError, match="terminated the interpreter with code 7"):
        check(tmp_path, "shop:app", "import os\nos._exit(7)\n")


def test_an_import_that_never_ends_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AppImportError, match=r"did not finish within 0.5 s; raise --ready-timeout"):
        check(tmp_path, "shop:app", "import time\ntime.sleep(600)\n", timeout_s=0.5)


def test_what_a_factory_of_another_module_made_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "factory.py").write_text(FACTORY)
    with pytest.raises(UsageError, match=r"did you mean shop:app\?"):
        check(tmp_path, "shop:application", "from factory import create_app\napp = create_app()\n")


def test_nothing_of_the_standard_library_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(WSGI)
    with pytest.raises(UsageError, match=r"'site' .* standard-library module.*; rename it"):
        check(tmp_path, "./site.py:app")


@pytest.mark.parametrize(
    "app",
    [
        "shop:create_app()",
        "shop:create_app('hi')",
        'shop:create_app(greeting="hi")',
        "shop:create_app({'a': [1, None, -2.5]})",
    ],
)
def test_a_factory_may_have_literal_arguments(tmp_path: Path, app: str) -> None:
    check(tmp_path, app, FACTORY)


def test_hyphenated_modules_and_attributes_of_attributes_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "my-app.py").write_text(WSGI)
    check(tmp_path, "my-app:app")
    check(tmp_path, "shop:site.server", SITE)


@pytest.mark.parametrize(
    ("app", "text", "line"),
    [
        ("shop:create_app", FACTORY, r"is a factory.*call it: 'shop:create_app\(\)'"),
        ("shop:app", FACTORY, r"has no 'app'; did you mean 'shop:create_app\(\)'\?"),
        ("shop:make", "def make(config): ...\n", r"takes \(config\).*'shop:make\("),
        ("shop:make()", "def make(): return 3\n", r"make\(\) is not callable: .* type int"),
        ("shop:app", "def create_app(): raise ValueError\n", r"callables in it: create_app"),
    ],
)
def test_a_wrong_name_gets_a_verified_fix(tmp_path: Path, app: str, text: str, line: str) -> None:
    with pytest.raises(UsageError, match=line):
        check(tmp_path, app, text)


def test_a_factory_that_fails_is_an_import_error(tmp_path: Path) -> None:
    text = "def make():\n    raise ValueError('no database')\n"
    line = r"shop:make\(\) fails: ValueError: no database at \S+shop\.py:2"
    with pytest.raises(AppImportError, match=line):
        check(tmp_path, "shop:make()", text)


def fix_for_asgi(directory: Path, app: str) -> str:
    """Return the fix for an ASGI app after running its command without the installation."""
    line = r"is an ASGI app; add --interface asgi .*a2wsgi.*wsgi_adapter:app"
    with pytest.raises(UsageError, match=line) as error:
        check(directory, app)
    fix = error.value.fix or ""

    subprocess.run(fix.split("`")[1].rpartition("&& ")[2], shell=True, check=True)

    (directory / "a2wsgi.py").write_text(
        "class ASGIMiddleware:\n"
        "    def __init__(self, app): self.app = app\n"
        "    def __call__(self, environ, start_response): ...\n"
    )

    return fix


@pytest.mark.parametrize("app", ["shop:app", "shop:function", "shop:make", "shop:make()"])
def test_an_asgi_app_is_detected_and_gets_an_adapter(tmp_path: Path, app: str) -> None:
    (tmp_path / "shop.py").write_text(ASGI)
    assert "install a2wsgi && printf" in fix_for_asgi(tmp_path, app)
    check(tmp_path, "wsgi_adapter:app")


def test_the_adapter_is_written_next_to_the_app_and_overwrites_no_file(tmp_path: Path) -> None:
    directory = tmp_path / "back end"
    directory.mkdir()
    (directory / "my-shop.py").write_text(ASGI)

    assert "> 'back end/wsgi_adapter.py'`" in fix_for_asgi(directory, "my-shop:app")
    check(directory, "wsgi_adapter:app")

    with pytest.raises(UsageError, match=r"ASGIMiddleware in .*/wsgi_adapter\.py, then measure"):
        check(directory, "my-shop:app")


@pytest.mark.parametrize(
    ("app", "text"),
    [
        ("shop:app", ASGI),
        ("shop:function", ASGI),
        ("shop:make()", ASGI),
        ("shop:app", "def app(*args, **kwargs): ...\n"),
        ("shop:app", "def app(scope, receive, send): return send({})\n"),
        ("shop:Endpoint", "class Endpoint:\n    def __init__(self, scope, receive, send): ...\n"),
    ],
)
def test_every_form_of_an_asgi_app_is_accepted(tmp_path: Path, app: str, text: str) -> None:
    check(tmp_path, app, text, interface="asgi")


@pytest.mark.parametrize(
    ("app", "text", "line"),
    [
        ("shop:app", WSGI, r"shop:app is a WSGI app; omit --interface asgi$"),
        ("shop:create_app", FACTORY, r"shop:create_app\(\) is a WSGI app; omit"),
        ("shop:site.server", SITE, r"site\.server is a WSGI app; omit"),
        ("shop:make", ASGI, r"is a factory.*call it: 'shop:make\(\)'"),
        ("shop:server", ASGI, r"has no 'server'; did you mean shop:app\?"),
        ("shop:run", "async def run(): ...\n", r"not an ASGI app: it takes \(\), not \(scope, "),
        ("shop:LIMIT", "LIMIT = 3\n", r"name the module's ASGI callable"),
    ],
)
def test_an_app_that_is_not_asgi_gets_a_fix(tmp_path: Path, app: str, text: str, line: str) -> None:
    with pytest.raises(UsageError, match=line):
        check(tmp_path, app, text, interface="asgi")


def test_the_asgi_module_of_a_django_project_is_suggested(tmp_path: Path) -> None:
    project = tmp_path / "site_1"
    project.mkdir()
    (tmp_path / "manage.py").touch()
    (project / "wsgi.py").write_text("def application(environ, start_response): ...\n")
    (project / "asgi.py").write_text("async def application(scope, receive, send): ...\n")

    for app in ("site_1.wsgi:application", "sit:application"):
        with pytest.raises(UsageError, match=r"did you mean site_1\.asgi:application\?"):
            check(tmp_path, app, interface="asgi")
    check(tmp_path, "site_1.asgi:application", interface="asgi")


@pytest.mark.parametrize(
    "text",
    [
        "class App:\n    def __init__(self, environ, start_response): ...\napp = App\n",
        "def app(*args, **kwargs): ...\n",
        "class App:\n    def __call__(self, environ, start_response): ...\napp = App()\n",
        "import functools\ndef f(x, e, s): ...\napp = functools.partial(f, 1)\n",
    ],
)
def test_every_form_of_a_wsgi_app_is_accepted(tmp_path: Path, text: str) -> None:
    check(tmp_path, "shop:app", text)


def test_a_path_gets_the_arguments_to_use_instead(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "main.py").write_text(WSGI)
    for app in ("api/main.py:app", f"{tmp_path}/api/main:app", "api/main.py"):
        with pytest.raises(UsageError, match=r"write it as `--chdir api main:app`"):
            check(tmp_path, app)


def test_a_file_in_a_package_is_imported_from_the_parent_directory(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "__init__.py").touch()
    (tmp_path / "api" / "names.py").write_text("NAME = 1\n")
    (tmp_path / "api" / "main.py").write_text("from .names import NAME\n" + WSGI)

    with pytest.raises(UsageError, match=r"write it as api\.main:app"):
        check(tmp_path, "api/main.py:app")


def test_an_import_error_of_a_path_is_reported(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("raise ValueError('no key')\n")
    with pytest.raises(AppImportError, match="ValueError: no key"):
        check(tmp_path, "shop.py:app")


def test_a_module_in_src_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "web.py").write_text(WSGI)
    with pytest.raises(UsageError, match=r"did you mean `--pythonpath src web:app`"):
        check(tmp_path, "web:app")


def test_django_is_detected_by_manage_py(tmp_path: Path) -> None:
    (tmp_path / "manage.py").touch()
    (tmp_path / "site_config").mkdir()
    (tmp_path / "site_config" / "wsgi.py").write_text("def application(environ, respond): ...\n")

    with pytest.raises(UsageError, match=r"did you mean site_config\.wsgi:application"):
        check(tmp_path, "mysite:application")


def test_a_project_in_a_subdirectory_is_tried_with_its_environment(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "venv", "--without-pip", "backend/.venv"]
    subprocess.run(command, cwd=tmp_path, check=True)

    (packages,) = tmp_path.glob("backend/.venv/lib/python*/site-packages")
    (packages / "dependency.py").touch()
    (tmp_path / "backend" / "main.py").write_text("import dependency\n" + WSGI)

    with pytest.raises(UsageError, match=r"did you mean `--chdir backend main:app`"):
        check(tmp_path, "main:app")


def test_a_dependency_in_src_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "core.py").touch()
    with pytest.raises(AppImportError, match=r"'core'.*did you mean `--pythonpath src shop:app`"):
        check(tmp_path, "shop:app", "import core\n" + WSGI)


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("README.md", "python3 -m venv .venv && .venv/bin/python -m pip install not_there"),
        ("requirements.txt", ".venv/bin/python -m pip install -r requirements.txt"),
        ("pyproject.toml", ".venv/bin/python -m pip install -e ."),
        ("uv.lock", "uv sync"),
        ("poetry.lock", "poetry install"),
    ],
)
def test_a_missing_environment_gets_a_command_that_creates_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, command: str
) -> None:
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("PATH", "")
    (tmp_path / file).touch()

    with pytest.raises(AppImportError) as error:
        check(tmp_path, "shop:app", "import not_there.deep\n")

    fix = error.value.fix or ""
    assert fix.startswith("create an environment for the app: `") and fix.endswith(f"{command}`")


def test_a_missing_file_gets_the_directory_to_start_from(tmp_path: Path) -> None:
    project = tmp_path / "packages" / "web"
    (project / "src").mkdir(parents=True)
    (project / "greeting.txt").touch()
    (project / "src" / "web.py").write_text("open('greeting.txt').close()\n" + WSGI)
    (tmp_path / "src").symlink_to(project / "src")

    context = ImportContext(find_app_interpreter(tmp_path), os.environ)
    with pytest.raises(AppImportError, match=r"did you mean `--chdir packages/web --pythonpath"):
        check_app("web:app", tmp_path, replace(context, pythonpath=(project / "src",)))


def test_an_unset_environment_variable_is_named(tmp_path: Path) -> None:
    text = "import os\nkey = os.environ['SHOP_KEY']\n"
    with pytest.raises(AppImportError, match=r"shop\.py:2; add --env SHOP_KEY=VALUE"):
        check(tmp_path, "shop:app", text)

    with pytest.raises(AppImportError, match="to see the traceback"):
        check(tmp_path, "shop:app", "{}['SHOP_KEY']\n")


def test_modules_named_like_the_standard_library_do_not_break_the_check(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise ValueError('not json')\n" + WSGI)
    (tmp_path / "inspect.py").write_text("")
    check(
        tmp_path,
        "shop:app",
        "import json, inspect\njson.dumps([inspect.signature.__name__])\n" + WSGI,
    )

    with pytest.raises(UsageError, match=r"name of a standard-library module.*rename it"):
        check(tmp_path, "json:app")


def test_a_fork_at_import_reports_once(tmp_path: Path) -> None:
    check(tmp_path, "shop:app", "import os\nos.fork()\n" + WSGI)


def test_a_changed_working_directory_does_not_lose_the_result(tmp_path: Path) -> None:
    check(tmp_path, "shop:app", "import os\nos.chdir('/')\n" + WSGI)


def test_long_output_is_truncated_to_its_end(tmp_path: Path) -> None:
    text = "import os\nfor _ in range(20_000): print('x' * 1_000)\nprint('last', flush=True)\n"
    with pytest.raises(AppImportError) as error:
        check(tmp_path, "shop:app", text + "os._exit(3)\n")

    assert len(error.value.log_tail) <= app_import.LOG_TAIL_BYTES
    assert error.value.log_tail.endswith("last\n")


def test_a_surviving_child_does_not_block_the_check(tmp_path: Path) -> None:
    text = "import os, subprocess\nsubprocess.Popen(['sleep', '6'])\nos._exit(3)\n"
    started = time.monotonic()

    with pytest.raises(AppImportError, match="with code 3"):
        check(tmp_path, "shop:app", text)

    assert time.monotonic() - started < 5


def test_sys_exit_gets_a_specific_fix(tmp_path: Path) -> None:
    with pytest.raises(AppImportError, match=r"SystemExit: 4.*below `if __name__"):
        check(tmp_path, "shop:app", "raise SystemExit(4)\n")


def test_a_shim_module_provides_a_factory_call(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FACTORY)
    assert not needs_shim("shop:app", tmp_path)
    assert shim_folder("shop:app", tmp_path, tmp_path) is None
    assert parse_app("shop:create_app( 'a' , b = 1 )").text == "shop:create_app('a', b=1)"

    directory = shim_folder("shop:create_app('hi')", tmp_path, tmp_path)
    module, _, attribute = SHIM_APP.partition(":")
    code = f"import {module}; print(callable({module}.{attribute}))"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(directory)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout == "True\n"


def test_a_module_named_like_the_standard_library_needs_a_shim(tmp_path: Path) -> None:
    (tmp_path / "json.py").touch()
    assert needs_shim("shop:app", tmp_path)


def test_working_django_settings_are_suggested(tmp_path: Path) -> None:
    (tmp_path / "manage.py").write_text('setdefault("DJANGO_SETTINGS_MODULE", "site.broken")\n')
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "settings.py").touch()
    text = (
        "import os\n"
        "class ImproperlyConfigured(Exception): ...\n"
        "if os.environ.get('DJANGO_SETTINGS_MODULE') != 'shop.settings':\n"
        "    raise ImproperlyConfigured('define the variable DJANGO_SETTINGS_MODULE')\n"
    )
    (tmp_path / "web.py").write_text(text + WSGI)

    with pytest.raises(AppImportError, match=r"add --env DJANGO_SETTINGS_MODULE=shop\.settings"):
        check(tmp_path, "web:app")


def test_pythonpath_comes_after_the_app_directory(tmp_path: Path) -> None:
    for directory, name in ((tmp_path, "shop"), (tmp_path / "src", "core")):
        directory.mkdir(exist_ok=True)
        (directory / f"{name}.py").write_text(WSGI)
    (tmp_path / "src" / "shop.py").write_text("raise ValueError\n")
    (tmp_path / "web.py").write_text("from shop import app\nimport core\n")

    context = ImportContext(find_app_interpreter(tmp_path), os.environ)
    with pytest.raises(AppImportError, match="No module named 'core'"):
        check_app("web:app", tmp_path, context)
    check_app("web:app", tmp_path, replace(context, pythonpath=(tmp_path / "src",)))
    assert needs_shim("web:app", tmp_path, (tmp_path / "src",))
