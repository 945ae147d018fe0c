"""`seatwise ctl invite`, `owner` and `token`: the people that use a server, and their access tokens."""

from __future__ import annotations

import csv
import json
import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from seatwise.cli import arguments
from seatwise.errors import UsageError
from seatwise.output import read_text_file
from seatwise.v1 import access_service_pb2
from seatwise.v1 import owner_service_pb2 as pb
from seatwise.v1.access_service_pb2_grpc import AccessServiceStub
from seatwise.v1.access_token_pb2 import AccessToken
from seatwise.v1.owner_pb2 import Invite, Owner
from seatwise.v1.owner_service_pb2_grpc import OwnerServiceStub
from seatwise_server.cli import asking
from seatwise_server.cli.asking import Call
from seatwise_server.embedded import write_private
from seatwise_server.store.tokens import TOKEN_PREFIX

PARTS_OF_ID_TOKEN = 3
"""Header, payload and signature."""
INVITES_HELP = "create, list and revoke invites, with which people become owners"
OWNERS_HELP = "create an owner with an invite, show an owner, and set its quotas"
QUOTAS = {
    "bots": "bots that it may have",
    "matches": "matches that each of its bots plays at once",
    "requests": "changes that it makes in a minute",
    "matches-at-once": "matches that all its bots together play at once",
    "matches-a-day": "matches that all its bots together begin in 24 hours",
    "watches": "matches that it and its bots watch at once with their tokens",
}
"""Each quota of an owner by its option, which is the field `most_...` of the request."""


def configure_invites(parser: ArgumentParser) -> None:
    """Add the verbs for invites and their arguments."""
    verbs = parser.add_subparsers(dest="invite_verb", required=True, metavar="VERB")
    text = "create an invite and print its token, which is shown only once"
    create = _add_verb(verbs, "create", text, _create_invite)
    for option, default, text in (
        ("--bots", 3, "most bots of each owner that is created with it"),
        ("--matches", 8, "most matches that each of these bots plays at once"),
        ("--uses", 1, "owners that may be created with it"),
    ):
        text += " (default: %(default)s)"
        create.add_argument(option, type=arguments.parse_count, default=default, metavar="N", help=text)
    _add_lifetime(create, "7d")
    _add_verb(verbs, "list", "list the invites, without their tokens", _list_invites)
    revoke = _add_verb(
        verbs, "revoke", "revoke an invite; owners that were created with it stay", _revoke_invite
    )
    revoke.add_argument(
        "name", type=arguments.name_parser("invites"), help="name of the invite: invites/k2v5..., or k2v5..."
    )


def configure_owners(parser: ArgumentParser) -> None:
    """Add the verbs for owners and their arguments."""
    verbs = parser.add_subparsers(dest="owner_verb", required=True, metavar="VERB")
    text = "become an owner, with the token of an invite; print the owner's own token"
    create = _add_verb(verbs, "create", text, _create_owner)
    create.add_argument(
        "id", nargs="?", default="",
        help="id of the owner: 1 to 40 of a-z, 0-9 and -, beginning with a letter; leave it out with --id-token",
    )  # fmt: skip
    create.add_argument(
        "--id-token", type=_read_id_token, dest="token", metavar="FILE",
        help="file with an ID token of the server's issuer, in place of an invite; - reads standard input",
    )  # fmt: skip
    create.add_argument(
        "--file", type=arguments.InputFile, metavar="NAMES.csv",
        help="create an owner for each line, whose first column is its id; this needs the token of an admin. The same command goes on "
        "where it was",
    )  # fmt: skip
    create.add_argument(
        "--tokens", type=arguments.parse_output, metavar="FILE",
        help="with --file: where the tokens go, readable for you alone (default: NAMES.tokens.csv)",
    )  # fmt: skip
    show = _add_verb(verbs, "show", "show an owner, its bots and its quotas", _show_owner)
    quotas = _add_verb(verbs, "set-quotas", "set the quotas of an owner", _set_quotas)
    for option, text in QUOTAS.items():
        quotas.add_argument(
            f"--{option}", type=arguments.parse_count_or_zero, metavar="N", help=f"most {text}"
        )
    for verb in (show, quotas):
        verb.add_argument(
            "name", type=arguments.name_parser("owners"), help="name of the owner: owners/joan, or joan"
        )


