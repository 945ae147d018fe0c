"""Every key and channel name in Redis.

The braces are hash tags: all keys of one match (bot, queue, ...) live on one node of a cluster, so that
one script may touch them together. No script touches two tags.
"""

from __future__ import annotations

from functools import lru_cache

from redis.crc import key_slot

PREFIX = "seatwise:"

OFFERS_CHANNEL = "seatwise:offers"
"""Tells lobbies that a bot has a new offer, or one less: `<bot> <match>/<seat>`."""

ATTENDS_CHANNEL = "seatwise:attends"
"""Tells lobbies that a bot attends anew, so that the older stream ends: `<bot> <attend id>`."""

FAREWELLS_CHANNEL = "seatwise:farewells"
"""Tells referees that one of them has let go of its matches: its name."""

TOKENS_REVISION = "seatwise:tokens:revision"
"""Rises with every rotation, revocation and deletion; whoever keeps streams open watches it."""

BOT_INDEX = "seatwise:bots"
"""Sorted set of all registered bots, in the order of their names."""

LEAGUE_INDEX = "seatwise:{leagues}:index"
"""Sorted set of all leagues, in the order of their names."""

LADDER_INDEX = "seatwise:{ladders}:index"
"""Sorted set of all ladders, in the order of their names."""

MATCH_INDEX = "seatwise:{matches}:index"
"""Sorted set of matches, the score is the creation time in microseconds of Redis's clock."""

MATCH_EXPIRY = "seatwise:{matches}:expiry"
"""Sorted set of retired matches, the score is when their record goes, in milliseconds."""

JOB_STREAM = "seatwise:{jobs}:stream"
"""The stream of match jobs."""

JOB_MARKERS = "seatwise:{jobs}:open"
"""Hash of matches that have a job now, each with the job's id."""

PROCESS_INDEX = "seatwise:{processes}:index"
"""Sorted set of processes by the time of their last heartbeat."""


def match_fence(match: str) -> str:
    """Hash of epoch and owner."""
    return f"seatwise:{{match:{match}}}:fence"


def match_journal(match: str) -> str:
    """Stream of entries with ids `<seq>-0`."""
    return f"seatwise:{{match:{match}}}:journal"


def match_meta(match: str) -> str:
    """Hash of what lists and lookups say about a match."""
    return f"seatwise:{{match:{match}}}:meta"


def match_record(match: str) -> str:
    """The compressed record of a match that is over."""
    return f"seatwise:{{match:{match}}}:record"


@lru_cache(maxsize=2_048)
def append_keys(match: str) -> tuple[bytes, bytes]:
    """Fence and journal as bytes, remembered because every append needs them."""
    return match_fence(match).encode(), match_journal(match).encode()


@lru_cache(maxsize=2_048)
def match_slot(match: str) -> int:
    """The slot of a cluster in which all keys of the match lie."""
    return int(key_slot(match_fence(match).encode()))


def bot_registration(bot: str) -> str:
    """Hash of owner, token hash and dates, and how many Attend streams there were. It outlives the bot: names are not reused."""
    return f"seatwise:{{bot:{bot}}}:registration"


def bot_seats(bot: str) -> str:
    """Set of `<match>/<seat>` that the bot holds now."""
    return f"seatwise:{{bot:{bot}}}:seats"


def bot_attendance(bot: str) -> str:
    """Hash that says where and for how much the bot is present, gone with its lease."""
    return f"seatwise:{{bot:{bot}}}:attendance"


def bot_off(bot: str) -> str:
    """Hash of the ladders that the bot was taken off to the reason."""
    return f"seatwise:{{bot:{bot}}}:off"


def bot_untaken(bot: str) -> str:
    """Hash of `<match>/<seat>` of queues in which the bot has not sat down yet.

    The value is `<state> <ms>`, where ms is the time of the offer. The states are `reserved` (ms is 0), `offered`, then `told` or
    `late` when the bot was told, and `left` when the bot has closed its stream since.
    """
    return f"seatwise:{{bot:{bot}}}:untaken"


def bot_no_shows(bot: str) -> str:
    """Hash of what the bot has missed in queues, what it has taken since, and until when it is off them."""
    return f"seatwise:{{bot:{bot}}}:no-shows"


def bot_offers(bot: str) -> str:
    """Hash of `<match>/<seat>` to `<epoch> <offer>`."""
    return f"seatwise:{{bot:{bot}}}:offers"


def queue_waiting(queue: str) -> str:
    """Sorted set of bots, the score is when they entered, in milliseconds of Redis's clock."""
    return f"seatwise:{{queue:{queue}}}:waiting"


def queue_seating(queue: str) -> str:
    """Hash of match to the bots taken for it and not yet seated."""
    return f"seatwise:{{queue:{queue}}}:seating"


def _of(competition: str, what: str) -> str:
    """A key of a ladder or a league, `ladders/{id}` or `leagues/{id}`: all keys of one lie together."""
    kind = competition.partition("/")[0].removesuffix("s")
    return f"seatwise:{{{kind}:{competition}}}:{what}"


def results_log(competition: str) -> str:
    """Stream of the results that count, with ids `<place>-0`."""
    return _of(competition, "results")


def results_places(competition: str) -> str:
    """Hash of match to its place in the log."""
    return _of(competition, "places")


def league_settings(name: str) -> str:
    """Hash of a league's settings."""
    return _of(name, "league")


def league_voids(name: str) -> str:
    """Set of the league's matches that were void."""
    return _of(name, "voids")


def ladder_settings(name: str) -> str:
    """Hash of a ladder's settings and the table that is shown."""
    return _of(name, "ladder")


def ladder_events(name: str) -> str:
    """Stream of what counts for a ladder and is no result: absences, and pardons."""
    return _of(name, "events")


def ladder_event_names(name: str) -> str:
    """Hash of the events of which there is one each."""
    return _of(name, "event-names")


def deal_set(name: str) -> str:
    """Hash of a set of duplicate deals: its seed, and its matches and their ends by number."""
    return f"seatwise:{{set:{name}}}:deals"


def process_beat(process: str) -> str:
    """Hash of a process's heartbeat count and address."""
    return f"seatwise:{{processes}}:beat:{process}"


def process_orders(process: str) -> str:
    """Stream of orders to one process."""
    return f"seatwise:{{process:{process}}}:orders"


def work_lease(work: str) -> str:
    """The process that does this work."""
    return f"seatwise:{{lease:{work}}}:holder"
