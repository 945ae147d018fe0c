"""The errors for messages that fit the proto and still have no meaning in their game."""

from __future__ import annotations


class MalformedMove(ValueError):
    """The message is no move of this game. The text tells its sender why."""


class MalformedView(ValueError):
    """The message is no view of this game. A newer referee may have sent it."""


class MalformedResult(ValueError):
    """The message is no result of the match. The text says which field is wrong."""


class MalformedOffer(ValueError):
    """The message is no offer of a seat. The text says which field is wrong."""
