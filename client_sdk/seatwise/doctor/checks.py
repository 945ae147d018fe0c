"""The checks of the doctor. Each is a function that directs the server, and raises `CheckFailed` or `NothingCame`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from seatwise.doctor.examination import MOST_REJECTIONS, CheckFailed, Examination, ScriptedMatch, game_part
from seatwise.doctor.examined_bot import TOKEN
from seatwise.doctor.scripted_server import ScriptedServer
from seatwise.doctor.stream_link import NothingCame
from seatwise.v1 import lobby_service_pb2, play_service_pb2
from seatwise_referee.shuffle import NONCE_BYTES

GRACE_S: Final = 0.4
"""How long to listen for something that must not come, in seconds."""

REFUSED_S: Final = 3.0
"""How long the lobby is away in the check of the waits between attempts, in seconds."""

MOST_RETURNS: Final = 15
"""More attempts than this within `REFUSED_S` are no back-off. The waits of the protocol give about six, and full jitter gives more than
15 less than once in 500 million times. On a busy machine a bot that does not wait at all may need 0.1 s for an attempt."""

ASKED_WAIT_S: Final = 2
LARGE_TEXT: Final = "x" * 200_000
"""Makes a message nearly as large as the largest that a server sends."""

PING_ROUNDS: Final = 5
LATE_PONG_S: Final = 0.5
"""A bot whose pongs waited for its move so long, in seconds and in each round, does not answer pings while it thinks."""

MOST_PONG_S: Final = 5.0
"""How long a check waits for a pong that only shows that the bot has had time, in seconds."""

NEW_REASON: Final = 99
"""A reason that no version of the protocol has yet."""

UNKNOWN_FIELD: Final = b"\xc2\x3e\x05hello"
"""Field 1000 with the text "hello"."""

MOST_GROWTH: Final = 50_000
"""Bytes a match. A bot whose memory grows more than this is worth a note."""

CheckFunction = Callable[[Examination], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check."""

    name: str
    what: str
    """The duty of the bot, in a sentence."""

    section: str
    """The section of docs/protocol.md."""

    line: str
    """The line of that section which the check holds the bot to. It is quoted to the letter."""

    mend: str
    """The way to mend the bot if it fails."""

    run: CheckFunction
    needs: tuple[str, ...] = ()
    """Checks without which this one makes no sense."""

    is_note: bool = False
    """Whether a failure is only worth a note."""

    is_long: bool = False
    is_slow_link: bool = False
    """Whether the bot is connected over a slow link."""


CHECKS: Final[list[DoctorCheck]] = []
"""All checks, in the order of the report."""


def _check(
    what: str, section: str, line: str, mend: str, *needs: str, is_note: bool = False, is_long: bool = False,
    is_slow_link: bool = False,
) -> Callable[[CheckFunction], CheckFunction]:  # fmt: skip
    """Add the function to the checks. It is called when the bot attends the lobby."""

    def add(function: CheckFunction) -> CheckFunction:
        name = getattr(function, "__name__", "").removeprefix("check_")

        async def run(exam: Examination) -> None:
            await exam.wait_for_attendance()
            await function(exam)

        CHECKS.append(
            DoctorCheck(name, what, section, line, mend, run, needs, is_note, is_long, is_slow_link)
        )
        return function

    return add


# Basics


@_check(
    "attends with its token and a limit", "wait-for-matches-lobbyserviceattend",
    "It never gives you more than `max_matches` seats at once.",
    "Open LobbyService.Attend with the metadata `authorization: Bearer <token>`, and send an AttendRequest with max_matches of "
    "1 or more. The token is in the environment variable SEATWISE_TOKEN, and replaces {token} in the command.",
)  # fmt: skip
async def check_attends(exam: Examination) -> None:
    if exam.lobby.metadata.get("authorization") != f"Bearer {TOKEN}":
        raise CheckFailed("the stream has no metadata `authorization` with the token of SEATWISE_TOKEN")
    if exam.request.max_matches < 1:
        raise CheckFailed("max_matches is 0, so it gets no seats")


