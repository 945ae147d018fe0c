"""What lists and lookups say about matches: their meta, their index by age, and their records."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seatwise_referee.match_state import MatchState
from seatwise_server.store import keys
from seatwise_server.store.errors import BadPageToken, MatchRetired, ProposalExpired
from seatwise_server.store.group_commit.writer import AppendResult
from seatwise_server.store.queues import Waiting
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import Argument, RedisClient, as_pairs, call, call_many

_FORGET_AT_ONCE = 100
"""How many expired matches one retirement takes out of the index; one each would already keep it flat."""

_READ_AT_ONCE = 100

_IS_LATE = -2
"""The answer of `match_create.lua` to a lobby that comes too late."""

WAITED_SINCE = "waited_since"
"""Field of a match of a queue in which no-shows count: JSON, each bot that came from the queue and since when it waited."""

_DROPPED_MS = 3_600_000
"""For so long a match that was dropped cannot be claimed or created: far longer than a process may stand still."""


@dataclass(frozen=True, slots=True)
class MatchMeta:
    """A match as lists show it."""

    match: str
    create_us: int
    """When it was created, in microseconds of Redis's clock."""
    fields: dict[str, bytes]
    """What `create` and `set_state` wrote, `state` and after the end `result` among them."""

    @property
    def state(self) -> str:
        """The last state that was set, empty before the first."""
        return self.fields.get("state", b"").decode()

    @property
    def waited_since(self) -> dict[str, Waiting]:
        """The bots that came from a queue in which no-shows count, and their places in it; empty for other matches."""
        since = json.loads(self.fields.get(WAITED_SINCE, b"{}"))
        return {bot: Waiting(bot, since_ms) for bot, since_ms in since.items()}

    @property
    def queue(self) -> str:
        """The queue or ladder that it came from; empty when that is not known."""
        return self.fields.get("queue", b"").decode()

    @classmethod
    def from_hash(cls, match: str, answer: Any) -> MatchMeta | None:
        """The meta from Redis's answer to HGETALL; None when the match was never created, or is forgotten."""
        fields = {name.decode(): value for name, value in as_pairs(answer)}
        create_us = fields.pop("create_us", None)
        return None if create_us is None else cls(match, int(create_us), fields)


@dataclass(frozen=True, slots=True)
class StoredMatchPage:
    """Some matches, newest first."""

    matches: tuple[MatchMeta, ...]
    next_page_token: str
    """Empty when there are no more."""


