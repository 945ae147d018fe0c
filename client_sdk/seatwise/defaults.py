"""The defaults: addresses, the variables and folders that hold tokens, and the exit codes of the command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from seatwise.errors import UsageError

PORT: Final = 7433
HTTP_PORT: Final = 7480
WS_PORT: Final = 7481
ADDRESS: Final = f"localhost:{PORT}"
TOKEN_VARIABLE: Final = "SEATWISE_TOKEN"
DATA_VARIABLE: Final = "SEATWISE_DATA"


def data_folder() -> Path:
    """Return the server's data folder: $SEATWISE_DATA, or a folder in the user's home. Tokens of bots are there too.

    Raises `UsageError` if this user has no home, as in a container that runs as any user id.
    """
    folder = find_data_folder()
    if folder is None:
        raise UsageError(
            f"this user has no home folder: set HOME or {DATA_VARIABLE}. `seatwise serve` takes --data FOLDER, "
            "and other commands take --token"
        )
    return folder


def find_data_folder() -> Path | None:
    """Return `data_folder`, or `None` if this user has no home."""
    try:
        return Path(os.environ.get(DATA_VARIABLE) or Path.home() / ".local/share/seatwise")
    except (RuntimeError, KeyError):  # neither HOME nor an entry in /etc/passwd
        return None


# The exit codes of the command, apart from 0 for success

FAILED = 1
USAGE = 2
"""The arguments are wrong, or the server refuses what they ask for."""
INTERRUPTED = 130
"""Ended by Ctrl-C: 128 and the number of SIGINT, as shells have it."""
