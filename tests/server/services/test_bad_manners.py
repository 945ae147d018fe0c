"""Floods, silence, lost links and strange tongues: nobody waits longer than the clocks say."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest
from harness import (
    IMPATIENT,
    PLAY,
    SOON_S,
    Chair,
    House,
    Refused,
    Stream,
    Wire,
    bystanders,
    dealt,
    endings,
    field_of,
    item,
    legal_move,
    message,
    plays_on,
    reason_name,
    submission,
    until,
)
from matches.effort import examples

from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import play_service_pb2
from seatwise_server.play import play_stream
from seatwise_server.play.inbound import ITEMS_PER_TURN
from seatwise_server.play.outbox import MOST_ANSWERS
from seatwise_server.play.play_stream import PlayStream

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("both_doors")]

MANY = 10_000
MESSAGES = examples(MANY, 2_000)
PATIENT = {"free_ms": {"card": 60_000, "arrange": 60_000}}
"""For a seat that has other things to do than to move, on however slow a machine; bystanders have a second."""
Sit = play_service_pb2.Sit
Resign = play_service_pb2.Resign


# Floods


async def reasons(chair: Chair, count: int) -> Counter[str]:
    """What the next rejections of this seat say."""
    return Counter([await chair.rejected(within_s=30) for _ in range(count)])


@pytest.mark.sampled
@pytest.mark.slow
async def test_thousands_of_messages_at_once_are_all_answered_and_nobody_waits_for_them(house):
    async with bystanders(house), dealt(house, **PATIENT) as (table, asked, _):
        stale = message([item(table.name, asked.seat, submit_move=submission(99, ugo_pb2.Move(play=1)))])
        counting = asyncio.create_task(reasons(asked, MESSAGES))
        for _ in range(MESSAGES):
            await asked.stream.send_raw(stale)
        found = await counting
        assert found["STALE"] > 0
        assert found.keys() <= {"STALE", "TOO_MANY"}
        await plays_on(house, table)


@pytest.mark.not_by_http(
    "in JSON the body is larger than a post may be; test_rest_hostile.py has bodies of that size"
)
@pytest.mark.parametrize(
    "body",
    [
        b"",  # no action
        b"\xff",  # no item
        play_service_pb2.PlayRequestItem(pong=play_service_pb2.Pong(number=1)).SerializeToString(),
        play_service_pb2.PlayRequestItem(match="m", sit=Sit()).SerializeToString(),
        play_service_pb2.PlayRequestItem(match="m", resign=Resign()).SerializeToString(),
    ],
    ids=["empty", "broken", "pong", "sit elsewhere", "resign elsewhere"],
)
async def test_ten_thousand_items_in_one_message_keep_nobody_waiting(house, body):
    async with bystanders(house), dealt(house, **PATIENT) as (table, asked, _):
        await asked.stream.send_raw(field_of(1, body) * MANY)
        await asked.sit(asked.stream)
        await asked.asked()
        await plays_on(house, table)


@pytest.mark.not_by_http(
    "in JSON the body is larger than a post may be; test_rest_hostile.py has bodies of that size"
)
async def test_the_items_of_one_message_are_taken_a_few_at_a_time(house, monkeypatch):
    """As many as fit into one would stop the loop, and with it every match, for most of a second."""
    taken: Counter[int] = Counter()
    turn = 0

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    clean = PlayStream.on_pong
    monkeypatch.setattr(PlayStream, "on_pong", lambda *args: (taken.update([turn]), clean(*args)))
    turns = asyncio.create_task(count_turns())
    flooding = (await house.bot()).play(pongs=False)
    await flooding.send_raw(field_of(1, item("", 0, pong=play_service_pb2.Pong()).SerializeToString()) * MANY)
    await until(lambda: taken.total() == MANY)
    turns.cancel()
    assert max(taken.values()) <= ITEMS_PER_TURN


async def test_a_match_goes_on_beside_a_flood_of_questions_about_others_and_its_record_is_to_be_had(house):
    async with bystanders(house), dealt(house, **PATIENT) as (table, asked, _):
        question = field_of(1, item("matches/none", 0, resign=Resign()).SerializeToString())
        for _ in range(20):
            await asked.stream.send_raw(question * 200)
        found = Counter(
            [
                reason_name((await asked.stream.receive("matches/none", 0, within_s=60)).move_rejected)
                for _ in range(20 * 200)
            ]
        )
        assert found["NOT_YOUR_SEAT"] >= 1
        assert found["TOO_MANY"] > 1000
        await plays_on(house, table)


async def test_of_fifty_streams_at_once_one_stays_and_the_others_are_told_so(house):
    bot = await house.bot()
    # Without pongs: a write behind the end makes the client of gRPC forget why the stream ended.
    streams = {asyncio.create_task(each.end()): each for each in [bot.play(pongs=False) for _ in range(50)]}
    ended: set[asyncio.Task[Refused]] = set()
    while len(ended) < len(streams) - 1:
        done, _ = await asyncio.wait(streams.keys() - ended, return_when=asyncio.FIRST_COMPLETED)
        ended |= done
    assert {task.result().reason for task in ended} == {"REPLACED"}
    [(left, stays)] = [(task, each) for task, each in streams.items() if task not in ended]
    await stays.send(item("matches/none", 0, resign=Resign()))
    await stays.receive("matches/none", 0)
    left.cancel()


# Who does not read


@pytest.fixture
def impatience(monkeypatch):
    """A blocked write is noticed soon."""
    monkeypatch.setattr(play_stream, "BLOCKED_S", 0.4)
    monkeypatch.setattr(play_stream, "PING_S", 0.1)


async def flood(house: House, deaf: Stream, bot: str) -> PlayStream:
    """Asks for answers that nobody reads until the server has had enough; its end of the stream.

    Nothing is sent while the server does not read: of a write that is under way when the stream ends,
    gRPC's client says only that it failed.
    """
    nonsense = field_of(1, item("x" * 64, 0).SerializeToString()) * 50
    await deaf.send_raw(nonsense)
    ours = await until(lambda: house.server.referee.streams.get_stream(bot))
    while not ours.is_ending:
        if ours.outbox.is_full:
            await asyncio.sleep(0.005)
        else:
            await deaf.send_raw(nonsense)
    return ours


@pytest.mark.not_by_http(
    "the relay reads in place of the bot; test_rest_hostile.py has callers that do not read"
)
@pytest.mark.usefixtures("impatience")
@pytest.mark.slow
async def test_a_bot_that_never_reads_loses_its_stream_and_fills_no_memory(house):
    async with bystanders(house), dealt(house) as (table, asked, _):
        older, deaf = asked.stream, asked.wire.play(reads=False, pongs=False)
        await older.end()
        ours = await flood(house, deaf, asked.wire.bot)
        assert len(ours.outbox._answers) <= MOST_ANSWERS + 1  # and a ping
        await deaf.read()
        assert (deaf.how.code, deaf.how.reason) == ("RESOURCE_EXHAUSTED", "SLOW_READER")
        await asked.sit()
        await asked.asked()
        await plays_on(house, table)


@pytest.mark.not_by_http(
    "the relay reads in place of the bot; test_rest_hostile.py has callers that do not read"
)
@pytest.mark.usefixtures("impatience")
async def test_a_bot_that_never_reads_and_never_hangs_up_is_hung_up_on(house):
    bot = await house.bot()
    deaf = bot.play(reads=False, pongs=False)
    await flood(house, deaf, bot.bot)
    await until(lambda: bot.bot not in house.server.referee.streams)
    ended = await until(lambda: house.logs.named("rpc_ended", method=PLAY, reason="SLOW_READER"))
    assert ended[0]["code"] == "RESOURCE_EXHAUSTED"


@pytest.mark.not_by_http(
    "the relay reads in place of the bot; test_rest_hostile.py has callers that do not read"
)
async def test_a_bot_that_never_reads_and_hangs_up_is_gone_at_once(house):
    bot = await house.bot()
    deaf = bot.play(reads=False, pongs=False)
    flooding = asyncio.create_task(flood(house, deaf, bot.bot))
    ours = await until(lambda: house.server.referee.streams.get_stream(bot.bot))
    await until(lambda: ours.outbox.is_full and ours._write_began)
    await deaf.close()
    await until(lambda: bot.bot not in house.server.referee.streams)
    await asyncio.gather(flooding, return_exceptions=True)


# Who does not play


async def test_a_bot_that_never_sits_forfeits_when_the_set_up_time_is_over(house):
    async with house.table(3, setup_ms=500) as table:
        absent, *others = table.chairs
        began = time.monotonic()
        for chair in others:
            await chair.sit()
        await asyncio.gather(*[chair.play_out() for chair in others])
        assert time.monotonic() - began < 5
        match = await house.admin.over(table.name)
        assert endings(match)[absent.seat] == "NEVER_SAT"
        assert endings(match).count("COMPLETED") == 2
        await house.admin.record(table.name)


async def test_a_bot_that_sits_alone_is_told_that_the_match_is_void(house):
    async with house.table(2, setup_ms=100) as table:
        alone, _ = table.chairs
        await alone.sit()
        assert (await alone.expect("match_ended")).void_reason == "TOO_FEW_SAT"


async def test_a_bot_that_sits_and_says_nothing_costs_the_others_what_the_clocks_say_and_no_more(house):
    limits = {"free_ms": {"card": 100, "arrange": 100}, "bank_ms": 300, "grace_ms": 1, "handover_ms": 20}
    async with house.table(3, **limits, max_strikes=3) as table:
        await table.sit()
        silent, *others = table.chairs
        began = time.monotonic()
        await asyncio.gather(*[chair.play_out() for chair in others])
        waited_s = time.monotonic() - began
        match = await house.admin.over(table.name)
        assert endings(match)[silent.seat] == "TIMED_OUT"
        assert endings(match).count("COMPLETED") == 2
        assert 0.6 < waited_s < 0.6 + 2.0
        await house.admin.record(table.name)


async def test_a_match_that_nobody_plays_is_abandoned(house):
    async with house.table(2, **IMPATIENT, max_strikes=1) as table:
        await table.sit()
        ends = [await chair.expect("match_ended") for chair in table.chairs]
        assert {end.void_reason for end in ends} == {"ABANDONED"}
        assert {end.HasField("result") for end in ends} == {False}


# Lost links


async def come_back(house: House, chair: Chair) -> None:
    """The link is lost without a word; the bot comes back by a new connection and sits down again."""
    token, bot = chair.wire.token, chair.wire.bot
    await chair.wire.drop()
    chair.wire = house.wire(token, bot)
    await chair.sit()


@pytest.mark.parametrize("moment", ["before sitting down", "after sitting down", "while another is asked"])
async def test_a_link_that_is_lost_costs_nothing(house, moment):
    async with house.table(2) as table:
        one, other = table.chairs
        if moment != "before sitting down":
            await one.sit()
            await one.expect("update")
        if moment == "while another is asked":
            await other.sit()
            _, [one] = await table.asked()
        await come_back(house, one)
        if moment != "while another is asked":
            await other.sit()
        await plays_on(house, table)


async def test_a_link_lost_while_asked_is_asked_again(house):
    async with dealt(house) as (table, asked, _):
        before = asked.last
        await come_back(house, asked)
        again = await asked.asked()
        assert (again.prompt, again.ugo) == (before.prompt, before.ugo)
        await plays_on(house, table)


async def test_a_link_lost_after_a_move_and_before_its_answer_plays_it_once(house):
    async with dealt(house) as (table, asked, other):
        prompt, move = asked.last.prompt, legal_move(asked.last, asked.chance)
        request_id = await asked.submit(move, prompt)
        await other.asked()  # it stands
        await come_back(house, asked)
        await asked.submit(move, prompt, request_id)
        assert (await asked.expect("move_accepted")).request_id == request_id
        await plays_on(house, table)


async def test_a_link_lost_at_the_end_is_told_the_end(house):
    async with dealt(house) as (_, asked, other):
        playing = asyncio.create_task(other.play_out())
        while len(asked.last.ugo.hand) > 1:
            await asked.move()
            await asked.asked("card")
        await asked.move()
        await asked.expect("move_accepted")
        await asked.wire.drop()
        end = await playing
        asked.wire = house.wire(asked.wire.token, asked.wire.bot)
        await asked.sit()
        again = await asked.expect("match_ended")
        assert (again.result, again.seed) == (end.result, end.seed)


async def test_a_bot_that_stays_away_after_a_lost_link_times_out_and_may_come_back_to_watch_the_rest(house):
    async with house.table(3, **IMPATIENT, max_strikes=2) as table:
        await table.sit()
        away, *others = table.chairs
        playing = [asyncio.create_task(chair.play_out()) for chair in others]
        await away.asked("card")
        await away.wire.drop()
        await asyncio.gather(*playing)
        match = await house.admin.over(table.name)
        assert endings(match)[away.seat] == "TIMED_OUT"
        assert endings(match).count("COMPLETED") == 2


@pytest.mark.not_by_http("a request over HTTP cannot be hung up on in order")
async def test_a_bot_that_hangs_up_in_order_is_answered_what_it_asked_before(house):
    bot = await house.bot()
    polite = bot.play()
    await polite.send(item("", 0))
    await polite.hang_up()
    how = await polite.end()
    assert how.code == "OK"
    assert [each for each in polite.received if each.HasField("move_rejected")]


# Strange tongues on the port


async def speak(house: House, words: bytes) -> bytes:
    """What the port answers to these bytes before it closes the connection, which it must."""
    host, _, port = house.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(words)
    try:
        async with asyncio.timeout(SOON_S):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /seatwise.v1.PlayService/Play HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
        bytes(range(256)) * 4096,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1000,
        b"*1\r\n$4\r\nPING\r\n",
    ],
    ids=["http1", "http1 post", "tls", "noise", "half http2", "redis"],
)
async def test_a_connection_that_speaks_another_protocol_is_hung_up_on(house, words):
    async with bystanders(house):
        await speak(house, words)


async def test_a_method_that_does_not_exist_is_unimplemented(house):
    bot: Wire = await house.bot()
    call = bot.channel.unary_unary("/seatwise.v1.PlayService/Win", None, None)
    code = await call(b"", metadata=bot.metadata).code()
    assert code.name == "UNIMPLEMENTED"
