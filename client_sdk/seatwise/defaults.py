"""What holds where nothing else is said: where the server is, and where tokens are found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PORT: Final = 7433
ADDRESS: Final = f"localhost:{PORT}"
TOKEN_VARIABLE: Final = "SEATWISE_TOKEN"
DATA_VARIABLE: Final = "SEATWISE_DATA"


def data_folder() -> Path:
    """The server's: $SEATWISE_DATA, or one of the user's own. Bots' tokens lie there too."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else Path.home() / ".local/share/seatwise"
