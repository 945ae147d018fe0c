"""Every key and channel name in Redis.

The braces are hash tags: all keys with the same tag, for example those of one match, are on one node of a
cluster. So one script may use them together. No script uses keys with two tags.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache

from redis.crc import key_slot

OFFERS_CHANNEL = "seatwise:offers"
"""Channel that tells lobbies of a bot's new or withdrawn offer: `<bot> <match>/<seat>`."""

ATTENDS_CHANNEL = "seatwise:attends"
"""Channel that tells lobbies of a bot's new Attend stream, so that the older stream ends: `<bot> <attend id>`."""

HANDOVERS_CHANNEL = "seatwise:farewells"
"""Channel that tells referees of a process that has given up all its matches: its name."""

TOKENS_REVISION = "seatwise:tokens:revision"
"""Counter that rises with every rotation, revocation and deletion. Processes that keep streams open watch it."""

ACCESS_TOKEN_INDEX = "seatwise:tokens:index"
"""Sorted set of all access tokens, in the order of their names."""

INVITE_INDEX = "seatwise:invites:index"
"""Sorted set of all invites, in the order of their names."""

TICKET_KEY = "seatwise:tickets:key"
"""The secret with which tickets of guests are sealed, so that nothing is stored of a ticket before it is used."""

OWNER_PSEUDONYM_SECRET = "seatwise:owners:pseudonym-secret"
"""The secret from which the ids of owners follow that an OIDC issuer has named."""

AUDIT_LOG = "seatwise:{audit}:log"
"""Stream of the lines of the audit log, with ids `<seq>-0`."""

BOT_INDEX = "seatwise:bots"
"""Sorted set of all registered bots, in the order of their names."""

BOT_KIND_INDEX = "seatwise:bots:kinds"
"""Hash from each bot whose kind was said to the number of its kind. A deleted bot keeps it, as tables keep its name."""

LEAGUE_INDEX = "seatwise:{leagues}:index"
"""Sorted set of all leagues, in the order of their names."""

LADDER_INDEX = "seatwise:{ladders}:index"
"""Sorted set of all ladders, in the order of their names."""

MATCH_INDEX = "seatwise:{matches}:index"
"""Sorted set of matches; the score is the creation time in microseconds of Redis's clock."""

MATCH_EXPIRY = "seatwise:{matches}:expiry"
"""Sorted set of retired matches; the score is the time of keeping at which they are removed, in milliseconds."""

KEPT_KEYS = "seatwise:{matches}:kept-keys"
"""Sorted set of other keys that are kept for a while; the score is the time of keeping at which they are removed."""

KEEPING_TIME = "seatwise:{matches}:keeping-time"
"""Hash of the time of keeping, in milliseconds: it passes as Redis's clock does, but not while that clock leaps. And that clock."""

MATCH_FACETS = "seatwise:{matches}:facets"
"""Hash from each listed match to the names of its sets. It has as many fields as the index has members."""

MATCH_SETS = "seatwise:{matches}:by:"
"""The prefix of the names of these sets. Each is a sorted set of matches, with the scores of the index."""

LAST_FAULT = "seatwise:{faults}:last"
"""The kind of the last fault of a process that may have kept bots from their seats, for a minute."""

JOB_STREAM = "seatwise:{jobs}:stream"
"""The stream of jobs of matches of our own games."""

HOSTED_JOB_STREAM = "seatwise:{jobs}:hosted"
"""The stream of jobs of matches of games from outside."""

JOB_MARKERS = "seatwise:{jobs}:open"
"""Hash from each match with an open job to the id of that job, with `hosted:` before it if it is in that stream."""

PROCESS_INDEX = "seatwise:{processes}:index"
"""Sorted set of processes by the time of their last heartbeat."""


def owner_hash(name: str) -> str:
    """A hash of the name of an owner: names of keys must not tell who has an account."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _key(kind: str, what: str) -> Callable[[str], str]:
    """Return the function from the name of a thing of this kind to one of its keys."""
    return lambda name: f"seatwise:{{{kind}:{name}}}:{what}"


def _owner_key(what: str) -> Callable[[str], str]:
    return lambda name: f"seatwise:{{owner:{owner_hash(name)}}}:{what}"


def _competition_key(what: str) -> Callable[[str], str]:
    """The same for ladders and leagues: `ladders/{id}` has the kind `ladder`."""
    return lambda name: f"seatwise:{{{name.partition('/')[0].removesuffix('s')}:{name}}}:{what}"


def match_set(facet: str) -> str:
    """Sorted set of the matches with this common property, for example `game/ugo` or `state/RUNNING`."""
    return f"{MATCH_SETS}{facet}"


match_fence = _key("match", "fence")
"""Hash of the match's epoch, owner and the other `FENCE_FIELDS`."""

match_journal = _key("match", "journal")
"""Stream of entries with ids `<seq>-<epoch of the owner - 1>`."""

match_meta = _key("match", "meta")
"""Hash of what lists and lookups show of a match."""

match_record = _key("match", "record")
"""The compressed record of a match that is over."""


@lru_cache(maxsize=2_048)
def append_keys(match: str) -> tuple[bytes, bytes]:
    """Return the keys of fence and journal as bytes; cached, because every append needs them."""
    return match_fence(match).encode(), match_journal(match).encode()


