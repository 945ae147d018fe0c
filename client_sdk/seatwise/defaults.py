"""The defaults: the address of the server, and the variables and folders that hold tokens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PORT: Final = 7433
HTTP_PORT: Final = 7480
WS_PORT: Final = 7481
ADDRESS: Final = f"localhost:{PORT}"
TOKEN_VARIABLE: Final = "SEATWISE_TOKEN"
DATA_VARIABLE: Final = "SEATWISE_DATA"


def data_folder() -> Path:
    """Return the server's data folder: $SEATWISE_DATA, or a folder in the user's home. Tokens of bots are there too."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else Path.home() / ".local/share/seatwise"