@_check(
    "sits down in each match with a fresh nonce", "sit-down", "The nonce is 32 random bytes of your own.",
    "Draw 32 new random bytes for each match, and send them with the first `sit` there.",
)  # fmt: skip
async def check_sits_down(exam: Examination) -> None:
    nonces = []
    for seat in (0, 1, 0):
        match = exam.new_match(seat)
        await exam.offer_seat(match)
        item = await exam.wait_for_sit(match)
        nonces.append(item.sit.nonce)
        await exam.finish(match)
    if any(len(nonce) != NONCE_BYTES for nonce in nonces):
        raise CheckFailed(f"a nonce has {min(map(len, nonces))} bytes, and must have {NONCE_BYTES}")
    if len(set(nonces)) < len(nonces):
        raise CheckFailed("it sent the same nonce in two matches, so others can foresee its part of the deal")


@_check(
    "plays legal moves, and answers the open prompt", "send-moves", "Choose a new `request_id` for each move.",
    "Read `pace` and `legal_cards` of the newest update. The message says which rule the move broke.", "sits_down",
)  # fmt: skip
async def check_plays_legal_moves(exam: Examination) -> None:
    seen: set[str] = set()
    match = await exam.seat_bot()
    for _ in range(exam.positions):
        if not match.play_to_question():
            await exam.finish(match)
            match = await exam.seat_bot()
        await _play_one_question(exam, match, seen)
    await exam.finish(match)


async def _play_one_question(exam: Examination, match: ScriptedMatch, seen: set[str]) -> None:
    await exam.ask(match)
    asked_s = monotonic()
    item = await exam.read_move(match)
    exam.measured.answer_ms.append(1000 * (monotonic() - asked_s))
    request_id = item.submit_move.request_id
    if not 1 <= len(request_id) <= 64 or request_id in seen:
        raise CheckFailed(f"the request_id {request_id!r} is empty, longer than 64, or was used before")
    seen.add(request_id)
    if fault := match.play_answer(item.submit_move):
        raise CheckFailed(f"its move is illegal: {fault}")
    accepted = play_service_pb2.MoveAccepted(request_id=request_id, receipt=b"accepted %d" % match.prompt)
    await exam.say(match, move_accepted=accepted)


@_check(
    "answers pings, also while it thinks", "answer-pings",
    "Answer each `ping` at once with a `pong` of the same number, also while you think.",
    "Answer pings where you read the stream, and think in another thread or task.", "sits_down",
)  # fmt: skip
async def check_answers_pings(exam: Examination) -> None:
    match = await exam.seat_bot()
    thought_s = [await _ask_with_pings(exam, match, first) for first in range(1, 3 * PING_ROUNDS, 3)]
    # A busy machine may hold a pong back once, but a bot that thinks where it reads does so each time.
    if min(thought_s) > LATE_PONG_S:
        raise CheckFailed(
            f"it thought for {min(thought_s):.1f} s and more, and answered pings only after that"
        )
    await exam.finish(match)


async def _ask_with_pings(exam: Examination, match: ScriptedMatch, first: int) -> float:
    """Ask a question with three pings behind it. Return how long the pongs waited for the move, in seconds; 0 if they did not."""
    numbers, pongs, move_s = [first + 1, first, first + 2], list[int](), 0.0
    pings = [
        play_service_pb2.PlayResponseItem(ping=play_service_pb2.Ping(number=number)) for number in numbers
    ]
    update = exam.next_question(match)
    await exam.send_items(exam.item(match, update=update), *pings)
    asked_s, until_s = monotonic(), exam.patience_end_s
    answer: play_service_pb2.PlayRequestItem | None = None
    while answer is None or len(pongs) < len(numbers):
        item = await exam.read_item("submit_move" if answer is None else "pong", until_s)
        if item.HasField("pong"):
            pongs.append(item.pong.number)
            if pongs != numbers[: len(pongs)]:
                raise CheckFailed(f"it was sent the pings {numbers}, and answered {pongs}")
        elif item.HasField("submit_move") and answer is None:
            answer, move_s = item, monotonic() - asked_s if not pongs else 0.0
    await exam.accept_move(match, answer)
    return move_s


