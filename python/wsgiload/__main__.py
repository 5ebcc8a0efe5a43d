"""The entry point of the command ``wsgiload`` and of ``python -m wsgiload``: prepares the standard
streams, and catches an interrupt that arrives while the command line is imported."""

import os
import sys

EXIT_INTERRUPTED = 130
READ, WRITE = "r", "w"
STREAMS = ((0, "stdin", READ), (1, "stdout", WRITE), (2, "stderr", WRITE))


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        prepare_streams()
        from wsgiload.cli import main as command_line  # takes a tenth of a second

        command_line()
    except KeyboardInterrupt:
        sys.stderr.write("wsgiload: interrupted\n")
        sys.exit(EXIT_INTERRUPTED)


def prepare_streams() -> None:
    """Open closed standard streams, and let none fail at a character that its encoding lacks.

    The next file or socket would get the number of a closed stream, and a child's output with it.
    """
    for number, name, mode in STREAMS:
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
