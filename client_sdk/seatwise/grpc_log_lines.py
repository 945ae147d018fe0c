"""Keeps the log lines of gRPC's own core out of a bot's output. Import it before grpc, which reads the variable only once."""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
