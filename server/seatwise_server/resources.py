"""Turns what the store holds into resources of the API."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from seatwise.codec.offer import encode_options, encode_time_control
from seatwise.v1 import access_token_pb2, bot_pb2, match_pb2, play_service_pb2
from seatwise_referee.setup import Setup
from seatwise_referee.shuffle import commitment_to
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.store import MatchMeta, OffQueues, RegisteredBot, StoredAccessToken


def match_resource(meta: MatchMeta) -> match_pb2.Match:
    """Return the resource of a match. It never has the seed."""
    setup = Setup.from_json(json.loads(meta.fields["setup"]))
    message = match_pb2.Match(
        name=meta.match,
        game=f"games/{setup.game}",
        state=f"STATE_{meta.state}",
        bots=setup.bots,
        options=encode_options(setup.options),
        time_control=encode_time_control(setup.time_control),
        commitment=commitment_to(setup.seed),
        create_time=timestamp(meta.create_us),
        start_time=optional_timestamp(int(meta.fields.get("start_ms", 0))),
        durability=setup.durability,
        rules_version=setup.rules_version,
        deal_set=_deal_set(setup),
        competition=setup.competition,
    )
    _add_end(message, meta)
    return message


def result_fields(result: LoggedResult) -> dict[str, Any]:
    """Return the fields of a logged result, as the messages of ladders and leagues have them."""
    return {
        "place": result.seq,
        "match": result.match,
        "bots": result.bots,
        "points": result.points,
        "ranks": result.ranks,
        "endings": result.endings,
        "chain": bytes.fromhex(result.chain),
        "log_time": optional_timestamp(result.log_ms),
    }


def _deal_set(setup: Setup) -> match_pb2.DealSet | None:
    place = setup.deal_set
    return match_pb2.DealSet(name=place.name, number=place.number, size=place.size) if place else None


def _add_end(message: match_pb2.Match, meta: MatchMeta) -> None:
    if "result" not in meta.fields:
        return
    end = play_service_pb2.MatchEnded.FromString(meta.fields["result"])
    message.void_reason = end.void_reason
    message.absent_seats.extend(end.absent_seats)
    message.absence_excuse = end.absence_excuse
    if end.void_reason:
        message.void_message = meta.fields.get("abort", b"").decode()
    if end.HasField("result"):
        message.result.CopyFrom(end.result)
    if "end_ms" in meta.fields:
        message.end_time.CopyFrom(timestamp(int(meta.fields["end_ms"]) * 1000))


def off_queues(off: OffQueues) -> bot_pb2.OffQueues:
    """Return why a bot is off the queues, and until when."""
    return bot_pb2.OffQueues(reason=off.reason, back_time=timestamp(off.until_ms * 1000))


def bot_resource(known: RegisteredBot) -> bot_pb2.Bot:
    """Return the resource of a bot, without anything of its token."""
    create_time = timestamp(known.create_ms * 1000)
    return bot_pb2.Bot(name=known.bot, owner=known.owner, create_time=create_time, revoked=known.is_revoked)


def optional_timestamp(milliseconds: int | None) -> Timestamp | None:
    """Return a point in time, if it is known: None for None, and for 0."""
    return timestamp(milliseconds * 1000) if milliseconds else None


def access_token_resource(stored: StoredAccessToken) -> access_token_pb2.AccessToken:
    """Return the resource of an access token, without anything of its secret."""
    return access_token_pb2.AccessToken(
        name=stored.name,
        holder=stored.holder,
        scopes=[f"SCOPE_{scope.upper()}" for scope in sorted(stored.scopes)],
        create_time=timestamp(stored.create_ms * 1000),
        expire_time=optional_timestamp(stored.expire_ms),
        revoke_time=optional_timestamp(stored.revoke_ms),
        last_use_time=optional_timestamp(stored.last_use_ms),
    )


def timestamp(microseconds: int) -> Timestamp:
    """Return a point in time, given in microseconds since 1970."""
    point = Timestamp()
    point.FromMicroseconds(microseconds)
    return point
