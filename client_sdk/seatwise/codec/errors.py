"""What a message may be that fits the proto and still means nothing."""

from __future__ import annotations


class MalformedMove(ValueError):
    """The message is no move of this game; the text tells its sender why."""


class MalformedView(ValueError):
    """The message is no view of this game: it comes from a newer referee, or from none."""