@_check(
    "plays many matches whose items come in one message", "play-playserviceplay",
    "One message may hold any number of items",
    "Go through all items of a message, and keep what you know by match and seat.", "sits_down",
)  # fmt: skip
async def check_plays_many_matches(exam: Examination) -> None:
    matches = [await exam.seat_bot(seat) for seat in (0, 1, 0)]
    updates = [exam.item(match, update=exam.next_question(match)) for match in matches]
    await exam.send_items(*updates)
    due, until_s = {(match.name, int(match.seat)): match for match in matches}, exam.patience_end_s
    while due:
        item = await exam.wait_for_item("submit_move", until_s=until_s)
        match = due.pop((item.match, int(item.seat)), None)
        if match is None:
            raise CheckFailed(
                f"it moved in {item.match} seat {item.seat}, which was not asked, or answered before"
            )
        if item.submit_move.prompt != match.prompt:
            raise CheckFailed(f"it answered prompt {item.submit_move.prompt} in {item.match}")
    for match in matches:
        await exam.finish(match)


@_check(
    "answers a question that it is shown twice only once", "send-moves",
    "If you are not sure that a move arrived, send it again with the same `request_id`.",
    "Remember which prompt you have answered. If you answer it again, send the same bytes with the same request_id.",
    "sits_down",
)  # fmt: skip
async def check_answers_once(exam: Examination) -> None:
    match = await exam.seat_bot()
    update = await exam.ask(match)
    await exam.say(match, update=update)
    first = await exam.read_move(match)
    await _refuse_other_answers(exam, first)
    await exam.accept_move(match, first)
    await _refuse_other_answers(exam, first)
    await exam.ask_and_accept(match)
    await exam.finish(match)


async def _refuse_other_answers(exam: Examination, first: play_service_pb2.PlayRequestItem) -> None:
    try:
        again = await exam.wait_for_item("submit_move", until_s=monotonic() + GRACE_S)
    except NothingCame:
        return
    if again != first:
        raise CheckFailed("it answered one question with two moves that have different request_ids")


# Lost links


@_check(
    "comes back to a referee whose link is lost", "sit-down",
    "After a lost connection, open a new stream and send `sit` again, without a nonce.",
    "When a Play stream breaks while you have seats there, open it again and sit down at each of them.", "sits_down",
)  # fmt: skip
async def check_comes_back(exam: Examination) -> None:
    match = await exam.seat_bot()
    await exam.ask_and_accept(match)
    await _lose_link(exam)
    await exam.wait_for_sit(match)
    await exam.ask_and_accept(match)
    await exam.finish(match)


@_check(
    "shows its last receipt when it sits down again", "keep-receipts",
    "Send the last one that you have with `sit`.",
    "Keep the receipt of the last `update` or `move_accepted` of each seat, and send it with `sit`.", "comes_back",
)  # fmt: skip
async def check_shows_receipt(exam: Examination) -> None:
    match = await exam.seat_bot()
    await exam.ask_and_accept(match)
    # The acceptance need not have arrived when the link breaks, but the next question must have.
    await exam.ask(match)
    await exam.read_move(match)
    await _lose_link(exam)
    receipt = (await exam.wait_for_sit(match)).sit.receipt
    if receipt != b"receipt %d" % match.prompt:
        raise CheckFailed(
            f"it sat down with the receipt {receipt!r}, and the last one was 'receipt {match.prompt}'"
        )


@_check(
    "repeats a move that nobody has answered, with its request_id", "send-moves",
    "The server gives the first answer",
    "Keep the bytes of the last move until it is answered, and send them again after you have sat down.", "comes_back",
)  # fmt: skip
async def check_repeats_move(exam: Examination) -> None:
    match = await exam.seat_bot()
    update = await exam.ask(match)
    first = await exam.read_move(match)
    await _lose_link(exam)
    await exam.wait_for_sit(match)
    await exam.say(match, update=update)
    again = await exam.read_move(match)
    if again.submit_move.request_id != first.submit_move.request_id:
        raise CheckFailed("it sent its unanswered move with a new request_id, so it would have moved twice")
    if again.submit_move != first.submit_move:
        raise CheckFailed("it sent another move under the request_id of its unanswered one")
    await exam.accept_move(match, again)
    await exam.finish(match)


async def _lose_link(exam: Examination) -> None:
    referee = await exam.referee()
    referee.end("UNAVAILABLE", "SERVER_STOPPING")
    await referee.is_gone.wait()


