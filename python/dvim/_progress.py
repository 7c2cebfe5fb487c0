"""Progress in a terminal and in a notebook, once a call has taken more than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

Progress = Callable[[str, int, int], object]

PATIENCE = 1.0
"""Seconds before anything is shown."""


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class Shown:
    """A line that is written over itself, or an output that is replaced; gone at the end."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._last = 0.0
        self._handle: Any = None
        self._width = 0
        self._notebook = _in_notebook()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._started < PATIENCE or now - self._last < 0.1:
            return
        self._last = now
        share = min(done / total, 1.0) if total else 0.0
        if self._notebook:
            self._show_html(stage, share)
        elif sys.stderr is not None and sys.stderr.isatty():
            filled = round(30 * share)
            line = f"{stage:26} {'█' * filled}{'░' * (30 - filled)} {100 * share:3.0f} %  {now - self._started:.0f} s"
            sys.stderr.write("\r" + line.ljust(self._width))
            sys.stderr.flush()
            self._width = len(line)

    def _show_html(self, stage: str, share: float) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

        bar = HTML(f'<label>{stage} <progress value="{share:.3f}" max="1"></progress> {100 * share:.0f} %</label>')
        if self._handle is None:
            self._handle = display(bar, display_id=True)
        else:
            self._handle.update(bar)

    def close(self) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(""))
        elif self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class Watching:
    """A context: gives what the engine calls, and clears what was shown."""

    def __init__(self, progress: bool | Progress | None) -> None:
        self._shown = Shown() if progress is None or progress is True else None
        self._call = progress if callable(progress) else self._shown

    def __enter__(self) -> Progress | None:
        return self._call

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.close()
