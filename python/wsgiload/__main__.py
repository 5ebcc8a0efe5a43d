"""``python -m wsgiload``."""

from wsgiload.cli import main

if __name__ == "__main__":
    main()