@_check(
    "goes to another referee when an offer has a higher epoch", "wait-for-matches-lobbyserviceattend",
    "an offer for the same seat with a higher epoch means that another referee has the match: go there",
    "When an offer for a seat that you have names a higher epoch, open a stream to its address and sit down there.",
    "sits_down",
)  # fmt: skip
async def check_follows_epoch(exam: Examination) -> None:
    match = await exam.seat_bot()
    async with exam.open_other_server() as other:
        await exam.offer_seat(match, epoch=2, address=other.address)
        await _sit_at(exam, other, match)


async def _sit_at(exam: Examination, other: ScriptedServer, match: ScriptedMatch) -> None:
    """Move the examination to the other server, and wait until the bot sits down there."""
    exam.direct_referee_of(other)
    await exam.wait_for_sit(match)


@_check(
    "ignores the referee that has lost the match", "wait-for-matches-lobbyserviceattend",
    "an offer for the same seat with a higher epoch means that another referee has the match: go there",
    "Drop items whose epoch is lower than the highest that you have seen of the match. Epoch 0 counts always.",
    "follows_epoch",
)  # fmt: skip
async def check_ignores_old_referee(exam: Examination) -> None:
    match = await exam.seat_bot()
    old = await exam.referee()
    async with exam.open_other_server() as other:
        await exam.offer_seat(match, epoch=2, address=other.address)
        await _sit_at(exam, other, match)
        update = exam.next_question(match)
        stale = play_service_pb2.Update()
        stale.CopyFrom(update)
        stale.prompt = 99
        await old.send(play_service_pb2.PlayResponse(items=[exam.item(match, 1, update=stale)]))
        # Over the new stream too: an item may have been under way.
        await exam.say(match, 1, update=stale)
        await asyncio.sleep(GRACE_S)
        await exam.say(match, 2, update=update)
        await exam.accept_move(match, await exam.read_move(match), epoch=2)
        if any(item.WhichOneof("action") == "submit_move" for item in _drain(old.inbox)):
            raise CheckFailed("it moved at the referee that had lost the match")


def _drain(inbox: asyncio.Queue[play_service_pb2.PlayRequestItem]) -> list[play_service_pb2.PlayRequestItem]:
    found = []
    while not inbox.empty():
        found.append(inbox.get_nowait())
    return found


@_check(
    "ignores an offer with a lower epoch", "wait-for-matches-lobbyserviceattend",
    "an offer for the same seat with a higher epoch means that another referee has the match: go there",
    "Compare the epoch of an offer with that of the seat, and drop lower ones.", "follows_epoch",
)  # fmt: skip
async def check_ignores_stale_offer(exam: Examination) -> None:
    match = exam.new_match()
    await exam.offer_seat(match, epoch=5)
    await exam.wait_for_sit(match)
    async with exam.open_other_server() as stale:
        await exam.offer_seat(match, epoch=4, address=stale.address)
        try:
            await exam.ask(match, 5)
            await exam.accept_move(match, await exam.read_move(match), 5)
            await asyncio.sleep(GRACE_S)
        except NothingCame:  # a bot that goes there may leave the right one
            if stale.referees.empty():
                raise
        if not stale.referees.empty():
            raise CheckFailed("it went to the referee of an offer with a lower epoch")


# Rejections and ends


@_check(
    "stops before illegal moves forfeit its seat", "handle-rejections",
    "send another move; `max_rejections` of them forfeit the seat",
    "After ILLEGAL choose another move with a new request_id. Count the rejections of a match, and leave the last try unused.",
    "sits_down",
)  # fmt: skip
async def check_survives_illegal(exam: Examination) -> None:
    match = await exam.seat_bot()
    await exam.ask(match)
    count, item = 1, await exam.wait_for_item("submit_move")
    illegal = play_service_pb2.MoveRejected.REASON_ILLEGAL
    while count < MOST_REJECTIONS:
        await _reject(exam, match, item.submit_move.request_id, illegal)
        another = await _wait_for_another_try(exam)
        if another is None:
            return
        count, item = count + 1, another
    raise CheckFailed(f"it made {count} illegal moves, and {MOST_REJECTIONS} forfeit the seat")


async def _wait_for_another_try(exam: Examination) -> play_service_pb2.PlayRequestItem | None:
    """Return the next move; `None` if the bot sends none, although it has had the time to: it answers a ping in between."""
    for waits_for_pong in (True, False):
        try:
            return await exam.wait_for_item("submit_move", until_s=monotonic() + 4 * GRACE_S)
        except NothingCame:
            if waits_for_pong and (found := await _read_until_pong(exam)):
                return found
    return None


