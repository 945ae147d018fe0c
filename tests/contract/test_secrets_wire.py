"""No message that goes out while a match runs has room for another's cards, a seed or a nonce.

Every field that can be reached from what the server sends is on the list below. A field that is not fails
this test: whoever adds one decides here, once, who may see it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import pytest
from google.protobuf import descriptor_pool
from matches.one_match import nonce, setup_of
from matches.set_scenes import played

from seatwise import v1
from seatwise_referee.journal import canonical_json, encode_entry
from seatwise_referee.setup import Setup
from seatwise_referee.shuffle import commitment_to
from seatwise_server import resources
from seatwise_server.play.delivery import end_of
from seatwise_server.play.seat_offers import encode_offer
from seatwise_server.store import MatchMeta

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, ServiceDescriptor

SEEN_BY_ALL: dict[str, str] = {
    "google.protobuf.Timestamp": "seconds nanos",
    "seatwise.v1.AttendResponse": "welcome offer closed queued taken_off",
    "seatwise.v1.Bot": "name owner create_time revoked taken_off attending off_queues token_last_use_time kind",
    "seatwise.v1.CloseDealSetResponse": "over",
    "seatwise.v1.DealSet": "name number size",  # of its seed nothing
    "seatwise.v1.Game": "name rules_version min_seats max_seats paces options",
    "seatwise.v1.Game.OptionsEntry": "key value",
    "seatwise.v1.Game.PacesEntry": "key value",
    "seatwise.v1.GetDealSetResponse": "size matches over",
    "seatwise.v1.Match": "name game state bots options time_control commitment result void_reason create_time end_time "
    "durability rules_version void_message deal_set competition absent_seats result_withheld start_time "
    "absence_excuse",
    "seatwise.v1.Match.OptionsEntry": "key value",
    "seatwise.v1.PlayResponse": "items",
    "seatwise.v1.Ping": "number",
    "seatwise.v1.SeatClosed": "match seat",
    "seatwise.v1.SeatOffer": "match seat epoch address game commitment bots time_control options ws_address ws_port",
    "seatwise.v1.SeatOffer.OptionsEntry": "key value",
    "seatwise.v1.Ladder": "name game seats options time_control owners_together create_time results "
    "follows season close_time",
    "seatwise.v1.Ladder.OptionsEntry": "key value",
    "seatwise.v1.League": "name settings game bots create_time results",  # settings as published
    "seatwise.v1.LeagueStanding": "place bot matches points score wins forfeits resigned byes",
    "seatwise.v1.ListLeagueStandingsResponse": "standings results withheld update_time",
    "seatwise.v1.ListLeagueResultsResponse": "results next_page_token withheld",
    "seatwise.v1.ListMatchesResponse": "matches next_page_token withheld",
    "seatwise.v1.ListStandingsResponse": "standings next_page_token results update_time total_size",
    "seatwise.v1.ListOpponentsResponse": "opponents next_page_token matches withheld",
    "seatwise.v1.StandingsPoint": "time results standings",
    "seatwise.v1.Standing": "bot place matches mu sigma strength low high provisional not_distinguishable_from off_reason kind",
    "seatwise.v1.OffQueues": "reason back_time",
    "seatwise.v1.TakenOff": "queue reason cause back_time",
    "seatwise.v1.TakenOffLadder": "ladder reason",
    "seatwise.v1.TimeControl": "free_ms bank_ms increment_ms grace_ms setup_ms allowance_cap_ms handover_ms max_strikes "
    "max_rejections tie_window_ms",
    "seatwise.v1.Queued": "queue place",
    "seatwise.v1.TimeControl.FreeMsEntry": "key value",
    "seatwise.v1.WatchMatchResponse": "match at_ms ugo ubongo json send_time opened",
    "seatwise.v1.Welcome": "bot max_matches pending_seats",
}
"""What anybody may know at any time: names, limits, and the commitment, from which no seed can be worked out."""

SEEN_BY_ITS_SEAT: dict[str, str] = {
    "seatwise.v1.MoveAccepted": "request_id charged_ms receipt",
    "seatwise.v1.MoveRejected": "request_id reason message",
    "seatwise.v1.PlayResponseItem": "match seat epoch update move_accepted move_rejected match_ended ping",
    "seatwise.v1.TimeLeft": "move_ms bank_ms charged_ms latency_ms strikes",
    "seatwise.v1.Update": "prompt to_act pace time receipt ugo ubongo json",
}
"""What one bot is told of its own seat. A message is for a person; test_non_interference_wire.py reads it too."""

CARDS: dict[str, str] = {
    # Of finished rounds, when their cards are out of play: test_secrets.py looks at `opened` of every game.
    "seatwise.v1.OpenedRound": "round hands",
    "seatwise.v1.OpenedHand": "cards symbols",
    # Of games from outside: what their rules show one seat. The referee draws hidden cards again, and compares.
    "seatwise.v1.JsonValue": "json",
    # `drawing` and `says` follow from a spectator's views alone: test_non_interference_hosted.py.
    "seatwise.v1.JsonView": "seat data legal_moves has_more_moves drawing says",
    "seatwise.games.ugo.v1.Kingdom": "sections farmers",  # lies open
    "seatwise.games.ugo.v1.RoundPoints": "points",
    "seatwise.games.ugo.v1.Section": "cards",  # lies open
    "seatwise.games.ugo.v1.Trick": "leader cards winner laid",  # was played openly
    # One hand, the viewer's own; of the others the sizes.
    "seatwise.games.ugo.v1.View": "seat round rounds starter hand hand_sizes leader trick legal_cards won_cards arranger "
    "kingdoms supply points tricks last_round",
    "seatwise.games.ubongo.v1.Built": "layout symbols has_called",  # of a round that is over
    "seatwise.games.ubongo.v1.Layout": "cards xs ys turns",
    "seatwise.games.ubongo.v1.RoundPoints": "points",
    # One hand and one layout, the viewer's own; of the others how many cards lie.
    "seatwise.games.ubongo.v1.View": "seat round rounds hand symbols layout laid building offers out points last_round",
}
"""Views: types of their own, built from nothing."""

SEEN_AT_THE_END: dict[str, str] = {
    # The seed, once it can be of no use: not in a set of deals.
    "seatwise.v1.MatchEnded": "result void_reason seed absent_seats receipt absence_excuse",
    "seatwise.v1.LeagueResult": "place match bots points ranks endings chain deal_set withheld log_time",
    "seatwise.v1.LadderResult": "place match bots points ranks endings chain log_time",
    # Means over matches of which all may see the result, or the viewer took part in them.
    "seatwise.v1.OpponentRecord": "opponent game matches wins ties mean_rank mean_points opponent_mean_points last_end_time",
    "seatwise.v1.Result": "points outcome_ranks ranks endings rounds chain",
    "seatwise.v1.RoundResult": "points",
}
"""What is told when the match is over."""

SEEN_ONCE: dict[str, str] = {
    "seatwise.v1.GetRecordResponse": "record",  # of a finished match only, and of a finished set
    "seatwise.v1.RegisterBotResponse": "bot token",
    "seatwise.v1.RotateTokenResponse": "token",
    "seatwise.v1.CreateAccessTokenResponse": "access_token token",
    "seatwise.v1.RotateAccessTokenResponse": "access_token token",
    "seatwise.v1.CreateInviteResponse": "invite token",
    "seatwise.v1.CreateOwnerResponse": "owner token",
    "seatwise.v1.DeleteBotResponse": "aborted_matches",  # an admin's bots may play too, and these were not dealt
}

SEEN_BY_ADMINS: dict[str, str] = {
    "seatwise.v1.AuditEntry": "line who address",
    "seatwise.v1.Invite": "name most_bots uses used create_time expire_time revoke_time most_matches",
    "seatwise.v1.Owner": "name bots most_bots create_time most_matches most_requests most_matches_at_once "
    "most_matches_a_day most_watches matches day_matches",  # an owner sees itself, too
    "seatwise.v1.EraseOwnerResponse": "bots access_tokens",
    "seatwise.v1.AccessToken": "name holder scopes create_time expire_time revoke_time last_use_time",
    "seatwise.v1.Lease": "what holder left_ms",
    "seatwise.v1.LiveMatch": "match referee epoch deaths",
    "seatwise.v1.CheckMatchesResponse": "faults checked next_page_token",
    "seatwise.v1.MatchFault": "match kind text mended",
    "seatwise.v1.Referee": "name address state matches free_tables silent_ms",
}
"""Of the processes; no cards there either, for an admin's bots may play too."""