def _read_id_token(name: str) -> str:
    try:
        text = read_text_file(name).strip()
    except UsageError as error:
        raise ArgumentTypeError(str(error)) from None
    if not text.startswith("ey") or text.count(".") != PARTS_OF_ID_TOKEN - 1:
        why = (
            f"{name} holds no ID token: three parts with dots between them, the first of which begins with ey"
        )
        raise ArgumentTypeError(why)
    return text


_add_verb = partial(asking.add_service_verb, OwnerServiceStub)


def _create_invite(ask: Call, args: Namespace) -> None:
    request = pb.CreateInviteRequest(
        most_bots=args.bots, uses=args.uses, lifetime_s=args.expires, most_matches=args.matches
    )
    made = ask("CreateInvite", request)
    text = f"{made.invite.name}; give this token to the owner, it is not shown again:\n{made.token}"
    asking.show_answer(made.invite, text, args, token=made.token)


def _list_invites(ask: Call, args: Namespace) -> None:
    request = pb.ListInvitesRequest(page_size=1000)
    found = list(asking.read_entries(ask, "ListInvites", request, "invites"))
    asking.show_entries("Invites", ("invite", "bots", "matches", "used", "state"), _row_of, found, args)


def _row_of(each: Invite) -> list[str]:
    used = f"{each.used} of {each.uses}"
    return [each.name, str(each.most_bots), str(each.most_matches), used, _state_of(each)]


def _state_of(each: Invite | AccessToken) -> str:
    if each.HasField("revoke_time"):
        return f"revoked {_day_of(each, 'revoke_time')}"
    if not each.HasField("expire_time"):
        return "valid"
    is_over = each.expire_time.ToDatetime(UTC) <= datetime.now(UTC)
    return f"{'expired' if is_over else 'valid until'} {_day_of(each, 'expire_time')}"


def _day_of(each: Invite | AccessToken, field: str) -> str:
    at: datetime = getattr(each, field).ToDatetime(UTC)
    return f"{at:%Y-%m-%d %H:%M}" if each.HasField(field) else ""


def _revoke_invite(ask: Call, args: Namespace) -> None:
    revoked = ask("RevokeInvite", pb.RevokeInviteRequest(name=args.name)).invite
    asking.show_answer(revoked, f"{revoked.name} is revoked", args)


def _create_owner(ask: Call, args: Namespace) -> None:
    if args.file:
        _create_owners(ask, args)
        return
    made = ask("CreateOwner", pb.CreateOwnerRequest(owner_id=args.id))
    text = f"{made.owner.name}; keep its token, it is not shown again:\n{made.token}"
    text += "\nThe names of your bots will be public, and stay when you are erased."
    asking.show_answer(made.owner, text, args, token=made.token)


