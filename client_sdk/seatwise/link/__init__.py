"""How a bot stays connected: its presence in the lobby, its seats, and the streams that carry them."""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
"""It keeps the log lines of gRPC's own core out of a bot's output. gRPC reads the variable once, when it is imported."""
