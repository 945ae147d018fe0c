"""The right that each method needs: the one table that every door uses."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


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
    """Returns the scopes with these names, and those that they include. It ignores names that this version does not know."""
    known = {
        it.value: it
        for it in SCOPES_OF_BOTS | SCOPES_OF_PEOPLE | SCOPES_OF_OWNERS | {Access.JOIN, Access.GUEST}
    }
    scopes = {known[name] for name in names if name in known}
    if Access.ADMIN in scopes:
        scopes |= SCOPES_OF_PEOPLE
    if Access.OPERATE in scopes:
        scopes.add(Access.READ)
    return frozenset(scopes)


ATTEND_METHOD = "/seatwise.v1.LobbyService/Attend"
PLAY_METHOD = "/seatwise.v1.PlayService/Play"
"""The two methods with streams in both directions. Each door serves them in its own way."""

_BY_SERVICE: dict[str, dict[str, Access]] = {
    "LobbyService": {"Attend": Access.ATTEND},
    "PlayService": {"Play": Access.PLAY},
    "AccessService": {
        "CreateAccessToken": Access.ADMIN,
        "ListAccessTokens": Access.ADMIN,
        "RotateAccessToken": Access.ADMIN,
        "RevokeAccessToken": Access.ADMIN,
        "ListAuditEntries": Access.ADMIN,
        "EraseOwner": Access.ADMIN,
    },
    "AdminService": {
        "ListReferees": Access.READ,
        "ListLiveMatches": Access.READ,
        "ListLeases": Access.READ,
        "DrainReferee": Access.OPERATE,
        "VoidMatch": Access.OPERATE,
        "ForgiveNoShows": Access.OPERATE,
        "CheckMatches": Access.OPERATE,
    },
    "MatchService": {
        "CreateMatch": Access.OPERATE,
        "GetMatch": Access.PUBLIC,
        "ListMatches": Access.PUBLIC,
        "GetRecord": Access.PUBLIC,
        "AbortMatch": Access.OPERATE,
        "GetDealSet": Access.PUBLIC,
        "CloseDealSet": Access.OPERATE,
        "WatchMatch": Access.PUBLIC,
    },
    "BotService": {
        "RegisterBot": Access.REGISTER,
        "RotateToken": Access.REGISTER,
        "RevokeToken": Access.REGISTER,
        "SetBotKind": Access.TOKEN,
        "DeleteBot": Access.OPERATE,
        "GetBot": Access.PUBLIC,
        "ListBots": Access.PUBLIC,
        "ListOpponents": Access.PUBLIC,
    },
    "OwnerService": {
        "CreateInvite": Access.ADMIN,
        "ListInvites": Access.ADMIN,
        "RevokeInvite": Access.ADMIN,
        "CreateOwner": Access.JOIN,
        "GetOwner": Access.READ,
        "SetOwnerQuotas": Access.ADMIN,
    },
    "GameService": {"ListGames": Access.PUBLIC, "GetGame": Access.PUBLIC},
    "LadderService": {
        "CreateLadder": Access.OPERATE,
        "GetLadder": Access.PUBLIC,
        "ListLadders": Access.PUBLIC,
        "ListStandings": Access.PUBLIC,
        "ListStandingsHistory": Access.PUBLIC,
        "ListLadderResults": Access.PUBLIC,
        "ReinstateBot": Access.TOKEN,
    },
    "LeagueService": {
        "CreateLeague": Access.OPERATE,
        "GetLeague": Access.PUBLIC,
        "ListLeagues": Access.PUBLIC,
        "ListLeagueStandings": Access.PUBLIC,
        "ListLeagueResults": Access.PUBLIC,
    },
}

ACCESS = {
    f"/seatwise.v1.{service}/{method}": access
    for service, methods in _BY_SERVICE.items()
    for method, access in methods.items()
}
"""The access by method, in the form /seatwise.v1.MatchService/GetMatch. A method that is missing here cannot be served."""

OWN_METHODS = frozenset(
    {
        "/seatwise.v1.BotService/RegisterBot",
        "/seatwise.v1.BotService/RotateToken",
        "/seatwise.v1.BotService/RevokeToken",
        "/seatwise.v1.BotService/SetBotKind",
        "/seatwise.v1.AccessService/ListAccessTokens",
        "/seatwise.v1.AccessService/RotateAccessToken",
        "/seatwise.v1.AccessService/RevokeAccessToken",
        "/seatwise.v1.OwnerService/GetOwner",
    }
)
"""The methods that an owner may call too. Each checks that what it is asked about is the owner's."""