async def _read_until_pong(exam: Examination) -> play_service_pb2.PlayRequestItem | None:
    """Return the move that comes before the answer to a ping; `None` if none does, or the bot answers no pings."""
    ping = play_service_pb2.PlayResponseItem(ping=play_service_pb2.Ping(number=1))
    referee, until_s = await exam.referee(), monotonic() + min(exam.patience_s, MOST_PONG_S)
    await referee.send(play_service_pb2.PlayResponse(items=[ping]))
    try:
        while not (item := await referee.read(until_s - monotonic())).HasField("pong"):
            if item.HasField("submit_move"):
                found: play_service_pb2.PlayRequestItem = item
                return found
    except NothingCame:
        pass
    return None


async def _reject(exam: Examination, match: ScriptedMatch, request_id: str, reason: int) -> None:
    number: Any = reason
    rejected = play_service_pb2.MoveRejected(
        request_id=request_id, reason=number, message="the doctor rejects it"
    )
    await exam.say(match, move_rejected=rejected)


@_check(
    "goes on after every reason of a rejection", "handle-rejections", "Rejections are items, not RPC errors.",
    "Read the table of reasons. After none of them a client may end, or stop answering other prompts.", "sits_down",
)  # fmt: skip
async def check_survives_rejections(exam: Examination) -> None:
    match = await exam.seat_bot()
    final = {"REASON_UNSPECIFIED", "REASON_NOT_YOUR_SEAT", "REASON_MATCH_OVER", "REASON_ILLEGAL"}
    for name, number in play_service_pb2.MoveRejected.Reason.items():
        if name in final:
            continue
        await exam.ask(match)
        item = await exam.read_move(match)
        await _reject(exam, match, item.submit_move.request_id, number)
        match.play_move(match.any_move())
        await _ask_until_answered(exam, match)
    await exam.finish(match)
    await exam.play_on()


async def _ask_until_answered(exam: Examination, match: ScriptedMatch) -> None:
    """Ask the next question, and pass over repeats of the last move."""
    update, until_s = await exam.ask(match), exam.patience_end_s
    while True:
        item = await exam.wait_for_item("submit_move", until_s=until_s)
        if item.submit_move.prompt == update.prompt:
            await exam.accept_move(match, item)
            return


@_check(
    "goes on when a seat is closed", "wait-for-matches-lobbyserviceattend",
    "`closed` means that an offered seat is no longer yours.",
    "Forget that seat only. Your other matches go on, and new offers come.", "sits_down",
)  # fmt: skip
async def check_survives_closed(exam: Examination) -> None:
    match, other = await exam.seat_bot(), await exam.seat_bot(1)
    closed = lobby_service_pb2.SeatClosed(match=match.name, seat=match.seat)
    await exam.lobby.send(lobby_service_pb2.AttendResponse(closed=closed))
    await exam.ask_and_accept(other)
    await exam.finish(match)
    await exam.ask_and_accept(other)
    await exam.finish(other)
    await exam.play_on()


@_check(
    "finishes its open matches when it is interrupted", "wait-for-matches-lobbyserviceattend",
    "`max_matches: 0` drains: you get no new seats, and open seats",
    "At SIGINT send an AttendRequest with max_matches 0, answer until the open matches are over, and then end.", "sits_down",
)  # fmt: skip
async def check_drains(exam: Examination) -> None:
    match = await exam.seat_bot()
    await exam.ask_and_accept(match)
    exam.bot.interrupt()
    await _wait_for_limit_zero(exam)
    await exam.ask_and_accept(match)
    await exam.finish(match)
    await _wait_for_end(exam)


async def _wait_for_limit_zero(exam: Examination) -> None:
    until_s = exam.patience_end_s
    while (await exam.lobby.read(until_s - monotonic())).max_matches:
        pass


async def _wait_for_end(exam: Examination) -> None:
    try:
        async with asyncio.timeout(exam.patience_s):
            await exam.bot.wait_for_end()
    except TimeoutError:
        raise NothingCame(f"it did not end within {exam.patience_s:g} s") from None


# The lobby


