"""The errors that the store raises. There are no gRPC codes here: the doors translate."""

from __future__ import annotations


class StoreError(Exception):
    """Base class of all errors that the store raises on purpose."""


class StoreUnavailable(StoreError):
    """Redis does not answer, or refuses to write for now. The operation may or may not have been executed."""


class StoreRefused(StoreError):
    """The Redis behind the URL is not safe for matches; the text says which setting would be right."""


class FenceLost(StoreError):
    """The fence is not at the epoch that the claim expected: another owner was first."""

    def __init__(self, match: str, epoch: int, owner: str) -> None:
        super().__init__(f"{match} is at epoch {epoch} and belongs to {owner or 'nobody'}")
        self.epoch = epoch
        """The epoch found, 0 when there is no fence."""
        self.owner = owner
        """The owner found, empty when there is no fence."""


class MatchRetired(StoreError):
    """The match is over and delivered, or it was dropped; nothing more can be written to it."""

    def __init__(self, match: str) -> None:
        super().__init__(f"{match} is over and its journal is retired, or it was dropped")


class ProposalExpired(StoreError):
    """The lobby's time to seat the match is over. Another lobby may have adopted the proposal; nothing was changed."""

    def __init__(self, match: str) -> None:
        super().__init__(f"the proposal of {match} is left to other lobbies")


class NoFreeTable(StoreError):
    """Each table of the referees has a match, or one that waits for it. The match got no job."""

    def __init__(self, match: str) -> None:
        super().__init__(f"there is no free table for {match}")


class BotAbsent(StoreError):
    """No bot of that name and version is registered."""


class BotExists(StoreError):
    """Another request has registered a bot of that name and version."""


class BotDeleted(BotExists):
    """A bot of that name and version existed and was deleted."""


class BotShutOut(StoreError):
    """An operator has revoked the token of the bot, so its owner gets no other."""


class SetRefused(StoreError):
    """The match cannot join the set."""

    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(f"the set is not to be joined: {reason} {instead}")
        self.reason = reason
        """SIZE, KIND, TAKEN or OVER."""
        self.instead = instead
        """The size or the kind that the set has, or the match that has the number."""


class BadPageToken(StoreError):
    """The page token is not one that this list issued."""


class AccessTokenAbsent(StoreError):
    """There is no such access token, or it is revoked; the text says which."""


class AccessTokenExists(StoreError):
    """Another request with the same id has created an access token."""


class InviteExists(StoreError):
    """Another request with the same id has created the invite."""


class InviteAbsent(StoreError):
    """There is no such invite."""


class OwnerAbsent(StoreError):
    """There is no such owner."""


class TooManyBots(StoreError):
    """The owner has as many bots as its quota allows."""


class TokenRefused(StoreError):
    """The token is not valid."""

    def __init__(self, reason: str, *, is_mistyped: bool = False) -> None:
        mistyped = "this token has a typing error, or a part of it is missing: its checksum does not fit"
        super().__init__(mistyped if is_mistyped else _WHY_REFUSED[reason])
        self.reason = reason
        """UNKNOWN, REVOKED or EXPIRED."""


_WHY_REFUSED = {
    "UNKNOWN": "this token is unknown",
    "REVOKED": "this token is revoked",
    "EXPIRED": "this token has expired; ask its issuer for a new one",
}