def _create_owners(ask: Call, args: Namespace) -> None:
    """Create the owners of a file. Raises `UsageError`, and `SeatwiseError`.

    All are created with one invite, which stands in the file of tokens until the last owner is there. So a run that was killed goes on
    with it, and knows which owners are its own.
    """
    ids = _read_ids(Path(args.file))
    path = Path(args.tokens or Path(args.file).with_suffix(".tokens.csv"))
    rows = _read_rows(path)
    name = next((each for each in rows if each.startswith("invites/")), "")
    invite = rows.pop(name, "")
    if missing := [each for each in ids if each not in rows]:
        if not invite:
            made = ask("CreateInvite", pb.CreateInviteRequest(uses=1000))
            name, invite = made.invite.name, made.token
            _append_row(path, name, invite)
        as_owner = Namespace(**{**vars(args), "token": invite})
        with asking.open_service(as_owner, OwnerServiceStub) as ask_as_owner:
            for each in missing:
                request = pb.CreateOwnerRequest(owner_id=each, request_id=f"file/{each}")
                owner = ask_as_owner("CreateOwner", request)
                rows[each] = owner.token or _replace_lost_token(each, args)
                _append_row(path, each, rows[each])
    if invite:
        ask("RevokeInvite", pb.RevokeInviteRequest(name=name))
        write_private(path, "".join(f"{each},{token}\n" for each, token in rows.items()))
    text = f"{len(missing)} owners are created; the tokens of all {len(rows)} are in {path}"
    told = {"created": len(missing), "owners": len(rows), "file": str(path)}
    print(json.dumps(told) if args.json else text)


def _read_ids(path: Path) -> list[str]:
    lines = read_text_file(path).splitlines()
    ids = [row[0].strip() for row in csv.reader(lines) if row and row[0].strip()]
    ids = ids[1:] if ids[:1] == ["id"] else ids
    for number, each in enumerate(ids):
        if not re.fullmatch("[a-z][a-z0-9-]{0,39}", each):
            why = f"{path}: {each!r:.60} is no id: 1 to 40 of a-z, 0-9 and -, beginning with a letter"
            raise UsageError(why)
        if each in ids[:number]:
            raise UsageError(f"{path}: {each} is there twice")
    return ids


