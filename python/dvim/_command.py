"""The command ``dvim``: the command line itself."""

from __future__ import annotations

import signal
import sys

from . import _dvim


def main() -> int:
    """Runs the command line with the arguments of the process."""
    # Nothing of Python is left to do: let Ctrl-C end the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _dvim.command(["dvim", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
