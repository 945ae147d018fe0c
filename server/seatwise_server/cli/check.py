"""`seatwise ctl check`: whether all that a store holds is whole, above all one that was restored."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator

from seatwise.cli.security import security_of
from seatwise.client import Client
from seatwise.errors import RefusedError, SeatwiseError
from seatwise.v1 import match_pb2
from seatwise_referee.verify import verify_line
from seatwise_server.cli import asking

TEXT = "replay all records and the journals of running matches, and compare them with what was published"
PAGE = 200

State = match_pb2.Match.State


class NotWhole(Exception):
    """What is wrong with a match."""


def configure(parser: ArgumentParser) -> None:
    """Adds the arguments."""
    asking.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """1 if anything is wrong."""
    with Client(args.address, token=asking.token_of(args), **security_of(args)) as client:
        return _check(client, args)


def _check(client: Client, args: Namespace) -> int:
    found, wrong = Counter[str](), dict[str, str]()
    for match in _all(client):
        try:
            found[_look(client, match)] += 1
        except (NotWhole, SeatwiseError) as error:
            wrong[match.name] = str(error)
            print(f"{match.name}: {error}", file=sys.stderr, flush=True)
    _tell(found, wrong, args)
    return 1 if wrong else 0


def _all(client: Client) -> Iterator[match_pb2.Match]:
    token = ""
    while True:
        page = client.list_matches(PAGE, token)
        yield from page
        token = page.next_page_token
        if not token:
            return


def _look(client: Client, match: match_pb2.Match) -> str:
    """What kind of match it is, if it is whole."""
    if match.state == State.STATE_VOIDED:
        return "voided"
    try:
        if match.state == State.STATE_FINISHED:
            return _verified(client.get_record(match.name), match.result.chain.hex())
        return _followed(client, match.name) if match.state == State.STATE_RUNNING else "waiting"
    except RefusedError as refused:
        if refused.reason == "SET_RUNNING":
            return "withheld"
        raise


def _verified(record: str, chain: str) -> str:
    verdict = verify_line(record)
    if verdict.fault:
        raise NotWhole(f"its record is wrong: {verdict.fault}")
    if verdict.chain != chain:
        raise NotWhole(f"its record ends with chain {verdict.chain}, but the published chain is {chain}")
    return "verified"


def _followed(client: Client, name: str) -> str:
    """A spectator's first view is made of the whole journal, move by move."""
    watching = client.watch_match(name)
    try:
        for seen in watching:
            if seen.WhichOneof("view"):
                return "running"
            if not seen.HasField("match"):
                break
    finally:
        watching.close()  # type: ignore[attr-defined]  # a generator
    raise NotWhole("it is listed as running, but its journal has no deal")


def _tell(found: Counter[str], wrong: dict[str, str], args: Namespace) -> None:
    kinds = ("verified", "running", "waiting", "voided", "withheld")
    counts = {kind: found[kind] for kind in kinds} | {"wrong": len(wrong)}
    if args.json:
        print(json.dumps({**counts, "faults": wrong}))
        return
    print(
        f"{counts['verified']} records verified, {counts['running']} running matches replayed, "
        f"{counts['waiting']} waiting, {counts['voided']} voided, {counts['withheld']} withheld until their set is over; "
        + (f"{len(wrong)} WRONG" if wrong else "nothing wrong")
    )