class Matches:
    """The meta of all matches on one Redis."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def create_match(
        self, match: str, meta: Mapping[str, Argument], until_ms: int | None = None
    ) -> bool:
        """Writes the meta and lists the match; False and nothing changed when it was there already.

        Raises MatchRetired when the match was dropped a short time ago: its name is not used again. Raises
        ProposalExpired when it is not there and it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        pairs = [part for pair in meta.items() for part in pair]
        named = [keys.match_meta(match), keys.match_fence(match)]
        made, create_us = await scripts.run_script(
            self._client, "match_create", named, until_ms or "", *pairs
        )
        if made == _IS_LATE:
            raise ProposalExpired(match)
        if made < 0:
            raise MatchRetired(match)
        await self._list(match, int(create_us))
        return bool(made)

    async def _list(self, match: str, create_us: int) -> None:
        named = [keys.MATCH_INDEX, keys.MATCH_EXPIRY]
        await scripts.run_script(self._client, "match_list", named, match, create_us)

    async def get_meta(self, match: str) -> MatchMeta | None:
        """The match's meta; None when it was never created or its record has gone."""
        return MatchMeta.from_hash(match, await call(self._client, "HGETALL", keys.match_meta(match)))

    async def set_state(
        self,
        match: str,
        epoch: int,
        owner: str,
        state: MatchState,
        more: Mapping[str, Argument] | None = None,
    ) -> AppendResult:
        """Writes the state, and more fields, for the match's owner; FENCED when that is somebody else."""
        fields = {"state": state, **(more or {})}
        pairs = [part for pair in fields.items() for part in pair]
        named = [keys.match_fence(match), keys.match_meta(match)]
        return AppendResult(
            await scripts.run_script(self._client, "match_state", named, epoch, owner, *pairs)
        )

    async def drop_unowned(self, match: str, until_ms: int | None = None) -> bool:
        """Takes a match that nobody has ever owned off the books; from now on nobody can claim or create it.

        False, and nothing is changed, where an owner has left a fence, a journal, a record or a result.
        May be repeated. The list comes last: a crash before it leaves a name there that no page shows.
        Raises ProposalExpired when it is `until_ms`, in milliseconds of Redis's clock, or later.
        """
        parts = (keys.match_fence, keys.match_journal, keys.match_meta, keys.match_record)
        named = [part(match) for part in parts]
        args = (_DROPPED_MS,) if until_ms is None else (_DROPPED_MS, until_ms)
        answer = await scripts.run_script(self._client, "match_drop", named, *args)
        if answer < 0:
            raise ProposalExpired(match)
        if not answer:
            return False
        await call(self._client, "ZREM", keys.MATCH_INDEX, match)
        return True

    async def ask_abort(self, match: str, why: str = "") -> bool:
        """Notes that the match is to be voided, for whoever owns it next; False when it is not known."""
        return bool(
            await scripts.run_script(self._client, "match_mark", [keys.match_meta(match)], "abort", why)
        )

    async def is_to_be_aborted(self, match: str) -> bool:
        """Whether `ask_abort` was called."""
        return bool(await call(self._client, "HEXISTS", keys.match_meta(match), "abort"))

    async def forget_later(self, match: str, keep_s: int) -> None:
        """Takes a retired match out of the list after `keep_s`; call it after `Journal.retire`, with the same time.

        Also takes out those whose time has come, so that the list stays as long as what is kept.
        """
        named = [keys.MATCH_INDEX, keys.MATCH_EXPIRY]
        await scripts.run_script(
            self._client, "match_forget", named, match, max(1, keep_s * 1000), _FORGET_AT_ONCE
        )

    async def get_record(self, match: str) -> bytes | None:
        """The record of a match that is over; None while it runs, and when the record has gone."""
        packed = await call(self._client, "GET", keys.match_record(match))
        return zlib.decompress(packed) if packed is not None else None

    async def list_page(self, page_size: int, page_token: str = "") -> StoredMatchPage:
        """The newest matches, or those behind the page that ended with the token.

        Raises BadPageToken. Matches whose meta has gone are left out.
        """
        place = PageCursor.parse(page_token)
        found: list[MatchMeta] = []
        while len(found) <= page_size:
            named, place = await self._names_behind(place)
            if not named:
                return StoredMatchPage(tuple(found), "")
            found += await self._read_metas(named)
        last = found[page_size - 1]
        return StoredMatchPage(tuple(found[:page_size]), PageCursor(last.create_us, last.match).token())

    async def _names_behind(self, place: PageCursor) -> tuple[list[str], PageCursor]:
        """The next names and the place of the last; matches of one microsecond are in order of their names."""
        named: list[str] = []
        offset = 0
        while not named:
            limits = ("BYSCORE", "REV", "LIMIT", offset, _READ_AT_ONCE, "WITHSCORES")
            answer = await call(self._client, "ZRANGE", keys.MATCH_INDEX, place.create_us, "-inf", *limits)
            if not answer:
                return [], place
            places = [PageCursor(int(score), name.decode()) for name, score in as_pairs(answer)]
            named = [it.match for it in places if it < place]
            offset += _READ_AT_ONCE
        return named, places[-1]

    async def _read_metas(self, named: list[str]) -> list[MatchMeta]:
        answers = await call_many(self._client, [("HGETALL", keys.match_meta(match)) for match in named])
        metas = (MatchMeta.from_hash(match, answer) for match, answer in zip(named, answers, strict=True))
        return [meta for meta in metas if meta is not None]


@dataclass(frozen=True, slots=True, order=True)
class PageCursor:
    """A place in the list, between two matches."""

    create_us: int
    match: str

    @classmethod
    def parse(cls, token: str) -> PageCursor:
        """The place a page token names; the empty token is before the newest. Raises BadPageToken."""
        if not token:
            return cls(2**62, "")
        try:
            create_us, match = base64.urlsafe_b64decode(token.encode()).decode().split(" ")
            return cls(int(create_us), match)
        except (binascii.Error, ValueError) as error:
            raise BadPageToken("the page token is not one that this list gave out") from error

    def token(self) -> str:
        """The place as an opaque page token."""
        return base64.urlsafe_b64encode(f"{self.create_us} {self.match}".encode()).decode()
