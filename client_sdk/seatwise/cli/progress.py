"""Progress for a terminal, with rich if it is installed."""

from __future__ import annotations

from typing import Any

PROGRESS_EVERY_S = 5.0
"""Without a terminal, the time between two lines of progress, in seconds."""


def import_rich() -> Any:
    """Return the parts of rich that commands use; `None` if it is not installed."""
    from types import SimpleNamespace

    try:
        from rich.console import Console
        from rich.progress import Progress
        from rich.table import Table
    except ModuleNotFoundError:
        return None
    return SimpleNamespace(Console=Console, Progress=Progress, Table=Table)
