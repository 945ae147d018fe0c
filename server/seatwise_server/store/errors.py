"""What the store raises.

    StoreError
    ├── StoreUnavailable      Redis does not answer, or refuses to write for now: try again later
    ├── StoreRefused          this Redis could lose what we acknowledge, so we do not start on it
    ├── FenceLost             somebody else owns the match
    ├── MatchRetired          the match is over and its journal has given way to the record, or it was dropped
    ├── ProposalExpired       a lobby comes too late with a step of seating: the proposal may be another's by now
    ├── BotAbsent             no such bot is registered
    ├── BotExists             that bot is registered already, by another request
    ├── SetRefused            a match cannot join the set of duplicate deals; `reason` says why
    ├── BadPageToken          a page token that this list never gave out
    └── TokenRefused          a token that opens nothing; `reason` says UNKNOWN or REVOKED

No gRPC codes here: the doors translate.
"""

from __future__ import annotations


class StoreError(Exception):
    """Root of everything the store raises on purpose."""


class StoreUnavailable(StoreError):
    """Redis does not answer, or refuses to write for now; the step may have happened or not."""


class StoreRefused(StoreError):
    """The Redis behind the URL is not fit to keep matches; the text says what would be right."""


class FenceLost(StoreError):
    """The fence is not where the claimer expected it: another owner was there first."""

    def __init__(self, match: str, epoch: int, owner: str) -> None:
        super().__init__(f"{match} is at epoch {epoch} and belongs to {owner or 'nobody'}")
        self.match = match
        self.epoch = epoch
        """The epoch found, 0 when there is no fence."""
        self.owner = owner
        """The owner found, empty when there is no fence."""


class MatchRetired(StoreError):
    """The match is over and delivered, or it was dropped; nothing more can be written about it."""

    def __init__(self, match: str) -> None:
        super().__init__(f"{match} is over and its journal is retired, or it was dropped")
        self.match = match


class ProposalExpired(StoreError):
    """The lobby's time to seat the match is over. Another lobby may have adopted the proposal; nothing was changed."""

    def __init__(self, match: str) -> None:
        super().__init__(f"the proposal of {match} is left to other lobbies")
        self.match = match


class BotAbsent(StoreError):
    """No bot of that name and version is registered."""


class BotExists(StoreError):
    """A bot of that name and version was registered by another request."""


class BotDeleted(BotExists):
    """There was a bot of that name and version."""


class SetRefused(StoreError):
    """The match cannot join the set."""

    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(f"the set is not to be joined: {reason} {instead}")
        self.reason = reason
        """SIZE, KIND, TAKEN or OVER."""
        self.instead = instead
        """The size or the kind that the set has, or the match that has the number."""


class BadPageToken(StoreError):
    """The page token is not one that this list gave out."""


class TokenRefused(StoreError):
    """The token opens nothing."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the token is {reason.lower()}")
        self.reason = reason
        """UNKNOWN or REVOKED."""
