"""Certificates: a server examines a bot over its own streams, signs the result, and a ladder can require it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from harness import SOON_S, House
from harness.wire import StreamEnded

from seatwise.async_client import AsyncClient
from seatwise.cli import main
from seatwise.doctor import checks
from seatwise.doctor.certified_checks import CERTIFIED
from seatwise.errors import BadRequestError, ExaminedError, WrongStateError
from seatwise.remote import run_async
from seatwise.samples.greedy import Greedy
from seatwise.v1 import ladder_pb2
from seatwise_server.examination.examined_streams import ExaminedStreams
from seatwise_server.examination.examiner import EXAMINATIONS_AT_ONCE, Examiner
from seatwise_server.lobby.attendance import AttendanceStream

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(autouse=True)
def quick(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer questions, and no long waits for what must not come."""
    monkeypatch.setattr(checks, "GRACE_S", 0.02)
    monkeypatch.setattr(examiner_of(house), "_positions", 10)


def examiner_of(house: House) -> Examiner:
    assert house.server
    lobby = house.server.lobby
    assert lobby is not None
    assert lobby._examiner is not None
    return lobby._examiner


async def attend(house: House, token: str, queue: str, address: str = "", **options: int) -> None:
    """The sample bot attends with this queue, until the server ends it."""
    async with asyncio.timeout(SOON_S * 3):
        await run_async(
            Greedy, address=address or house.address, token=token, queues=[queue], max_matches=3, **options
        )


async def test_a_good_bot_gets_a_signed_certificate_that_opens_its_ladder(
    house: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert house.server
    bot, ladder = await house.bot(), ladder_pb2.Ladder(name="ladders/certified", game="games/ugo", seats=2)
    ladder.certificate_required = True
    async with AsyncClient(house.address, house.admin.token) as admin:
        assert (await admin.create_ladder(ladder)).certificate_required
    with pytest.raises(WrongStateError, match=r"this version has none.*CERTIFICATE_MISSING"):
        await attend(house, bot.token, ladder.name)
    with pytest.raises(ExaminedError, match="all 15 checks are passed") as end:
        await attend(house, bot.token, "certificate")
    assert end.value.passed
    async with AsyncClient(house.address) as client:
        shown = (await client.get_bot(bot.bot)).certificate
    (tmp_path / "bot.json").write_text(
        json.dumps({
            "statement": shown.statement,
            "signature": _base64(shown.signature),
            "public_key": _base64(shown.public_key),
        })
    )  # fmt: skip
    asked = ["verify", str(tmp_path / "bot.json"), "--server", house.address]
    assert await asyncio.to_thread(main, asked) == 0
    assert f"{bot.bot}: all 15 checks passed" in capsys.readouterr().out
    shown_to_people = ["bots", "show", bot.bot, "--address", house.address]
    assert await asyncio.to_thread(main, shown_to_people) == 0
    assert "15 of 15 checks passed, 20" in capsys.readouterr().out
    attending = await bot.attend([ladder.name])
    await attending.welcome()
    assert not examiner_of(house)._examined


def _base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode()


async def test_a_bot_that_does_not_sit_down_gets_a_certificate_that_opens_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert house.server
    monkeypatch.setattr(examiner_of(house), "_patience_s", 0.05)
    bot = await house.bot()
    attending = await bot.attend(["certificate"])
    end = await attending.end()
    assert (end.reason, end.code) == ("EXAMINED", "FAILED_PRECONDITION")
    assert "sits_down: no Play stream was opened" in end.message
    held = await house.server.store.certificates.read_certificate(bot.bot)
    assert held is not None
    assert not held.passes
    results = json.loads(held.statement)["results"]
    assert results.pop("sits_down") == "failed"
    assert set(results) == set(CERTIFIED) - {"sits_down"}
    assert set(results.values()) == {"skipped"}
    async with AsyncClient(house.address, house.admin.token) as admin:
        await admin.delete_bot(bot.bot)
    assert await house.server.store.certificates.read_certificate(bot.bot) is None


async def test_a_bot_that_is_examined_is_seated_in_no_match_and_may_leave(house: House) -> None:
    assert house.server
    bot = await house.bot()
    attending = await bot.attend(["certificate"])
    await attending.welcome()
    assert await house.server.store.seats.free_places([bot.bot]) == [0]
    await attending.say(0)
    assert "you have ended the examination" in (await attending.end()).message
    assert await house.server.store.certificates.read_certificate(bot.bot) is None


async def test_a_bot_that_comes_again_is_examined_once_whenever_its_older_stream_ends(house: House) -> None:
    examiner = examiner_of(house)
    bot = (await house.bot()).bot
    older, newer = (AttendanceStream(bot, (), 3) for _ in range(2))
    with examiner.examining(newer):  # the task of the older one is still there
        streams = ExaminedStreams(newer, "matches/examination-", TimeoutError)
        examiner._examined.begin_check(bot, streams)
        examiner._examined.end_examination(older)
        assert examiner._examined._streams == {bot: streams}
        task = examiner._tasks[bot]
        with examiner.examining(older):
            await asyncio.wait([task])
            assert task.cancelled()
    assert examiner._tasks == {}


async def test_an_examination_is_asked_for_alone_with_places_and_not_all_the_time(house: House) -> None:
    bot = await house.bot()
    with pytest.raises(StreamEnded, match="max_matches is 2; an examination needs 3"):
        await bot.attend(["certificate"], max_matches=2)
    with pytest.raises(StreamEnded, match="INVALID_ARGUMENT name the queue certificate alone"):
        await bot.attend(["certificate", "casual"])
    examiner_of(house)._rates.take_units(bot.bot, EXAMINATIONS_AT_ONCE)
    with pytest.raises(StreamEnded, match="RATE_EXCEEDED"):
        await bot.attend(["certificate"])


async def test_a_ladder_of_another_game_cannot_require_what_no_bot_can_get(house: House) -> None:
    ladder = ladder_pb2.Ladder(name="ladders/u", game="games/ubongo", seats=2, certificate_required=True)
    async with AsyncClient(house.address, house.admin.token) as admin:
        with pytest.raises(
            BadRequestError, match="bots are examined only in ugo, and this ladder plays ubongo"
        ):
            await admin.create_ladder(ladder)


@pytest.mark.slow
@pytest.mark.parametrize("door", ["websocket", "http"])
async def test_a_good_bot_passes_through_every_door(
    house: House, http_house: House, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    one = house if door == "websocket" else http_house
    monkeypatch.setattr(examiner_of(one), "_positions", 10)
    assert one.server
    address = one.ws_address if door == "websocket" else f"rest+{one.server.http_address}"
    with pytest.raises(ExaminedError, match="all 15 checks are passed"):
        await attend(one, (await one.bot()).token, "certificate", address)
