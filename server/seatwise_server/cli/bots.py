"""`seatwise bots`: registers, lists and manages bots from a terminal."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from seatwise.async_client import BOT_KINDS
from seatwise.cli.arguments import Command, security_of
from seatwise.cli.tokens import token_at
from seatwise.client import Client
from seatwise.defaults import TOKEN_VARIABLE
from seatwise.v1 import bot_pb2
from seatwise_server.cli import asking, table
from seatwise_server.cli.asking import follow_pages, full_bot_name
from seatwise_server.cli.table import describe_kind
from seatwise_server.resource_names import unify_owner

BOT_COLUMNS = ("bot", "owner", "registered", "attends", "token last used", "kind", "state")
BOT_PAGE = 1000


def configure(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    text = "register a bot, and print its token (scope register)"
    register = asking.add_verb(verbs, "register", text, act=_register_bot)
    register.add_argument("bot", metavar="NAME", help="lower-case letters, digits and dashes, as in my-bot")
    text = "version of the bot; each is a player of its own (default: %(default)s)"
    register.add_argument("--version", default="1", help=text)
    register.add_argument("--owner", default="", help="person or team responsible for it; it can be erased")
    listing = asking.add_verb(verbs, "list", "list all bots", act=_list_bots)
    listing.add_argument("--attending", action="store_true", help="only bots that attend now")
    listing.add_argument("--owner", default="", help="only bots of this owner")
    text = "list the bots that attend now"
    asking.add_verb(verbs, "attending", text, act=_list_bots, attending=True, owner="")
    for name, text, act in (
        ("show", "show one bot", _show_bot),
        ("rotate", "give a bot a new token; the old one ends (scope register)", _rotate_token),
        (
            "revoke",
            "revoke the token of a bot; its streams end within a second (scope register)",
            _revoke_token,
        ),
    ):
        asking.add_bot(asking.add_verb(verbs, name, text, act=act))
    text = "say how a bot finds its moves; lists and ladders show it"
    kind = asking.add_verb(verbs, "kind", text, act=_set_kind)
    asking.add_bot(kind)
    kind.add_argument("kind", choices=(*BOT_KINDS, "none"), help="the kind; none to say nothing any more")


def run(args: Namespace) -> int:
    """Run the verb and return the exit code. Raises `SeatwiseError`."""
    token = token_at(args.address, args.token)
    with Client(args.address, token=token, **security_of(args)) as client:
        args.act(client, args)
    return 0


def _register_bot(client: Client, args: Namespace) -> None:
    _print_token(*client.register_bot(args.bot, args.version, owner=args.owner), args)


def _rotate_token(client: Client, args: Namespace) -> None:
    name = full_bot_name(args.bot)
    _print_token(name, client.rotate_token(name), args)


def _print_token(name: str, token: str, args: Namespace) -> None:
    if args.json:
        print(json.dumps({"name": name, "token": token}))
        return
    print(f"{name}\n{token}")
    print(f"The token is shown only once: give it to the bot with --token, or in {TOKEN_VARIABLE}")


def _revoke_token(client: Client, args: Namespace) -> None:
    bot = client.revoke_token(full_bot_name(args.bot))
    text = f"{bot.name} is revoked; `seatwise bots rotate {bot.name}` gives it a new token"
    asking.show_answer(bot, text, args)


def _set_kind(client: Client, args: Namespace) -> None:
    bot = client.set_bot_kind(full_bot_name(args.bot), "" if args.kind == "none" else args.kind)
    kind = describe_kind(bot.kind) or "nothing is said of its kind"
    asking.show_answer(bot, f"{bot.name}: {kind}", args)


def _show_bot(client: Client, args: Namespace) -> None:
    bot = client.get_bot(full_bot_name(args.bot))
    lines = (f"{column:16} {text or '-'}" for column, text in zip(BOT_COLUMNS, _bot_row(bot), strict=True))
    asking.show_answer(bot, "\n".join(lines), args)


def _list_bots(client: Client, args: Namespace) -> None:
    pages = follow_pages(lambda token: client.list_bots(BOT_PAGE, token))
    found = [bot for page in pages for bot in page.bots if _is_wanted(bot, args)]
    none = "No bot attends now." if args.attending else "There is no such bot."
    asking.show_entries("Bots", BOT_COLUMNS, _bot_row, found, args, none)


def _is_wanted(bot: bot_pb2.Bot, args: Namespace) -> bool:
    is_owners = not args.owner or unify_owner(bot.owner) == unify_owner(args.owner)
    return (bot.attending or not args.attending) and is_owners


def _bot_row(bot: bot_pb2.Bot) -> tuple[str, ...]:
    return (
        bot.name,
        bot.owner,
        table.format_time(bot.create_time),
        "yes" if bot.attending else "no",
        table.format_time(bot.token_last_use_time),
        describe_kind(bot.kind),
        _describe_state(bot),
    )


def _describe_state(bot: bot_pb2.Bot) -> str:
    """Return why the bot does not play everywhere; empty if it may."""
    # A list does not tell where a bot is off: `seatwise bots show` does.
    states = ["revoked"] if bot.revoked else []
    if bot.HasField("off_queues"):
        states.append(f"off all queues until {table.format_time(bot.off_queues.back_time)}")
    states += [f"off {each.ladder}" for each in bot.taken_off]
    return ", ".join(states)


COMMAND = Command("bots", "register, list and manage bots", configure, run, shows_answers=True)
