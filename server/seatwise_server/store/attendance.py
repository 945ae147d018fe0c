"""Which bots are present: where, for which queues, and for how many matches at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from seatwise_server.store.redis.client import RedisClient, call, call_many
from seatwise_server.timings import ATTENDANCE_LEASE_MS


@dataclass(frozen=True, slots=True)
class Attendance:
    """A bot's presence at one lobby."""

    lobby: str
    attend_id: str
    """A new one for each stream."""
    max_matches: int
    """How many matches at once the bot takes; 0 while it drains."""
    queues: tuple[str, ...]
    turn: int = 0
    """Counts the streams of the bot, as `Attendances.turn` gives it: what an older one writes late changes nothing."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The older attendance that a new one has ended."""

    lobby: str
    attend_id: str


LATE_MS = 1000
"""A bot that is told of a seat so long after the seat was offered has lost set-up time through our fault."""


class Attendances:
    """Who is present; a presence ends with its lease."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def replace_attendance_id(self, bot: str) -> int:
        """For a stream that comes now: higher than that of any before."""
        return int(await call(self._client, "HINCRBY", keys.bot_registration(bot), "streams", 1))

    async def write_attendance(self, bot: str, attendance: Attendance, lease_ms: int) -> Replaced | None:
        """Notes that the bot is present, or with the same attend id what it takes from now on.

        A newer attendance replaces an older one: that is answered, and published on keys.ATTENDS_CHANNEL. An older
        one, whose stream was given up before this was done, changes nothing: `keep` says that it was replaced.
        """
        args = (
            attendance.lobby,
            attendance.attend_id,
            attendance.max_matches,
            "\n".join(attendance.queues),
            lease_ms,
            keys.ATTENDS_CHANNEL,
            bot,
            attendance.turn,
        )
        before = await scripts.run_script(self._client, "attend", [keys.bot_attendance(bot)], *args)
        return Replaced(before[0].decode(), before[1].decode()) if before else None

    async def renew_attendance(self, bot: str, attendance: Attendance, lease_ms: int) -> bool:
        """Lengthens the lease, with what the bot takes from now on; False when a newer attendance replaced it."""
        args = (
            attendance.lobby,
            attendance.attend_id,
            attendance.max_matches,
            "\n".join(attendance.queues),
            lease_ms,
        )
        return bool(await scripts.run_script(self._client, "attend_keep", [keys.bot_attendance(bot)], *args))

    async def remove_attendance(self, bot: str, attend_id: str, *, by_itself: bool = False) -> bool:
        """Ends the presence; False and nothing changed when it is not this one any more.

        A bot that leaves `by_itself` is held to the seats of queues that it has just been given, told of them or not.
        """
        named = [keys.bot_attendance(bot), keys.bot_untaken(bot)]
        args = (attend_id, "1" if by_itself else "", LATE_MS)
        return bool(await scripts.run_script(self._client, "attend_leave", named, *args))

    async def get_attendance(self, bot: str) -> Attendance | None:
        """Where the bot is present, None when it is absent."""
        fields = ("lobby", "attend_id", "max_matches", "queues")
        lobby, attend_id, most, queues = await call(self._client, "HMGET", keys.bot_attendance(bot), *fields)
        if lobby is None:
            return None
        named = tuple(name for name in queues.decode().split("\n") if name)
        return Attendance(lobby.decode(), attend_id.decode(), int(most), named)

    async def kept_ms(self, bots: Collection[str]) -> dict[str, int]:
        """How long ago a lobby last looked after each of these bots; absent ones are left out."""
        named = list(bots)
        commands = [("PTTL", keys.bot_attendance(bot)) for bot in named]
        answers = await call_many(self._client, commands) if commands else []
        return {
            bot: ATTENDANCE_LEASE_MS - left_ms
            for bot, left_ms in zip(named, answers, strict=True)
            if left_ms > 0
        }

    async def present_bots(self, bots: Collection[str]) -> set[str]:
        """Which of these bots are present."""
        named = list(bots)
        commands = [("EXISTS", keys.bot_attendance(bot)) for bot in named]
        answers = await call_many(self._client, commands) if commands else []
        return {bot for bot, is_there in zip(named, answers, strict=True) if is_there}
