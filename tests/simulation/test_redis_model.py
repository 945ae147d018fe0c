"""The model of Redis answers as a real server does, command by command and script by script."""

from __future__ import annotations

import random
from typing import Any

import pytest
from private_redis.redis_server import redis_client, redis_server
from redis._parsers.base import BaseParser
from redis.asyncio import Redis as Client
from redis.exceptions import ResponseError

from seatwise_server.store import keys
from seatwise_server.store.redis import scripts
from simulation.redis_model import Redis as Model
from simulation.redis_model import Refused, Status

__all__ = ["redis_client", "redis_server"]

STEPS = 500
NOW_US = 1_700_000_000_000_000
MATCH, BOT, QUEUE, PROCESS = "matches/m", "bots/b/versions/1", "casual", "p"
NO_SHOW_LIMITS = (20, 40, 10**6, 10**7, 10**8, 10**9)


class Lots(random.Random):
    """Draws commands as the store sends them, few enough of each kind that they meet."""

    def command(self) -> list[Any]:
        return self.choice(
            (self.match, self.match, self.job, self.job, self.job, self.queue, self.seat, self.process,
             self.work, self.odds)
        )()  # fmt: skip

    def script(self, name: str, named: list[str], *args: Any) -> list[Any]:
        return ["EVAL", scripts.script_named(name).source, len(named), *named, *args]

    def owner(self) -> str:
        return self.choice("ab")

    def match(self) -> list[Any]:
        fence, journal = keys.match_fence(MATCH), keys.match_journal(MATCH)
        meta, record = keys.match_meta(MATCH), keys.match_record(MATCH)
        epoch, owner, seq = self.randint(0, 4), self.owner(), self.randint(1, 6)
        entries = [f"entry {self.randint(1, 2)}" for _ in range(self.randint(0, 3))]
        return self.choice(
            (
                self.script("append", [fence, journal], epoch, owner, seq, *entries),
                self.script("append", [fence, journal], 1, "a", seq, *entries),
                self.script(
                    "claim", [fence, journal], owner, epoch, self.choice(["", "0", "1"]), self.randint(0, 1)
                ),
                self.script("confirm", [fence], epoch, owner),
                self.script("reclaim", [fence, journal], owner, epoch),
                ["XADD", journal, "NOMKSTREAM", f"{seq}-{epoch}", "e", "entry 1"],
                self.script("touch", [fence]),
                self.script("match_mark", [meta], "abort", "why"),
                self.script("match_state", [fence, meta], epoch, owner, "RUNNING"),
                self.script("retire", [fence, journal, meta, record], epoch, owner, "r", "{}", "OVER", 10**6),
                ["XRANGE", journal, f"{seq}-0", "+"],
                ["XRANGE", journal, f"({seq}-0", "+", "COUNT", 2],
                ["XREVRANGE", journal, "+", "-", "COUNT", 1],
                ["XREAD", "STREAMS", journal, f"{seq}-{2**64 - 1}"],
                ["HMGET", fence, "epoch", "owner", "confirmed", "nothing"],
                ["GET", record],
                ["UNLINK", self.choice([fence, journal, meta, record])],
            )
        )

    def job(self) -> list[Any]:
        stream, hosted, markers = keys.JOB_STREAM, keys.HOSTED_JOB_STREAM, keys.JOB_MARKERS
        job, consumer, other = f"{self.randint(1, 9)}-0", self.owner(), self.owner()
        return self.choice(
            (
                ["XADD", stream, f"{self.randint(1, 40)}-0", "match", "m"],
                ["XADD", stream, f"{self.randint(1, 40)}-0", "match", "m"],
                ["XGROUP", "CREATE", stream, "referees", "0", "MKSTREAM"],
                ["XADD", hosted, f"{self.randint(1, 40)}-0", "match", "m"],
                ["XGROUP", "CREATE", hosted, "referees", "0", "MKSTREAM"],
                ["XREADGROUP", "GROUP", "referees", consumer, "COUNT", 2, "STREAMS", stream, ">"],
                [
                    "XREADGROUP",
                    "GROUP",
                    "referees",
                    consumer,
                    "COUNT",
                    2,
                    "STREAMS",
                    stream,
                    hosted,
                    ">",
                    ">",
                ],
                self.script("job_return", [stream, markers, hosted], "referees", job, "hosted:"),
                ["XREADGROUP", "GROUP", "referees", consumer, "COUNT", 2, "STREAMS", stream, "0"],
                ["XPENDING", stream, "referees"],
                self.script("job_held", [stream], "referees", consumer, 3, self.choice(["-", f"({job}"])),
                self.script("job_move", [stream], "referees", consumer, other, job),
                self.script("job_done", [stream, markers], "referees", job),
                ["XLEN", stream],
            )
        )

    def queue(self) -> list[Any]:
        waiting, seating = keys.queue_waiting(QUEUE), keys.queue_seating(QUEUE)
        bot, match = self.choice(["b1", "b2", "b3"]), self.choice(["m1", "m2"])
        return self.choice(
            (
                self.script("queue_return", [waiting], bot, self.randint(1, 5)),
                self.script("queue_dissolve", [waiting, seating], match, 7, bot),
                ["ZRANGE", waiting, 0, self.randint(-1, 2)],
                ["ZRANK", waiting, bot],
                ["ZCARD", waiting],
                ["ZREM", waiting, bot],
                ["HGETALL", seating],
                ["HSET", seating, match, "5 6 b1"],
                ["HDEL", seating, match],
                ["ZADD", keys.BOT_INDEX, "NX", 0, bot],
                ["ZRANGE", keys.BOT_INDEX, "[b", "(b3", "BYLEX", "LIMIT", 0, 2],
                ["ZADD", keys.MATCH_INDEX, "NX", self.randint(1, 9), match],
                ["ZRANGE", keys.MATCH_INDEX, "8", "-inf", "BYSCORE", "REV", "LIMIT", 0, 5, "WITHSCORES"],
                ["ZREMRANGEBYSCORE", keys.MATCH_INDEX, "-inf", f"({self.randint(1, 9)}"],
            )
        )

    def seat(self) -> list[Any]:
        seats, offers, at = keys.bot_seats(BOT), keys.bot_offers(BOT), keys.bot_attendance(BOT)
        untaken, missed, ladder = keys.bot_untaken(BOT), keys.bot_no_shows(BOT), keys.bot_other_seats(BOT)
        seat, attends = f"m/{self.randint(0, 2)}", self.choice(["one", "two"])
        return self.choice(
            (
                self.script(
                    "attend", [at], "lobby", attends, 2, "casual", 10**6, "channel", BOT, self.randint(1, 3)
                ),
                self.script("attend_keep", [at], "lobby", attends, 2, "casual", 10**6, self.randint(1, 3)),
                self.script("attend_leave", [at, untaken, ladder], attends, self.choice(["1", ""]), 10**6),
                self.script(
                    "seat_reserve",
                    [seats, at, untaken, missed, ladder],
                    seat,
                    self.choice(["1", "ladder", ""]),
                ),
                self.script(
                    "seat_room", [seats, at, untaken, missed], self.choice(["", "casual", "other"]), "1"
                ),
                self.script(
                    "seat_release",
                    [seats, offers, untaken, keys.bot_registration(BOT), ladder],
                    seat,
                    "channel",
                    BOT,
                ),
                self.script(
                    "offer_put",
                    [offers, seats, untaken, ladder],
                    seat,
                    self.randint(1, 3),
                    "offer",
                    "channel",
                    BOT,
                ),
                self.script("seat_told", [untaken, ladder], 10**6, seat),
                self.script(
                    "seat_taken", [untaken, missed], seat, "channel", BOT, 31, 5, 10**6, self.choice([-1, 10])
                ),
                self.script("no_show", [untaken, missed], seat, "m", "1", "channel", BOT, *NO_SHOW_LIMITS),
                self.script("no_shows_off", [missed]),
                ["HMGET", missed, "taken", "matches"],
                ["HGETALL", offers],
                ["SMEMBERS", seats],
            )
        )

    def process(self) -> list[Any]:
        beat, orders = keys.process_beat(PROCESS), keys.process_orders(PROCESS)
        return self.choice(
            (
                self.script("process_deregister", [beat], PROCESS, "channel", self.choice(["1", "dead"])),
                ["HSET", beat, "count", 1, "address", "here"],
                ["HINCRBY", beat, "count", 1],
                ["XTRIM", orders, "MINID", f"{self.randint(1, 9)}-0"],
                ["XADD", orders, f"{self.randint(1, 20)}-0", "o", "drain"],
            )
        )

    def work(self) -> list[Any]:
        lease = keys.work_lease("house")
        return self.choice(
            (
                self.script("lease_hold", [lease], self.owner(), self.choice([0, 10**6])),
                ["GET", lease],
                ["PEXPIRE", lease, 10**6],
            )
        )

    def odds(self) -> list[Any]:
        registration = keys.bot_registration(BOT)
        return self.choice(
            (
                self.script("bot_token", [registration], self.choice(["", "hash"]), self.choice(["", "id"])),
                ["HSETNX", registration, "owner", "me"],
                ["INCR", keys.TOKENS_REVISION],
                ["EXISTS", registration],
                ["EVALSHA", "0" * 40, 0],
                ["PING"],
            )
        )


