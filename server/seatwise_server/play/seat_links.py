"""The seats of one match, and the streams through which their bots sit there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from seatwise.v1 import play_service_pb2 as pb
from seatwise_server.play import play_messages
from seatwise_server.play.outbox import Outbox, UpdateSource


@dataclass(slots=True)
class SeatLink:
    """One seat, and the stream through which its bot sits there."""

    head: bytes
    """The bytes with which each item of this seat begins."""
    outbox: Outbox | None = None
    every_change: bool = False
    """Whether the bot wants to be shown every change, and not only its prompts."""


class SeatLinks:
    """All seats of one match. Messages for a seat without a stream are dropped."""

    __slots__ = ("_source", "links")

    def __init__(self, source: UpdateSource, match: str, seats: int, epoch: int) -> None:
        self._source = source
        self.links = [SeatLink(play_messages.encode_head(match, seat, epoch)) for seat in range(seats)]

    def is_linked_by(self, seat: int, outbox: Outbox) -> bool:
        """Whether the seat's bot sits there through this stream."""
        return self.links[seat].outbox is outbox

    def link_seat(self, seat: int, outbox: Outbox, every_change: bool) -> None:
        """Links the seat to this stream, in place of any other."""
        link = self.links[seat]
        link.outbox, link.every_change = outbox, every_change
        outbox.seats[self._source, seat] = None

    def unlink_seat(self, seat: int, outbox: Outbox) -> bool:
        """Notes that this stream is gone; returns False if the seat's bot sits there through another one."""
        link = self.links[seat]
        if link.outbox is not outbox:
            return False
        link.outbox = None
        return True

    def seats_without_link(self) -> Iterator[int]:
        """Lists the seats without a stream."""
        return (seat for seat, link in enumerate(self.links) if link.outbox is None)

    def mark_view_due(self, seat: int) -> bool:
        """Has the view of the seat sent at once; returns False if the seat has no stream."""
        outbox = self.links[seat].outbox
        if outbox is None:
            return False
        outbox.mark_view_due(self._source, seat, at_once=True)
        return True

    def seats_shown_every_change(self) -> list[int]:
        """Lists the seats whose bots want to be shown every change."""
        return [seat for seat, link in enumerate(self.links) if link.every_change and link.outbox]

    def show_change(self, seats: Iterable[int]) -> None:
        """Has a change shown to those of these seats whose bots want every change."""
        for seat in seats:
            link = self.links[seat]
            if link.every_change and link.outbox:
                link.outbox.mark_view_due(self._source, seat, at_once=False)

    def send_acceptance(self, seat: int, request_id: str, charged_ms: int, receipt: bytes) -> None:
        """Tells the seat, with its next message, that its move was accepted."""
        link = self.links[seat]
        if link.outbox:
            item = play_messages.encode_accepted(link.head, request_id, charged_ms, receipt)
            link.outbox.add_answer(item, at_once=False)

    def send_rejection(self, seat: int, request_id: str, reason: str, message: str) -> None:
        """Tells the seat at once that its request was rejected."""
        link = self.links[seat]
        if link.outbox:
            item = play_messages.encode_rejected(link.head, request_id, reason, message)
            link.outbox.add_answer(item, at_once=True)

    def send_end(self, seat: int, end: pb.MatchEnded, receipt: bytes) -> None:
        """Tells the seat that the match is over."""
        link = self.links[seat]
        if link.outbox:
            link.outbox.add_match_end(self._source, seat, play_messages.encode_ended(link.head, end, receipt))

    def forget_seats(self, *, may_show: bool) -> None:
        """Unlinks all streams; messages that are due are still sent if the match is over (`may_show`)."""
        for seat, link in enumerate(self.links):
            if link.outbox:
                link.outbox.forget_seat(self._source, seat, may_show=may_show)
