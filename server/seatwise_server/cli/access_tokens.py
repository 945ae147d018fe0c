"""`seatwise ctl token`: issues access tokens, and takes them away."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from seatwise.cli import arguments
from seatwise.v1 import access_service_pb2 as pb
from seatwise.v1.access_service_pb2_grpc import AccessServiceStub
from seatwise.v1.access_token_pb2 import AccessToken
from seatwise_server.cli import asking, table
from seatwise_server.cli.asking import Call

TOKENS_HELP = "create, list, rotate and revoke access tokens, for people and for bots"
SCOPES = [name.removeprefix("SCOPE_").lower() for name in AccessToken.Scope.keys()[1:]]
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


def configure(parser: ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    verbs = parser.add_subparsers(dest="token_verb", required=True, metavar="VERB")
    create = _add_verb(
        verbs, "create", "create an access token and print its text, which is shown only once", _create_token
    )
    create.add_argument("holder", help="name of the person, or the bot: bots/NAME/versions/1")
    create.add_argument(
        "--scope",
        action="append",
        required=True,
        choices=SCOPES,
        help="a scope that it opens; may be repeated",
    )
    create.add_argument(
        "--expires", type=parse_lifetime, default=0, metavar="TIME",
        help="time until it expires: 12h, 90d or 4w (default: it does not expire)",
    )  # fmt: skip
    _add_verb(verbs, "list", "list the access tokens, without their texts", _list_tokens)
    rotate = _add_verb(verbs, "rotate", "give an access token a new text, and print it", _rotate_token)
    revoke = _add_verb(verbs, "revoke", "revoke an access token", _revoke_token)
    for verb in (rotate, revoke):
        verb.add_argument(
            "name", type=arguments.name_parser("tokens"), help="name of the token: tokens/k2v5..., or k2v5..."
        )


def _add_verb(verbs: Any, name: str, text: str, act: Callable[[Call, Namespace], None]) -> ArgumentParser:
    return asking.add_service_verb(verbs, AccessServiceStub, name, text, act)


def parse_lifetime(text: str) -> int:
    """Return the seconds of a time such as 12h, 90d or 4w."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text)
    if not found:
        raise ArgumentTypeError(f"{text!r} is not a time such as 12h, 90d or 4w")
    return int(found[1]) * _SECONDS[found[2]]


def _create_token(ask: Call, args: Namespace) -> None:
    request = pb.CreateAccessTokenRequest(
        holder=args.holder,
        scopes=[f"SCOPE_{scope.upper()}" for scope in args.scope],
        lifetime_s=args.expires,
    )
    _print_issued(ask("CreateAccessToken", request), args)


def _rotate_token(ask: Call, args: Namespace) -> None:
    _print_issued(ask("RotateAccessToken", pb.RotateAccessTokenRequest(name=args.name)), args)


def _revoke_token(ask: Call, args: Namespace) -> None:
    revoked = ask("RevokeAccessToken", pb.RevokeAccessTokenRequest(name=args.name)).access_token
    print(
        json.dumps(asking.to_dict(revoked)) if args.json else f"{revoked.name} of {revoked.holder} is revoked"
    )


def _list_tokens(ask: Call, args: Namespace) -> None:
    request = pb.ListAccessTokensRequest(page_size=1000)
    found = list(asking.read_entries(ask, "ListAccessTokens", request, "access_tokens"))
    if args.json:
        for each in found:
            print(json.dumps(asking.to_dict(each)))
    elif found:
        columns = ("token", "holder", "scopes", "created", "state", "last used")
        table.show_table("Access tokens", columns, [_row_of(each) for each in found])
    else:
        print("There are none.")


def _row_of(each: AccessToken) -> list[str]:
    scopes = " ".join(AccessToken.Scope.Name(scope).removeprefix("SCOPE_").lower() for scope in each.scopes)
    used = _day_of(each, "last_use_time") or "never"
    return [each.name, each.holder, scopes, _day_of(each, "create_time"), _state_of(each), used]


def _state_of(each: AccessToken) -> str:
    if each.HasField("revoke_time"):
        return f"revoked {_day_of(each, 'revoke_time')}"
    if not each.HasField("expire_time"):
        return "valid"
    is_over = each.expire_time.ToDatetime(UTC) <= datetime.now(UTC)
    return f"{'expired' if is_over else 'valid until'} {_day_of(each, 'expire_time')}"


def _day_of(each: AccessToken, field: str) -> str:
    if not each.HasField(field):
        return ""
    at: datetime = getattr(each, field).ToDatetime(UTC)
    return f"{at:%Y-%m-%d %H:%M}"


def _print_issued(issued: Any, args: Namespace) -> None:
    if args.json:
        print(json.dumps({**asking.to_dict(issued.access_token), "text": issued.text}))
    else:
        print(
            f"{issued.access_token.name} of {issued.access_token.holder}; keep its text, it is not shown again:\n{issued.text}"
        )
