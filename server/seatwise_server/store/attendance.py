"""The bots that are present: at which lobby, for which queues, and for how many matches at once."""

from __future__ import annotations

import asyncio
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
    """Unique to each stream."""
    max_matches: int
    """How many matches at once the bot takes; 0 while it drains."""
    queues: tuple[str, ...]
    turn: int = 0
    """The number of this stream of the bot, from `Attendances.number_stream`. A late write of an older stream is ignored."""


LATE_MS = 1000
"""After this time between offer and notice, the bot was told of its seat too late: it lost set-up time, and
that was our fault.
"""

PROMPT_NUMBER_S = 0.1
"""Seconds in which Redis numbers a stream when nothing holds it up."""


class Attendances:
    """The attendances of all bots. An attendance ends with its lease."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def number_stream(self, bot: str, arrival_s: float) -> int:
        """Returns the number of a stream of the bot that arrived at this time, on the clock of the event loop.

        It is higher than the numbers of all streams of the bot that arrived earlier, at whichever lobby and in whatever order
        they are numbered. An answer that was long in coming may count the wait as if the stream had arrived later, so it is
        asked for once more.
        """
        loop, named = asyncio.get_running_loop(), [keys.bot_registration(bot)]
        asked_s = loop.time()
        turn = await scripts.run_script(self._client, "stream_turn", named, _age_us(asked_s, arrival_s))
        if loop.time() - asked_s > PROMPT_NUMBER_S:
            turn = await scripts.run_script(
                self._client, "stream_turn", named, _age_us(loop.time(), arrival_s)
            )
        return int(turn)

    async def write_attendance(self, bot: str, attendance: Attendance, lease_ms: int) -> bool:
        """Notes that the bot is present; with the same attend id, notes what it takes from now on.

        A newer attendance replaces an older one, and is published on `keys.ATTENDS_CHANNEL`. Returns False, and changes
        nothing, if a newer stream of the bot attends.
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
        return bool(await scripts.run_script(self._client, "attend", [keys.bot_attendance(bot)], *args))

    async def renew_attendance(self, bot: str, attendance: Attendance, lease_ms: int) -> bool:
        """Extends the lease, with what the bot takes from now on; returns False if a newer attendance replaced it."""
        args = (
            attendance.lobby,
            attendance.attend_id,
            attendance.max_matches,
            "\n".join(attendance.queues),
            lease_ms,
            attendance.turn,
        )
        return bool(await scripts.run_script(self._client, "attend_keep", [keys.bot_attendance(bot)], *args))

    async def remove_attendance(self, bot: str, attend_id: str, *, by_itself: bool = False) -> bool:
        """Ends the attendance; returns False, and changes nothing, if a newer one replaced it.

        A bot that leaves `by_itself` must still take the seats that it was just given, whether it was
        told of them or not.
        """
        named = [keys.bot_attendance(bot), keys.bot_untaken(bot), keys.bot_other_seats(bot)]
        args = (attend_id, "1" if by_itself else "", LATE_MS)
        return bool(await scripts.run_script(self._client, "attend_leave", named, *args))

    async def get_attendance(self, bot: str) -> Attendance | None:
        """Returns the bot's attendance; None if it is absent."""
        fields = ("lobby", "attend_id", "max_matches", "queues")
        lobby, attend_id, most, queues = await call(self._client, "HMGET", keys.bot_attendance(bot), *fields)
        if lobby is None:
            return None
        named = tuple(name for name in queues.decode().split("\n") if name)
        return Attendance(lobby.decode(), attend_id.decode(), int(most), named)

    async def kept_ms(self, bots: Collection[str]) -> dict[str, int]:
        """Returns how many milliseconds ago a lobby last renewed the attendance of each of these bots, without
        absent ones.
        """
        named = list(bots)
        commands = [("PTTL", keys.bot_attendance(bot)) for bot in named]
        answers = await call_many(self._client, commands) if commands else []
        return {
            bot: ATTENDANCE_LEASE_MS - left_ms
            for bot, left_ms in zip(named, answers, strict=True)
            if left_ms > 0
        }

    async def most_matches(self, bots: Collection[str]) -> dict[str, int]:
        """Returns how many matches at once each of these bots takes; bots that are not present are left out."""
        named = list(bots)
        commands = [("HGET", keys.bot_attendance(bot), "max_matches") for bot in named]
        answers = await call_many(self._client, commands) if commands else []
        return {bot: int(most) for bot, most in zip(named, answers, strict=True) if most is not None}

    async def present_bots(self, bots: Collection[str]) -> set[str]:
        """Returns those of these bots that are present."""
        named = list(bots)
        commands = [("EXISTS", keys.bot_attendance(bot)) for bot in named]
        answers = await call_many(self._client, commands) if commands else []
        return {bot for bot, is_there in zip(named, answers, strict=True) if is_there}


def _age_us(now_s: float, arrival_s: float) -> int:
    return int((now_s - arrival_s) * 1_000_000)
