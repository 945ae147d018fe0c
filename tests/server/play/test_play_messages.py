"""What is written by hand for speed is what protobuf would have written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatwise.v1 import play_service_pb2 as pb
from seatwise_referee.match import SeatUpdate
from seatwise_server.play import play_messages

MILLISECONDS = st.sampled_from([0, 1, 127, 128, 16_383, 16_384, 86_400_000]) | st.integers(0, 86_400_000)
RECEIPT = bytes(range(16))
HEAD = play_messages.encode_head("matches/abc", 2, 3)

UPDATES = st.builds(
    SeatUpdate,
    prompt=st.integers(0, 100_000),
    to_act=st.booleans(),
    pace=st.sampled_from(["", "card", "arrange", "build"]),
    move_ms=MILLISECONDS,
    bank_ms=MILLISECONDS,
    charged_ms=MILLISECONDS,
    allowance_ms=MILLISECONDS,
    strikes=st.integers(0, 300),
    seen_seq=st.just(1),
    view=st.none(),
)


@given(UPDATES)
def test_an_update(told: SeatUpdate) -> None:
    left = pb.TimeLeft(
        move_ms=told.move_ms,
        bank_ms=told.bank_ms,
        charged_ms=told.charged_ms,
        latency_ms=told.allowance_ms,
        strikes=told.strikes,
    )
    update = pb.Update(prompt=told.prompt, to_act=told.to_act, pace=told.pace, time=left, receipt=RECEIPT)
    item = pb.PlayResponseItem(match="matches/abc", seat=2, epoch=3, update=update)
    assert play_messages.encode_update(HEAD, "ugo", told, RECEIPT) == item.SerializeToString()


@given(st.text(min_size=1, max_size=64), MILLISECONDS)
def test_an_acceptance(request_id: str, charged_ms: int) -> None:
    accepted = pb.MoveAccepted(request_id=request_id, charged_ms=charged_ms, receipt=RECEIPT)
    item = pb.PlayResponseItem(match="matches/abc", seat=2, epoch=3, move_accepted=accepted)
    assert play_messages.encode_accepted(HEAD, request_id, charged_ms, RECEIPT) == item.SerializeToString()