DECIDED = SEEN_BY_ALL | SEEN_BY_ITS_SEAT | CARDS | SEEN_AT_THE_END | SEEN_ONCE | SEEN_BY_ADMINS

FILES = [
    import_module(f"seatwise.v1.{each.name}")
    for each in iter_modules(v1.__path__)
    if each.name.endswith("_pb2")
]
"""All there are, so that none is forgotten."""
RUNNING = ("PlayResponse", "AttendResponse", "WatchMatchResponse", "GetMatchResponse", "ListMatchesResponse")
"""What is sent of matches that are not over."""


def services() -> list[ServiceDescriptor]:
    return [service for file in FILES for service in file.DESCRIPTOR.services_by_name.values()]


def reachable(roots: list[Descriptor]) -> dict[str, Descriptor]:
    found: dict[str, Descriptor] = {}
    while roots:
        message = roots.pop()
        if message.full_name not in found:
            found[message.full_name] = message
            roots += [field.message_type for field in message.fields if field.message_type]
    return found


def responses() -> dict[str, Descriptor]:
    return reachable([method.output_type for service in services() for method in service.methods])


def is_envelope(message: Descriptor) -> bool:
    """A response that holds resources and nothing else of its own."""
    own = [field for field in message.fields if field.name != "next_page_token"]
    return message.name.endswith("Response") and all(field.message_type for field in own)


