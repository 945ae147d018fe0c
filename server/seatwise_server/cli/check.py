"""`seatwise ctl check`: whether all data of a store is complete and consistent, above all after a restore."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import dataclass, field

from seatwise.cli.arguments import security_of
from seatwise.client import Client
from seatwise.errors import RefusedError, SeatwiseError, clean_text
from seatwise.v1 import admin_service_pb2 as pb
from seatwise.v1 import admin_service_pb2_grpc, match_pb2
from seatwise_referee.verify import verify_line
from seatwise_server.cli import asking
from seatwise_server.cli.asking import Call, follow_pages

CHECK_HELP = "compare lists, entries, records and result logs, and replay all records and the journals of running matches"
PAGE = 200

State = match_pb2.Match.State


class NotWhole(Exception):
    """A fault of a match; the text says which."""


def configure(parser: ArgumentParser) -> None:
    asking.add_arguments(parser)
    parser.add_argument(
        "--mend", action="store_true", help="repair each fault that can be repaired without loss"
    )
    parser.set_defaults(run=run)


@dataclass
class Findings:
    """The results of a check."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)
    """The faults by match."""
    mended: dict[str, str] = field(default_factory=dict)
    """The repaired faults by match."""

    def note_wrong(self, match: str, text: str) -> None:
        """Keep a fault, and print it."""
        self.wrong[match] = f"{self.wrong[match]}; {text}" if match in self.wrong else text
        print(clean_text(f"{match}: {text}"), file=sys.stderr, flush=True)

    def note_mended(self, match: str, text: str) -> None:
        """Keep a fault that was repaired, and print it."""
        self.mended[match] = text
        print(clean_text(f"{match}: mended: {text}"), file=sys.stderr, flush=True)


def run(args: Namespace) -> int:
    """Check the server; return 1 if there is a fault that was not repaired."""
    findings = Findings()
    with asking.open_service(args, admin_service_pb2_grpc.AdminServiceStub) as ask:
        _compare_lists(ask, args, findings)
    with Client(args.address, token=asking.token_of(args), **security_of(args)) as client:
        _replay_records(client, findings)
    _print_findings(findings, args)
    return 1 if findings.wrong else 0


def _compare_lists(ask: Call, args: Namespace, findings: Findings) -> None:
    """Compare lists, entries, records and result logs. It comes first, so that repaired matches are replayed too."""
    for page in asking.read_pages(ask, "CheckMatches", pb.CheckMatchesRequest(mend=args.mend)):
        for fault in page.faults:
            (findings.note_mended if fault.mended else findings.note_wrong)(fault.match, fault.text)
        findings.counts["compared"] += page.checked


def _replay_records(client: Client, findings: Findings) -> None:
    for page in follow_pages(lambda token: client.list_matches(PAGE, token)):
        for match in page:
            try:
                findings.counts[_check_match(client, match)] += 1
            except (NotWhole, SeatwiseError) as error:
                findings.note_wrong(match.name, str(error))


def _check_match(client: Client, match: match_pb2.Match) -> str:
    """Check one match and return its kind. Raises `NotWhole` for a fault, and `SeatwiseError`."""
    if match.state == State.STATE_VOIDED:
        return "voided"
    try:
        if match.state == State.STATE_FINISHED:
            return _verify_record(client.get_record(match.name), match.result.chain.hex())
        return _follow_match(client, match.name) if match.state == State.STATE_RUNNING else "waiting"
    except RefusedError as refused:
        if refused.reason == "SET_RUNNING":
            return "withheld"
        raise


def _verify_record(record: str, chain: str) -> str:
    verdict = verify_line(record)
    if verdict.fault:
        raise NotWhole(f"its record is wrong: {verdict.fault}")
    if verdict.chain != chain:
        raise NotWhole(f"its record ends with chain {verdict.chain}, but the published chain is {chain}")
    return "verified"


def _follow_match(client: Client, name: str) -> str:
    """Replay a running match: the server computes a spectator's first view from the whole journal, move by move."""
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


def _print_findings(findings: Findings, args: Namespace) -> None:
    kinds = ("verified", "running", "waiting", "voided", "withheld", "compared")
    counts = {kind: findings.counts[kind] for kind in kinds}
    counts |= {"mended": len(findings.mended), "wrong": len(findings.wrong)}
    if args.json:
        print(json.dumps({**counts, "faults": findings.wrong, "mends": findings.mended}))
        return
    print(
        f"{counts['compared']} entries of lists and logs compared, "
        f"{counts['verified']} records verified, {counts['running']} running matches replayed, "
        f"{counts['waiting']} waiting, {counts['voided']} voided, {counts['withheld']} withheld until their set is over; "
        + (f"{len(findings.mended)} mended, " if findings.mended else "")
        + (f"{len(findings.wrong)} WRONG" if findings.wrong else "nothing wrong")
    )
