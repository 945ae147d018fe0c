"""The right that each method needs, as the protos declare it: every door asks this table."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from seatwise_server.services.declarations import method_rules


class Access(Enum):
    """The callers that may call a method: all, all with a valid token, or those whose token has the scope of this name."""

    PUBLIC = "public"
    """Any caller. A token that is sent must still be valid, so that a typing error is noticed."""
    TOKEN = "token"
    """Every valid token; the method itself checks which callers may call it."""
    ATTEND = "attend"
    """Scope of bots: attend the lobby, each for itself, because seats belong to bots."""
    PLAY = "play"
    """Scope of bots: play at a referee."""
    READ = "read"
    """Scope of people: read what is not public."""
    REGISTER = "register"
    """Scope of people: register bots, and rotate and revoke their tokens."""
    OPERATE = "operate"
    """Scope of people: everything that changes matches, ladders, leagues and processes; it includes READ."""
    ADMIN = "admin"
    """Scope of people: access tokens; it includes all scopes of people."""
    GUEST = "guest"
    """Scope of the token of a guest's bot, beside ATTEND and PLAY: it may name no queue, so it plays only the one match that a
    page has made for it. No method needs this scope, and no operator gives it."""
    OWN = "own"
    """Scope of owners: the methods of `OWN_METHODS`, for bots and tokens of their own."""
    JOIN = "join"
    """Scope of invites: become an owner."""


SCOPES_OF_BOTS = frozenset({Access.ATTEND, Access.PLAY})
SCOPES_OF_PEOPLE = frozenset({Access.READ, Access.REGISTER, Access.OPERATE, Access.ADMIN})

SCOPES_OF_OWNERS = frozenset({Access.OWN})
SCOPES_OF_GUESTS = SCOPES_OF_BOTS | {Access.GUEST}


def expand_scopes(names: Iterable[str]) -> frozenset[Access]:
    """Return the scopes with these names, and those that they include. It ignores names that this version does not know."""
    given = set(names)
    scopes = {it for it in Access if it.value in given}
    if Access.ADMIN in scopes:
        scopes |= SCOPES_OF_PEOPLE
    if Access.OPERATE in scopes:
        scopes.add(Access.READ)
    return frozenset(scopes)


ATTEND_METHOD = "/seatwise.v1.LobbyService/Attend"
PLAY_METHOD = "/seatwise.v1.PlayService/Play"
"""The two methods with streams in both directions. Each door serves them in its own way."""

ACCESS = {method: Access(rule.right) for method, rule in method_rules().items()}
"""The access by method, in the form /seatwise.v1.MatchService/GetMatch. A method that is missing here cannot be served."""

OWN_METHODS = frozenset(method for method, rule in method_rules().items() if rule.is_for_owners)
"""The methods that an owner may call too. Each checks that what it is asked about is the owner's."""