def _read_rows(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    if path.stat().st_mode & 0o077:
        raise UsageError(f"{path}: others may read it; chmod 600 {path}")
    text, end, half = read_text_file(path).rpartition("\n")
    lines = text.splitlines()
    if any(f",{TOKEN_PREFIX}" not in line for line in lines) or not (
        lines or half.startswith("invites/"[: len(half)])
    ):
        why = f"{path}: it holds something else than tokens of owners; name another file with --tokens"
        raise UsageError(why)
    write_private(path, text + end)
    return {each: token for each, _, token in (line.strip().partition(",") for line in lines)}


def _append_row(path: Path, each: str, token: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{each},{token}\n")
        file.flush()
        os.fsync(file.fileno())


def _replace_lost_token(owner_id: str, args: Namespace) -> str:
    """Return another token for an owner that a killed run created, in place of the one that nobody has seen."""
    with asking.open_service(args, AccessServiceStub) as ask:
        request = access_service_pb2.ListAccessTokensRequest(page_size=1000)
        found = asking.read_entries(ask, "ListAccessTokens", request, "access_tokens")
        name = next(each.name for each in found if each.holder == f"owners/{owner_id}")
        token: str = ask("RotateAccessToken", access_service_pb2.RotateAccessTokenRequest(name=name)).token
        return token


def _show_owner(ask: Call, args: Namespace) -> None:
    _print_owner(ask("GetOwner", pb.GetOwnerRequest(name=args.name)).owner, args)


def _set_quotas(ask: Call, args: Namespace) -> None:
    names = [option.replace("-", "_") for option in QUOTAS]
    request = pb.SetOwnerQuotasRequest(
        name=args.name, **{f"most_{name}": getattr(args, name) for name in names}
    )
    _print_owner(ask("SetOwnerQuotas", request).owner, args)


def _print_owner(owner: Owner, args: Namespace) -> None:
    if args.json:
        print(json.dumps(asking.to_dict(owner)))
        return
    text = f"{owner.name} has {len(owner.bots)} of {owner.most_bots} bots; each plays at most {owner.most_matches} matches at once"
    print(text)
    told = {
        "most_requests": f"It makes at most {owner.most_requests} changes in a minute.",
        "most_matches_at_once": f"All its bots play {owner.matches} of at most {owner.most_matches_at_once} matches at once.",
        "most_matches_a_day": f"They have begun {owner.day_matches} of at most {owner.most_matches_a_day} matches in 24 hours.",
        "most_watches": f"It and its bots watch at most {owner.most_watches} matches at once.",
    }
    for quota, text in told.items():
        if owner.HasField(quota):
            print(text)
    for bot in owner.bots:
        print(f"  {bot}")


TOKENS_HELP = "create, list, rotate and revoke access tokens, for people and for bots"
SCOPES = [name.removeprefix("SCOPE_").lower() for name in AccessToken.Scope.keys()[1:]]
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


def configure_tokens(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="token_verb", required=True, metavar="VERB")
    text = "create an access token and print it; it is shown only once"
    create = _add_token_verb(verbs, "create", text, _create_token)
    create.add_argument("holder", help="name of the person, or the bot: bots/NAME/versions/1")
    text = "a scope that it opens; may be repeated"
    create.add_argument("--scope", action="append", required=True, choices=SCOPES, help=text)
    _add_lifetime(create, "it does not expire")
    _add_token_verb(verbs, "list", "list the access tokens by their names", _list_tokens)
    rotate = _add_token_verb(verbs, "rotate", "replace an access token, and print the new one", _rotate_token)
    revoke = _add_token_verb(verbs, "revoke", "revoke an access token", _revoke_token)
    for verb in (rotate, revoke):
        verb.add_argument(
            "name", type=arguments.name_parser("tokens"), help="name of the token: tokens/k2v5..., or k2v5..."
        )


_add_token_verb = partial(asking.add_service_verb, AccessServiceStub)


def _add_lifetime(parser: ArgumentParser, default: str) -> None:
    text = f"time until it expires: 12h, 90d or 4w (default: {default})"
    parser.add_argument("--expires", type=parse_lifetime, default=0, metavar="TIME", help=text)


def parse_lifetime(text: str) -> int:
    """Return the seconds of a time such as 12h, 90d or 4w."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text)
    if not found:
        raise ArgumentTypeError(f"{text!r} is not a time such as 12h, 90d or 4w")
    return int(found[1]) * _SECONDS[found[2]]


def _create_token(ask: Call, args: Namespace) -> None:
    request = access_service_pb2.CreateAccessTokenRequest(
        holder=args.holder, scopes=[f"SCOPE_{scope.upper()}" for scope in args.scope], lifetime_s=args.expires
    )
    _print_issued(ask("CreateAccessToken", request), args)


def _rotate_token(ask: Call, args: Namespace) -> None:
    _print_issued(ask("RotateAccessToken", access_service_pb2.RotateAccessTokenRequest(name=args.name)), args)


def _revoke_token(ask: Call, args: Namespace) -> None:
    request = access_service_pb2.RevokeAccessTokenRequest(name=args.name)
    revoked = ask("RevokeAccessToken", request).access_token
    asking.show_answer(revoked, f"{revoked.name} of {revoked.holder} is revoked", args)


def _list_tokens(ask: Call, args: Namespace) -> None:
    request = access_service_pb2.ListAccessTokensRequest(page_size=1000)
    found = list(asking.read_entries(ask, "ListAccessTokens", request, "access_tokens"))
    columns = ("token", "holder", "scopes", "created", "state", "last used")
    asking.show_entries("Access tokens", columns, _token_row, found, args)


def _token_row(each: AccessToken) -> list[str]:
    scopes = " ".join(AccessToken.Scope.Name(scope).removeprefix("SCOPE_").lower() for scope in each.scopes)
    used = _day_of(each, "last_use_time") or "never"
    return [each.name, each.holder, scopes, _day_of(each, "create_time"), _state_of(each), used]


def _print_issued(issued: Any, args: Namespace) -> None:
    token = issued.access_token
    text = f"{token.name} of {token.holder}; keep it, it is not shown again:\n{issued.token}"
    asking.show_answer(token, text, args, token=issued.token)
