"""Owners that register their bots themselves, with their quotas."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from seatwise_server.store import keys
from seatwise_server.store.errors import OwnerAbsent, TooManyBots
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call

_ADDED = 1
_ABSENT = 2
_PSEUDONYM_SECRET_BYTES = 32
_HOLDER_ID_BYTES = 16
_OPERATOR_ID = b"-"
"""Holds the names of bots that no owner has registered."""
_QUOTAS_OF_SERVER = ("most_requests", "most_matches_at_once", "most_matches_a_day", "most_watches")
"""The fields of quotas that an owner does not have while those of the server apply."""


class OwnerCreation(Enum):
    """The outcome of the creation of an owner."""

    TAKEN = 0
    """Another request has created an owner of this name."""
    CREATED = 1
    REPEATED = 2
    """This very request has created it before."""


@dataclass(frozen=True, slots=True)
class StoredOwner:
    """An owner."""

    name: str
    """Format: owners/{owner}."""
    bots: tuple[str, ...]
    """In the order of their names. Format: bots/{bot}/versions/{version}."""
    most_bots: int
    create_ms: int
    """Milliseconds of Redis's clock since 1970."""
    most_matches: int
    """The most matches that each of its bots plays at once."""
    most_requests: int | None = None
    """The most changes that it makes in a minute; None: as many as the server allows every owner. So for the next three."""
    most_matches_at_once: int | None = None
    """The most matches that all its bots play at once."""
    most_matches_a_day: int | None = None
    """The most matches that they begin in 24 hours."""
    most_watches: int | None = None
    """The most watches that it has open at once."""


class Owners:
    """The owners on one Redis. The names of their keys hold hashes of their names."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def create_owner(
        self, name: str, most_bots: int, most_matches: int, invite: str, request_id: str
    ) -> OwnerCreation:
        """Creates an owner with these quotas, for an invite. A repeat of the same request (if it has an id) creates nothing."""
        args = (most_bots, invite, request_id, most_matches)
        return OwnerCreation(
            await scripts.run_script(self._client, "owner_create", [keys.owner(name)], *args)
        )

    async def read_pseudonym_secret(self) -> bytes:
        """Returns the secret from which the ids of owners follow that an issuer has named; the first call makes it."""
        key = keys.OWNER_PSEUDONYM_SECRET
        found = await call(self._client, "GET", key)
        if found is None:
            await call(self._client, "SET", key, secrets.token_bytes(_PSEUDONYM_SECRET_BYTES), "NX")
            found = await call(self._client, "GET", key)
        return bytes(found)

    async def drop_owner(self, name: str) -> None:
        """Takes back the creation of an owner that has nothing yet."""
        await call(self._client, "UNLINK", keys.owner(name))

    async def get_owner(self, name: str) -> StoredOwner | None:
        """Returns the owner; None if there is none, or if it was erased."""
        fields = ("most_bots", "create_ms", "most_matches", *_QUOTAS_OF_SERVER)
        bots, made, matches, *own = await call(self._client, "HMGET", keys.owner(name), *fields)
        if not made:
            return None
        quotas = [None if quota is None else int(quota) for quota in own]
        names = tuple(await self.list_bots(name))
        return StoredOwner(name, names, int(bots), int(made), int(matches or 0), *quotas)

    async def list_bots(self, name: str) -> list[str]:
        """Returns the bots of the owner, in the order of their names."""
        return sorted(bot.decode() for bot in await call(self._client, "SMEMBERS", keys.owner_bots(name)))

    async def count_request(self, name: str, per_minute: float) -> float:
        """Counts a change that the owner is about to make. Returns 0, or the seconds until it may come back.

        `per_minute` changes in a minute are the quota of owners that have none of their own; 0 for no limit.
        """
        args = (f"{per_minute:g}",)
        wait_ms: int = await scripts.run_script(self._client, "owner_request", [keys.owner(name)], *args)
        return wait_ms / 1000

    async def read_most_matches(self, name: str) -> int | None:
        """Returns how many matches each bot of the owner may play at once; None if there is no such owner."""
        found = await call(self._client, "HGET", keys.owner(name), "most_matches")
        return None if found is None else int(found)

    async def add_bot(self, name: str, bot: str) -> None:
        """Counts a bot as the owner's. Repeatable. Raises OwnerAbsent and TooManyBots."""
        named = [keys.owner(name), keys.owner_bots(name)]
        answer = await scripts.run_script(self._client, "owner_add_bot", named, bot)
        if answer == _ABSENT:
            raise OwnerAbsent(f"there is no {name}")
        if answer != _ADDED:
            raise TooManyBots(f"{name} has as many bots as it may have")

    async def claim_name(self, owner: str, bot: str) -> bool:
        """Gives the name that the versions of this bot share to the owner for good; returns False if another has it.

        Repeatable. An owner that does not exist stands for the operator. The id of the owner says nothing once the owner is
        erased: nobody gets its names.
        """
        fresh_id = secrets.token_hex(_HOLDER_ID_BYTES)
        held = await scripts.run_script(self._client, "owner_holder_id", [keys.owner(owner)], fresh_id)
        key = keys.bot_name_holder(bot.split("/")[1])
        return bool(await scripts.run_script(self._client, "bot_name_claim", [key], held or _OPERATOR_ID))

    async def has_bot(self, name: str, bot: str) -> bool:
        """Whether the bot is the owner's."""
        return bool(await call(self._client, "SISMEMBER", keys.owner_bots(name), bot))

    async def remove_bot(self, name: str, bot: str) -> None:
        """Does not count a bot any more. Repeatable."""
        await call(self._client, "SREM", keys.owner_bots(name), bot)

    async def set_quotas(self, name: str, quotas: Mapping[str, int]) -> None:
        """Sets quotas, by the names of their fields. Raises OwnerAbsent."""
        args = [it for pair in quotas.items() for it in pair]
        if not await scripts.run_script(self._client, "owner_set_quotas", [keys.owner(name)], *args):
            raise OwnerAbsent(f"there is no {name}")

    async def erase_owner(self, name: str) -> None:
        """Deletes all that is known of the owner. Its bots stay, without an owner. Repeatable."""
        invite = await call(self._client, "HGET", keys.owner(name), "invite")
        if invite:
            await call(self._client, "HDEL", keys.invite(invite.decode()), f"by:{keys.owner_hash(name)}")
        held = (keys.owner_open_matches(name), keys.owner_day_matches(name), keys.owner_watches(name))
        await call(self._client, "UNLINK", keys.owner(name), keys.owner_bots(name), *held)