@lru_cache(maxsize=2_048)
def match_slot(match: str) -> int:
    """Return the cluster slot of all keys of the match."""
    return int(key_slot(match_fence(match).encode()))


bot_registration = _key("bot", "registration")
"""Hash of owner, token hash, dates and the number of Attend streams so far. It outlives the bot: names are not reused."""

bot_name_holder = _key("name", "holder")
"""The id of the owner that may register versions of a bot of this name. It outlives the bots."""

access_token = _key("token", "access")
"""Hash of an access token: its holder, scopes, times and the hash of its secret. It expires 90 days after its end."""

invite = _key("invite", "invite")
"""Hash of an invite: its quotas, uses, times, the hash of its secret, and hashes of the owners that have used it. It expires."""

owner = _owner_key("owner")
"""Hash of an owner: its quotas, its invite, when it was created, and the id by which names of bots are its."""

owner_bots = _owner_key("bots")
"""Set of the bots that an owner has registered."""

owner_open_matches = _owner_key("open-matches")
"""Sorted set of the matches that bots of the owner play; the score is when the match was counted last, in milliseconds."""

owner_day_matches = _owner_key("day-matches")
"""Sorted set of the matches that bots of an owner with a quota of them began in the last 24 hours; the score is the time, in ms."""

owner_watches = _owner_key("watches")
"""Sorted set of the matches' watches that the owner has open; the score is the end of the lease, in milliseconds."""


def audit_pseudonym(kind: str, value: str) -> str:
    """The pseudonym of a person or an address in the audit log. It expires."""
    return f"seatwise:{{audit}}:pseudonym:{kind}:{value}"


def audit_meaning(pseudonym: str) -> str:
    """The person or the address behind a pseudonym. It expires."""
    return f"seatwise:{{audit}}:meaning:{pseudonym}"


def audit_erased(person: str) -> str:
    """A note that this person was erased some minutes ago, by a hash of its name."""
    return f"seatwise:{{audit}}:erased:{owner_hash(person)}"


def audit_addresses(who: str) -> str:
    """Set of the pseudonyms of the addresses from which this bot or this pseudonym of a person has called. It expires."""
    return f"seatwise:{{audit}}:addresses:{who}"


bot_seats = _key("bot", "seats")
"""Set of the seats that the bot holds, each as `<match>/<seat>`."""

bot_attendance = _key("bot", "attendance")
"""Hash of the bot's attendance: its lobby, its queues and its number of matches. Expires with its lease."""

bot_off = _key("bot", "off")
"""Hash from each ladder that the bot was taken off to the reason."""

bot_untaken = _key("bot", "untaken")
"""Hash of the untaken seats of the bot: seats of queues, each `<match>/<seat>`, in which it has not sat down yet.

The value is `<state> <ms>`, where ms is the time of the offer. The state is `reserved` at first (then ms is 0), `offered` after
the offer, `told` or `late` when the bot was told, and `left` when the bot has closed its stream since.
"""

bot_other_seats = _key("bot", "other-seats")
"""Hash of the bot's seats that are not of a queue, with values like those of `bot_untaken`: seats of ladders, leagues, sets
of deals and created matches. A seat stays until it is released; the hash expires a day after the last reservation.
"""

bot_no_shows = _key("bot", "no-shows")
"""Hash of the bot's no-shows in queues, of the seats that it has taken since, and of the time until which it is off them."""


def bot_excuse(bot: str) -> str:
    """Whether a match was void because one of the bot's versions could not connect; its expiry says until when that counts."""
    return f"seatwise:{{bot:{bot.split('/')[1]}}}:excuse"


bot_offers = _key("bot", "offers")
"""Hash from `<match>/<seat>` to `<epoch> <offer>`."""

queue_waiting = _key("queue", "waiting")
"""Sorted set of bots; the score is the time of entry, in milliseconds of Redis's clock."""

queue_seating = _key("queue", "seating")
"""Hash from each proposed match to the bots that were taken off the queue for it and are not seated yet."""

results_log = _competition_key("results")
"""Stream of the results that count, with ids `<place>-0`."""

results_places = _competition_key("places")
"""Hash from each match to its place in the log."""

league_settings = _competition_key("league")
"""Hash of a league's settings."""

league_absences = _competition_key("absences")
"""Hash of the league's matches that were void because bots missed them: the bots against which that is held."""

league_voids = _competition_key("voids")
"""Set of the league's matches that were void."""

ladder_settings = _competition_key("ladder")
"""Hash of a ladder's settings and its published table."""

ladder_history_times = _competition_key("history-times")
"""Sorted set of the points of a ladder's history; member and score are the time in milliseconds."""

ladder_history_points = _competition_key("history-points")
"""Hash of the time of a point to its table."""

ladder_events = _competition_key("events")
"""Stream of the ladder's events that are not results: absences and pardons."""

ladder_event_names = _competition_key("event-names")
"""Hash of the events of which there is only one each."""

deal_set = _key("set", "deals")
"""Hash of a set of duplicate deals: its seed, and by number its matches and their ends."""


def process_beat(process: str) -> str:
    """Hash of a process's heartbeat count and address."""
    return f"seatwise:{{processes}}:beat:{process}"


process_orders = _key("process", "orders")
"""Stream of orders to one process."""

work_lease = _key("lease", "holder")
"""The name of the process that holds this lease."""