@_check(
    "comes back to a lobby that has gone away", "when-to-reconnect",
    "Come again too when the connection breaks, and when the server closes the stream without an error.",
    "Open Attend again after SERVER_STOPPING, STORE_UNAVAILABLE, a broken connection and a plain end.", "attends",
)  # fmt: skip
async def check_returns_to_lobby(exam: Examination) -> None:
    for code, reason in (("UNAVAILABLE", "SERVER_STOPPING"), ("", ""), ("INTERNAL", "A_NEW_REASON")):
        exam.lobby.end(code, reason)
        request = await exam.wait_for_attendance()
        if request.max_matches < 1:
            raise CheckFailed("it came back with max_matches 0")


@_check(
    "waits longer and longer between attempts", "when-to-reconnect",
    "double the bound after each failure up to 5 s.",
    "Wait a random time between 0 and a bound that begins with 0.1 s and doubles, before each attempt.", "returns_to_lobby",
)  # fmt: skip
async def check_backs_off(exam: Examination) -> None:
    started_s, attempts = monotonic(), 0
    exam.lobby.end("UNAVAILABLE", "STORE_UNAVAILABLE")
    while (left_s := REFUSED_S - (monotonic() - started_s)) > 0 and attempts <= MOST_RETURNS:
        try:
            (await exam.wait_for_lobby(left_s)).end("UNAVAILABLE", "STORE_UNAVAILABLE")
        except NothingCame:
            break
        attempts += 1
    if attempts > MOST_RETURNS:
        raise CheckFailed(f"it came back {attempts} times within {monotonic() - started_s:.1f} s")
    await exam.wait_for_attendance()


@_check(
    "waits as long as a full server asks for", "errors-of-calls-and-ends-of-streams",
    "RESOURCE_EXHAUSTED carries `retry_after` in the metadata of its `ErrorInfo`: the seconds to wait before you come back.",
    "Read `retry_after` from the ErrorInfo in grpc-status-details-bin, and wait that long before the next attempt.",
    "returns_to_lobby",
)  # fmt: skip
async def check_waits_retry_after(exam: Examination) -> None:
    ended_s = monotonic()
    exam.lobby.end("RESOURCE_EXHAUSTED", "SERVER_FULL", retry_after=str(ASKED_WAIT_S))
    await exam.wait_for_attendance()
    if monotonic() - ended_s < ASKED_WAIT_S:
        raise CheckFailed(
            f"it came back after {monotonic() - ended_s:.1f} s, and was asked to wait {ASKED_WAIT_S} s"
        )


@_check(
    "does not come back after a final reason", "when-to-reconnect",
    "do not\nreconnect, report the reason, and end.",
    "Read the reason of the ErrorInfo. After TOKEN_REVOKED, REPLACED and the others of the table end, and do not reconnect.",
    "attends",
)  # fmt: skip
async def check_stops_for_good(exam: Examination) -> None:
    exam.lobby.end("ABORTED", "REPLACED")
    ended = asyncio.create_task(exam.bot.wait_for_end())
    again = asyncio.create_task(exam.wait_for_lobby(exam.patience_s))
    try:
        await asyncio.wait({ended, again}, timeout=REFUSED_S, return_when=asyncio.FIRST_COMPLETED)
        if again.done() and again.exception() is None:
            raise CheckFailed(
                "it came back after REPLACED: two processes with one token would replace each other for ever"
            )
    finally:
        ended.cancel()
        again.cancel()
        await asyncio.wait({ended, again})


# Later versions of the protocol, and bad links


@_check(
    "passes over fields and events that it does not know", "overview",
    "Later versions may add fields, events and values of enums",
    "Let the library of protobuf pass over unknown fields, and ignore an item or event that is none of those that you know.",
    "sits_down",
)  # fmt: skip
async def check_passes_over_unknown_fields(exam: Examination) -> None:
    unknown = lobby_service_pb2.AttendResponse.FromString(UNKNOWN_FIELD)
    await exam.lobby.send(unknown)
    match = exam.new_match()
    await exam.offer_seat(match, extra=UNKNOWN_FIELD)
    await exam.wait_for_sit(match)
    # A new event is an unknown field of an item, too.
    unknown_event = exam.item(match)
    unknown_event.MergeFromString(UNKNOWN_FIELD)
    await exam.send_items(exam.item(match), unknown_event)
    update = exam.next_question(match)
    update.MergeFromString(UNKNOWN_FIELD)
    await exam.say(match, update=update)
    await exam.accept_move(match, await exam.read_move(match))
    await exam.finish(match)
    await exam.play_on()


