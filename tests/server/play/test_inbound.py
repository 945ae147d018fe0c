"""Whatever a bot sends is answered with the right reason, and harms nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from doubles.room import JOURNAL_S, Room
from doubles.virtual import in_virtual_time, settle
from matches.one_match import nonce

from seatwise.codec.wire_format import encode_field, encode_varint
from seatwise.games.ugo.v1 import ugo_pb2
from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.mixed_move import MOST_MIXED_CHOICES, MixedMove
from seatwise_server.play.inbound import (
    LONGEST_REQUEST_ID,
    LOOKUPS_AT_ONCE,
    LOOKUPS_PER_SECOND,
    MOST_LOOKUPS,
)
from seatwise_server.store.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from doubles.room import Link

Item = pb.PlayRequestItem


def reasons(link: Link) -> list[str]:
    told = link.new("move_rejected")
    return [pb.MoveRejected.Reason.Name(each.reason).removeprefix("REASON_") for each in told]


BAD: dict[str, tuple[str, Callable[[Room], Item]]] = {
    "no action": ("MALFORMED", lambda room: Item(match=room.table.name)),
    "nothing at all": ("MALFORMED", lambda _: Item()),
    "no request id": ("MALFORMED", lambda room: room.submission(room.asked, room.legal_move(), 1, "")),
    "an endless request id": (
        "MALFORMED",
        lambda room: room.submission(room.asked, room.legal_move(), 1, "x" * (LONGEST_REQUEST_ID + 1)),
    ),
    "no move": (
        "MALFORMED",
        lambda room: Item(
            match=room.table.name, seat=room.asked, submit_move=pb.SubmitMove(request_id="r", prompt=1)
        ),
    ),
    "an empty move": ("MALFORMED", lambda room: of_ugo(room, ugo_pb2.Move())),
    "a card that is none": ("MALFORMED", lambda room: of_ugo(room, ugo_pb2.Move(play=200))),  # type: ignore[arg-type]
    "cards without number": (
        "MALFORMED",
        lambda room: of_ugo(room, ugo_pb2.Move(arrange=ugo_pb2.Arrange(cards=[1] * 1000))),  # type: ignore[list-item]
    ),
    "a move of a later game": ("WRONG_GAME", lambda room: of_another_game(room)),
    "a nonce that is too short": (
        "MALFORMED",
        lambda room: Item(match=room.table.name, seat=room.asked, sit=pb.Sit(nonce=bytes(31))),
    ),
    "another bot's seat": (
        "NOT_YOUR_SEAT",
        lambda room: room.submission(room.other, room.legal_move(), 1, "r"),
    ),
    "a seat that is none": ("NOT_YOUR_SEAT", lambda room: Item(match=room.table.name, seat=-1, sit=pb.Sit())),
    "a match that is none": ("NOT_YOUR_SEAT", lambda _: Item(match="matches/none", sit=pb.Sit())),
    "a stale prompt": ("STALE", lambda room: room.submission(room.asked, room.legal_move(), 99, "r")),
    "a move and choices": ("MALFORMED", lambda room: of_choices(room, [(0, 1)], has_move=True)),
    "a choice without a weight": ("MALFORMED", lambda room: of_choices(room, [(0, 1), (1, 0)])),
    "a negative weight": ("MALFORMED", lambda room: of_choices(room, [(0, -1)])),
    "a choice without a move": ("MALFORMED", lambda room: of_choices(room, [(0, 1), (None, 1)])),
    "too many choices": ("MALFORMED", lambda room: of_choices(room, [(0, 1)] * (MOST_MIXED_CHOICES + 1))),
    "a choice of another game": ("WRONG_GAME", lambda room: of_choices(room, [(0, 1)], is_other_game=True)),
    "the same choice twice": ("ILLEGAL", lambda room: of_choices(room, [(0, 1), (0, 1)])),
    "an illegal choice": (
        "ILLEGAL",
        lambda room: room.submission(
            room.asked, MixedMove([(room.legal_move(), 9), (room.illegal_move(), 1)]), 1, "r"
        ),
    ),
    "an illegal move": ("ILLEGAL", lambda room: room.submission(room.asked, room.illegal_move(), 1, "r")),
}


def of_ugo(room: Room, move: ugo_pb2.Move) -> Item:
    submit = pb.SubmitMove(request_id="r", prompt=room.prompt, ugo=move)
    return Item(match=room.table.name, seat=room.asked, submit_move=submit)


def of_choices(
    room: Room,
    choices: list[tuple[int | None, int]],
    *,
    has_move: bool = False,
    is_other_game: bool = False,
) -> Item:
    """Choices by the place of a legal card in the hand (None for no move), with their weights."""
    cards = [int(card) + 1 for card in room.match.view_for(room.asked).legal_cards]
    submit = pb.SubmitMove(request_id="r", prompt=room.prompt)
    for place, weight in choices:
        choice = submit.choices.add(weight=weight)
        if is_other_game:
            choice.ubongo.call.SetInParent()
        elif place is not None:
            choice.ugo.play = cards[place]  # type: ignore[assignment]
    if has_move:
        submit.ugo.play = cards[0]  # type: ignore[assignment]
    return Item(match=room.table.name, seat=room.asked, submit_move=submit)


def of_another_game(room: Room) -> Item:
    raw = pb.SubmitMove(request_id="r", prompt=room.prompt).SerializeToString() + encode_field(
        99, b"\x08\x01"
    )
    return Item(match=room.table.name, seat=room.asked, submit_move=pb.SubmitMove.FromString(raw))


@pytest.mark.parametrize("what", BAD)
@in_virtual_time
async def test_each_bad_item_has_its_reason_and_the_match_goes_on(what: str) -> None:
    room = Room()
    links = await room.seat_all()
    reason, make = BAD[what]
    item, sender, other = make(room), links[room.asked], links[room.other]
    sender.send(item)
    await room.pass_ms(10)
    told = sender.new()
    assert [each.WhichOneof("event") for each in told] == ["move_rejected"]
    (rejected,) = [each.move_rejected for each in told]
    assert pb.MoveRejected.Reason.Name(rejected.reason) == f"REASON_{reason}"
    assert rejected.message
    assert rejected.request_id == item.submit_move.request_id[:LONGEST_REQUEST_ID]
    assert (told[0].match, told[0].seat) == (item.match, item.seat)
    assert other.new() == []
    await room.move(links)
    assert room.prompt == 2


@in_virtual_time
async def test_an_illegal_move_is_remembered_by_its_request_id_and_a_stale_one_is_not() -> None:
    room = Room()
    links = await room.seat_all()
    link, seat = links[room.asked], room.asked
    for prompt, move in [(1, room.illegal_move()), (1, room.legal_move())]:
        link.submit(seat, move, prompt, "illegal")
        await room.pass_ms(10)
    assert reasons(link) == ["ILLEGAL", "ILLEGAL"]
    link.submit(seat, room.legal_move(), 99, "stale")
    await room.pass_ms(10)
    assert reasons(link) == ["STALE"]
    link.submit(seat, room.legal_move(), 1, "stale")
    await room.pass_ms(200)
    assert len(link.new("move_accepted")) == 1


@in_virtual_time
async def test_of_a_mixed_move_one_choice_is_played_and_a_repeat_plays_nothing() -> None:
    room = Room()
    links = await room.seat_all()
    seat, prompt = room.asked, room.prompt
    moves = list(room.match.game.legal_moves(room.state, seat))  # type: ignore[union-attr]
    mixed = MixedMove([(move, 1 + place) for place, move in enumerate(moves)])
    for _ in range(3):
        links[seat].submit(seat, mixed, prompt, "mixed")
        await room.pass_ms(200)
    assert len(links[seat].new("move_accepted")) == 3
    (entry,) = room.entries("move")
    assert [choice.weight for choice in entry.choices] == list(range(1, 1 + len(moves)))
    assert room.prompt == prompt + 1


@in_virtual_time
async def test_a_seat_that_is_not_asked_is_told_so() -> None:
    room = Room()
    links = await room.seat_all()
    links[room.other].submit(room.other, room.legal_move(), room.prompt, "r")
    await settle()
    assert reasons(links[room.other]) == ["NOT_ASKED"]


@in_virtual_time
async def test_a_seat_that_has_not_sat_on_this_stream_is_told_so() -> None:
    room = Room()
    await room.seat_all()
    link = room.link(room.asked)
    link.submit(room.asked, room.legal_move(), room.prompt, "r")
    link.resign(room.asked)
    await settle()
    assert reasons(link) == ["NOT_SEATED", "NOT_SEATED"]


@in_virtual_time
async def test_before_the_deal_nobody_is_asked() -> None:
    room = Room()
    room.table.start_clocks()
    link = room.link(0)
    link.sit(0)
    move = room.match.game.move_from_json({"play": "R3"})
    for prompt in (0, 1):
        link.submit(0, move, prompt, f"r{prompt}")
    await room.pass_ms(5)
    assert reasons(link) == ["NOT_ASKED", "NOT_ASKED"]


@in_virtual_time
async def test_items_are_read_in_their_order_and_a_bad_one_harms_no_other() -> None:
    room = Room()
    links = await room.seat_all()
    mover = room.asked
    good = room.submission(mover, room.legal_move(), room.prompt, "good").SerializeToString()
    links[mover].send_raw(
        b"".join([encode_field(1, b"\xff\xff"), encode_field(1, good), encode_field(1, b"\x0b")])
    )
    await room.pass_ms(200)
    assert sorted(item.WhichOneof("event") or "" for item in links[mover].new()) == [
        "move_accepted", "move_rejected", "move_rejected",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [b"\x00", b"\xff" * 30, b"\x0a\x7f", encode_field(2, b"unknown"), encode_varint(9), bytes(range(256))],
)
@in_virtual_time
async def test_bytes_that_are_nothing_are_answered_at_most_once_each(raw: bytes) -> None:
    room = Room()
    links = await room.seat_all()
    links[0].send_raw(raw)
    await settle()
    assert set(reasons(links[0])) <= {"MALFORMED"}
    await room.move(links)
    assert room.prompt == 2


# --- Matches that are not here --------------------------------------------------------------------------


@in_virtual_time
async def test_a_match_that_is_elsewhere_is_not_here() -> None:
    room = Room()
    room.others["matches/elsewhere"] = None
    link = room.link(0)
    link.send(Item(match="matches/elsewhere", sit=pb.Sit(nonce=nonce(0))))
    await room.pass_ms(5)
    assert reasons(link) == ["NOT_HERE"]


@in_virtual_time
async def test_a_seat_that_sits_down_at_a_match_that_is_over_is_told_its_end() -> None:
    room = Room()
    room.others["matches/over"] = pb.MatchEnded(void_reason="ABORTED")
    link = room.link(0)
    link.send(Item(match="matches/over", sit=pb.Sit()), Item(match="matches/over", resign=pb.Resign()))
    await room.pass_ms(5)
    ended, rejected = link.new()
    assert ended.match_ended.void_reason == "ABORTED"
    assert pb.MoveRejected.Reason.Name(rejected.move_rejected.reason) == "REASON_MATCH_OVER"


@in_virtual_time
async def test_no_bot_learns_of_a_match_of_others() -> None:
    """A match of others and a match that is none are answered alike."""
    room = Room(3)
    room.others["matches/theirs"] = pb.MatchEnded()
    link = room.link(0)
    for match in ("matches/theirs", "matches/none"):
        link.send(Item(match=match, seat=1, sit=pb.Sit()))
    await room.pass_ms(5)
    one, other = link.new()
    one.ClearField("match"), other.ClearField("match")
    assert one == other
    assert one.move_rejected.reason == pb.MoveRejected.REASON_NOT_YOUR_SEAT


@in_virtual_time
async def test_the_questions_that_a_bot_may_ask_of_the_store_at_once_are_bounded() -> None:
    room = Room()
    link = room.link(0)
    for number in range(MOST_LOOKUPS + 50):
        link.send(Item(match=f"matches/{number}", sit=pb.Sit()))
    assert link.stream.lookups == MOST_LOOKUPS
    await room.pass_ms(JOURNAL_S * 1000 * 2)
    told = reasons(link)
    assert (told.count("TOO_MANY"), told.count("NOT_YOUR_SEAT")) == (50, MOST_LOOKUPS)
    link.send(Item(match="matches/x", sit=pb.Sit()))
    await room.pass_ms(JOURNAL_S * 1000 * 2)
    assert reasons(link) == ["NOT_YOUR_SEAT"]


@in_virtual_time
async def test_the_questions_that_a_bot_may_ask_of_the_store_in_a_second_are_bounded() -> None:
    """Also over a newer stream. Other bots are not affected."""
    room = Room(3)
    link, other = room.link(0), room.link(1)
    asked, told, seconds = 0, list[str](), 3
    for turn in range(100 * seconds):
        link = room.link(0) if turn == 50 else link
        for _ in range(MOST_LOOKUPS // 2):
            link.send(Item(match=f"matches/{asked}", sit=pb.Sit()))
            asked += 1
        await room.pass_ms(10)
        told += reasons(link)
    other.send(Item(match="matches/x", sit=pb.Sit()))
    await room.pass_ms(JOURNAL_S * 1000 * 2)
    assert reasons(other) == ["NOT_YOUR_SEAT"]
    answered = told.count("NOT_YOUR_SEAT")
    assert LOOKUPS_AT_ONCE <= answered <= LOOKUPS_AT_ONCE + LOOKUPS_PER_SECOND * (seconds + 1)
    assert set(told) == {"NOT_YOUR_SEAT", "TOO_MANY"}
    await room.pass_ms(1000)
    reasons(link)
    link.send(Item(match="matches/y", sit=pb.Sit()))
    await room.pass_ms(JOURNAL_S * 1000 * 2)
    assert reasons(link) == ["NOT_YOUR_SEAT"]


@in_virtual_time
async def test_a_question_to_a_store_that_is_away_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unavailable(*_: Any) -> None:
        raise StoreUnavailable("gone")

    room = Room()
    monkeypatch.setattr(room.intake, "_ended", unavailable)
    link = room.link(0)
    link.send(Item(match="matches/x", sit=pb.Sit()))
    await settle()
    assert reasons(link) == ["NOT_HERE"]
    assert link.stream.lookups == 0