def test_every_field_that_is_sent_has_been_decided_upon() -> None:
    sent = {
        name: " ".join(field.name for field in message.fields)
        for name, message in responses().items()
        if name in DECIDED or not is_envelope(message)
    }
    assert sent == DECIDED


@pytest.mark.parametrize("word", ["seed", "nonce", "secret", "token", "deal", "aside", "deck", "hands"])
def test_no_field_is_named_after_a_secret(word: str) -> None:
    roots = [message for message in responses().values() if message.name in RUNNING]
    named = {
        f"{message.full_name}.{field.name}"
        for message in reachable(roots).values()
        for field in message.fields
        if word in field.name.split("_")
    }
    allowed = {
        "seatwise.v1.ListMatchesResponse.next_page_token",
        "seatwise.v1.Match.deal_set",  # a name and a number
        "seatwise.v1.MatchEnded.seed",
        "seatwise.v1.OpenedRound.hands",  # whose cards are out of play
    }
    assert named <= allowed


def test_no_message_can_hold_another_by_surprise() -> None:
    """`Any` and `Struct` would hold whatever somebody puts in."""
    loose = {"google.protobuf.Any", "google.protobuf.Struct", "google.protobuf.Value"}
    assert not loose & responses().keys()


def test_secrets_known_before_the_deal_have_no_field_that_is_sent() -> None:
    """A nonce goes in and never out: `Sit` is of the requests alone."""
    sit = descriptor_pool.Default().FindMessageTypeByName("seatwise.v1.Sit")
    assert "nonce" in sit.fields_by_name
    assert sit.full_name not in responses()


def test_an_end_in_a_set_of_deals_tells_no_seed() -> None:
    it = played()
    setup, journal = it.setup, [encode_entry(entry) for entry in it.journal]
    end = end_of(setup, journal)
    told = end.message.SerializeToString() + resources.match_resource(meta_of(setup)).SerializeToString()
    assert setup.deal_set
    assert setup.deal_set.seed not in told
    assert setup.seed not in told
    assert not end.message.seed


# --- What is made of a setup, in which the seed is --------------------------------------------------------


def two_setups() -> tuple[Setup, Setup]:
    setup = setup_of(3)
    return setup, replace(setup, seed=bytes(reversed(setup.seed)))


def test_an_offer_tells_of_the_seed_its_commitment_alone() -> None:
    setup, other = two_setups()
    for seat in range(3):
        offer, others = (encode_offer(each, seat, 1, "host:1") for each in (setup, other))
        assert offer.commitment == commitment_to(setup.seed)
        others.commitment = offer.commitment
        assert offer == others


def meta_of(setup: Setup, **fields: bytes) -> MatchMeta:
    written = {"setup": canonical_json(setup.to_json()), "state": b"RUNNING", **fields}
    return MatchMeta(setup.match, 1_000_000, written)


def test_a_match_as_a_resource_tells_of_the_seed_its_commitment_alone() -> None:
    setup, other = two_setups()
    match, others = (resources.match_resource(meta_of(each, nonces=nonce(0))) for each in (setup, other))
    assert match.commitment == commitment_to(setup.seed)
    others.commitment = match.commitment
    assert match == others
    assert setup.seed not in match.SerializeToString()


def test_the_store_knows_the_seed_so_that_this_proves_something() -> None:
    setup, _ = two_setups()
    assert json.loads(meta_of(setup).fields["setup"])["seed"] == setup.seed.hex()