async def told_by(connection: Any, command: list[Any]) -> Any:
    """What the real server says."""
    await connection.send_command(*command)
    try:
        return await connection.read_response()
    except ResponseError as error:
        return shown(error)


def shown(error: Exception) -> str:
    """Its kind, and how it begins."""
    return f"{type(error).__name__} {str(error)[:15]}"


def told_by_model(model: Model, command: list[Any]) -> Any:
    """What the model says."""
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in command]
    try:
        answer = model.call(*parts)
    except Refused as refused:
        return shown(BaseParser.parse_error(str(refused)))
    return answer.encode() if isinstance(answer, Status) else answer


def plain(answer: Any, command: list[Any]) -> Any:
    """Without what only clocks know, and without an order that nobody promises."""
    if command[0] == "SMEMBERS":
        return sorted(answer)
    if command[0] == "HGETALL":
        return sorted(zip(answer[::2], answer[1::2], strict=True))
    return answer


@pytest.mark.parametrize("seed", range(2))
async def test_the_model_says_what_a_real_server_says(redis_client: Client, seed: int) -> None:
    lots, model = Lots(seed), Model(lambda: NOW_US)
    connection = redis_client.connection_pool.make_connection()
    await connection.connect()
    for step in range(STEPS):
        command = lots.command()
        real, modelled = await told_by(connection, command), told_by_model(model, command)
        told = [part.partition(b"-- ")[2][:80] if isinstance(part, bytes) else part for part in command]
        assert plain(modelled, command) == plain(real, command), f"step {step}: {told}"
    await connection.disconnect()