@_check(
    "passes over values of enums that it does not know", "overview", "Later versions may add fields, events and values of enums",
    "Treat an unknown reason as one that costs only this move. Do not look enums up without a default.", "sits_down",
)  # fmt: skip
async def check_passes_over_unknown_enums(exam: Examination) -> None:
    match = await exam.seat_bot()
    await _reject(exam, match, "a request that it never sent", NEW_REASON)
    taken_off = lobby_service_pb2.TakenOff(queue="casual", reason="a new cause", cause=NEW_REASON)  # type: ignore[arg-type]
    await exam.lobby.send(lobby_service_pb2.AttendResponse(taken_off=taken_off))
    await exam.ask_and_accept(match)
    await exam.finish(match)
    await exam.play_on()


@_check(
    "takes a large message", "play-playserviceplay", "it must not exceed 256 KiB",
    "Let your library accept messages of 256 KiB.", "sits_down",
)  # fmt: skip
async def check_takes_large_message(exam: Examination) -> None:
    match = await exam.seat_bot()
    rejected = play_service_pb2.MoveRejected(
        request_id="-", reason=play_service_pb2.MoveRejected.REASON_STALE, message=LARGE_TEXT
    )
    update = exam.next_question(match)
    await exam.send_items(exam.item(match, move_rejected=rejected), exam.item(match, update=update))
    await exam.accept_move(match, await exam.read_move(match))
    await exam.finish(match)


@_check(
    "plays over a slow link", "when-to-reconnect", "your clock may be running",
    "Do not give up a stream on which bytes arrive slowly, and set no deadline for a stream.", "sits_down",
    is_slow_link=True,
)  # fmt: skip
async def check_plays_over_slow_link(exam: Examination) -> None:
    match = await exam.seat_bot()
    for _ in range(5):
        await exam.ask_and_accept(match)
    await exam.finish(match)


@_check(
    "survives a seed that is not the one of the offer", "at-the-end",
    "Check that the SHA-256 of the seed is the commitment.",
    "Compare the SHA-256 of the seed with the commitment of the offer, report a difference, and play on.", "sits_down",
)  # fmt: skip
async def check_survives_wrong_seed(exam: Examination) -> None:
    match = await exam.seat_bot()
    await exam.ask_and_accept(match)
    await exam.finish(match, seed=bytes(32))
    await exam.play_on()
    output = exam.bot.read_output().lower()
    if "seed" not in output and "commitment" not in output:
        exam.measured.notes.append("it printed nothing about a seed that does not fit the commitment")


# Notes


@_check(
    "answers the same question alike", "send-moves", "answers one prompt.",
    "Nothing must be mended: a bot may draw lots. With a seed of its own a bot is easier to debug.", "sits_down",
    is_note=True,
)  # fmt: skip
async def check_answers_alike(exam: Examination) -> None:
    match = await exam.seat_bot()
    update = exam.next_question(match)
    moves = set()
    for number in range(1, 9):
        update.prompt = match.prompt = number
        await exam.say(match, update=update)
        item = await exam.read_move(match)
        moves.add(game_part(item.submit_move).SerializeToString())
        accepted = play_service_pb2.MoveAccepted(request_id=item.submit_move.request_id)
        await exam.say(match, move_accepted=accepted)
    if len(moves) > 1:
        raise CheckFailed(f"it gave {len(moves)} different answers to the same view")
    await exam.finish(match)


@_check(
    "holds no more memory after many matches", "at-the-end",
    "`match_ended` has the result (or a `void_reason`) and the seed.",
    "Drop what you keep of a match when `match_ended` or `closed` comes.", "sits_down", is_note=True, is_long=True,
)  # fmt: skip
async def check_holds_no_memory(exam: Examination) -> None:
    before = 0
    for number in range(100):
        await exam.play_on()
        if number == 29:
            before = exam.bot.memory_bytes
    grown = (exam.bot.memory_bytes - before) / 70
    exam.measured.notes.append(f"memory grew by {grown / 1024:.1f} KiB a match")
    if grown > MOST_GROWTH:
        raise CheckFailed(f"its memory grew by {grown / 1024:.0f} KiB a match")
