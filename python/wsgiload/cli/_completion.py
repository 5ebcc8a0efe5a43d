"""``wsgiload completion``: completes commands, options and names in a shell.

The script asks this program at every Tab, so each function imports only what it needs, and reads
no configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from wsgiload.cli._help import HelpfulCommand

SHELLS = ("bash", "zsh", "fish")
RUNS = Path(".wsgiload/runs")
_APP = re.compile(r"^(?:def )?(app|application|create_app)\b", re.MULTILINE)
_MAX_MODULE_BYTES = 1 << 20
# Modules whose names of this kind are no apps.
_NO_APP = re.compile(r"conftest|setup|test_.*|.*_test|tasks|fabfile")
EXAMPLES = (
    "source <(wsgiload completion bash)  # in ~/.bashrc",
    "source <(wsgiload completion zsh)  # in ~/.zshrc, after compinit",
    "wsgiload completion fish > ~/.config/fish/completions/wsgiload.fish",
)


@click.command("completion", cls=HelpfulCommand, examples=EXAMPLES)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, servers, runs, checks and apps."""
    completer = get_completion_class(shell)
    assert completer is not None  # click has all of SHELLS
    root = ctx.find_root().command
    click.echo(completer(root, {}, "wsgiload", "_WSGILOAD_COMPLETE").source())


def complete_servers(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """The names that select catalogue servers; after a comma, the next name of a list."""
    from wsgiload.catalogue.names import load_catalogue

    earlier, comma, _ = word.rpartition(",")
    return _items((earlier + comma + name for name in load_catalogue().names()), word)


def complete_checks(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """The checks, alarms and fingerprints."""
    from wsgiload.cli._explain import every_finding

    return _items(every_finding(), word)


def complete_studies(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """The published comparisons."""
    from wsgiload.cli._reproduce import studies

    return _items(studies(), word)


def complete_runs(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """The stored runs of this folder, the latest first; otherwise, any folder."""
    runs = sorted((str(path) for path in RUNS.glob("*") if path.is_dir()), reverse=True)
    return _items(runs, word) or [CompletionItem(word, type="dir")]


def complete_bundled_apps(
    ctx: click.Context, param: click.Parameter, word: str
) -> list[CompletionItem]:
    """The bundled apps."""
    from wsgiload.catalogue.bundled import BUNDLED

    return _items(BUNDLED, word)


def complete_apps(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """The apps in this folder."""
    return _items(apps_here(), word)


def apps_here() -> list[str]:
    """The usual names of apps in the modules of this folder, without importing them."""
    return [
        f"{path.stem}:{name}"
        for path in sorted(Path().glob("*.py"))
        if path.is_file() and path.stat().st_size <= _MAX_MODULE_BYTES
        if not _NO_APP.fullmatch(path.stem)
        for name in dict.fromkeys(_APP.findall(path.read_text(errors="replace")))
    ]


def _items(names: Iterable[str], word: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(word)]
