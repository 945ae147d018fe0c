"""Which method needs which right: the one table that every door asks."""

from __future__ import annotations

from enum import Enum


class Access(Enum):
    """Who may call a method."""

    PUBLIC = "public"
    """Everybody. A token that is sent must be good all the same, so that a typing error does not go unnoticed."""
    TOKEN = "token"
    """Every bot and every admin; the method itself checks which of them."""
    BOT = "bot"
    """Bots, each for itself: seats belong to bots."""
    ADMIN = "admin"
    """Holders of the admin token."""


_BY_SERVICE: dict[str, dict[str, Access]] = {
    "LobbyService": {"Attend": Access.BOT},
    "PlayService": {"Play": Access.BOT},
    "AdminService": {
        "ListReferees": Access.ADMIN,
        "ListLiveMatches": Access.ADMIN,
        "ListLeases": Access.ADMIN,
        "DrainReferee": Access.ADMIN,
        "VoidMatch": Access.ADMIN,
        "ForgiveNoShows": Access.ADMIN,
        "CheckMatches": Access.ADMIN,
    },
    "MatchService": {
        "CreateMatch": Access.ADMIN,
        "GetMatch": Access.PUBLIC,
        "ListMatches": Access.PUBLIC,
        "GetRecord": Access.PUBLIC,
        "AbortMatch": Access.ADMIN,
        "GetDealSet": Access.PUBLIC,
        "CloseDealSet": Access.ADMIN,
        "WatchMatch": Access.PUBLIC,
    },
    "BotService": {
        "RegisterBot": Access.ADMIN,
        "RotateToken": Access.ADMIN,
        "RevokeToken": Access.ADMIN,
        "DeleteBot": Access.ADMIN,
        "GetBot": Access.PUBLIC,
        "ListBots": Access.PUBLIC,
    },
    "GameService": {"ListGames": Access.PUBLIC, "GetGame": Access.PUBLIC},
    "LadderService": {
        "CreateLadder": Access.ADMIN,
        "GetLadder": Access.PUBLIC,
        "ListLadders": Access.PUBLIC,
        "ListStandings": Access.PUBLIC,
        "ListLadderResults": Access.PUBLIC,
        "ReinstateBot": Access.TOKEN,
    },
    "LeagueService": {
        "CreateLeague": Access.ADMIN,
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
"""By method, in the form /seatwise.v1.MatchService/GetMatch. A method that is not here cannot be served."""
