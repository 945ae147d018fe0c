"""`seatwise serve`: one server process, or several under one command. `seatwise config show`: the settings that it would have."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from shlex import quote
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from seatwise.cli.arguments import Command, program_name
from seatwise.defaults import DATA_VARIABLE, HTTP_PORT, WS_PORT, find_data_folder
from seatwise.link.endpoint import is_local_address
from seatwise_server.background_tasks import has_uvloop, run_in_loop
from seatwise_server.cli import table
from seatwise_server.config import Config, HttpSettings, address_from_here
from seatwise_server.game_choice import GameChoice, has_hosted_games
from seatwise_server.memory import LEAST_MEMORY, default_limit
from seatwise_server.settings import (
    DAY_S,
    ROLES,
    ServeOptions,
    ServerSettings,
    add_options,
    options_of,
    read_settings,
    write_table,
)
from seatwise_server.tls.tls_files import TlsError, TlsFiles, self_signed_files

if TYPE_CHECKING:
    from seatwise_server.hosted_guard import HostedGuard
    from seatwise_server.supervisor import Facts, ProcessPlan

HOSTED_MEMORY_SHARE = 0.5
"""The default limit of the process of games from outside, as a share of that of any other process."""
PLAIN_TEXT = (
    "This server speaks plain text. Bots on other machines refuse to send their tokens in clear: turn TLS on with "
    "--tls-cert and --tls-key, or with --tls auto."
)


def options_from(args: Namespace) -> ServeOptions:
    """Return all options, from the arguments, the environment and the file. Raises `UsageError`."""
    return options_of(read_settings(args))


def make_config(options: ServeOptions) -> Config:
    """Return the configuration for all options. Raises `TlsError` for options of TLS that do not fit together, and `ValueError`."""
    from seatwise_server.house import choose_house

    choose_house(options.house_names)  # it raises for a choice that cannot be
    usual_ws_port = WS_PORT if options.port else 0
    ws_port = usual_ws_port if options.ws_port is None else options.ws_port
    usual_games = GameChoice.OWN if _needs_guard(options) else GameChoice.ALL
    roles = _roles_of(options)
    return Config(
        **{each.name: getattr(options, each.name) for each in fields(ServerSettings)},
        roles=roles,
        ws_port=None if options.no_ws else ws_port,
        is_ws_port_default=options.ws_port is None,
        tls=_tls_files(options),
        is_tls_auto=options.tls == "auto",
        keep_records_s=max(1, int(options.keep_records * DAY_S)),
        max_memory=default_limit() if options.max_memory is None else options.max_memory,
        house_bots=not options.no_house_bots,
        http=_http_settings(options),
        has_read_process={"gateway", "referee"} <= roles,
        games=usual_games if options.games is None else options.games,
    )


def _needs_guard(options: ServeOptions) -> bool:
    """Return whether this process starts another one for games from outside."""
    if options.games is None:
        return has_hosted_games() and "referee" in _roles_of(options)
    return options.games is GameChoice.HOSTED


def _http_settings(options: ServeOptions) -> HttpSettings | None:
    if options.no_http or "gateway" not in _roles_of(options):
        return None
    usual = HTTP_PORT if options.port else 0
    return HttpSettings(
        host=options.http_host or options.host,
        port=usual if options.http_port is None else options.http_port,
        is_port_default=options.http_port is None,
        cors_origins=options.http_cors,
        embed_origins=options.embed_origins,
        lobby=options.http_lobby,
        trusted_proxies=options.proxies,
        guests=options.guests,
        wheel=options.wheel,
        install=options.install,
        certificate=str(self_signed_files(options.data).cert) if options.tls == "auto" else "",
    )


def find_refusals(options: ServeOptions) -> Iterator[str]:
    """Yield why the server cannot be run with these options."""
    if options.referees:
        if options.roles:
            yield "--referees starts all roles: leave --role out, or start each process with its own command"
        if options.ws_address:
            yield "--ws-address names one referee: leave it out, or start each referee with its own command"
        if options.address and not options.referee_port:
            yield "with --referees, --address names the host of all referees: name their ports too, with --referee-port"
    if _roles_of(options) != frozenset(ROLES):
        if not options.redis_url:
            yield "a process without all roles needs --redis URL: no other process can reach an embedded Redis"
    elif options.guests:
        for option in ("no_house_bots", "no_http", "no_ws"):
            if getattr(options, option):
                yield f"--guests play from a page, by WebSocket, against house bots: leave --{option.replace('_', '-')} out"
    if options.uvloop and not has_uvloop():
        yield "--uvloop needs the extra of that name: install '.[server,uvloop]' in the clone, or leave --uvloop out"
    url = urlsplit(options.oidc_issuer)
    if bool(options.oidc_issuer) != bool(options.oidc_audience):
        yield "an issuer needs a client id: name both --oidc-issuer and --oidc-audience"
    elif options.oidc_issuer and options.registration != "invite":
        yield "--oidc-issuer lets people register bots: add --registration invite"
    elif (
        options.oidc_issuer
        and url.scheme != "https"
        and not (url.scheme == "http" and is_local_address(url.netloc))
    ):
        yield f"--oidc-issuer {options.oidc_issuer}: name its URL, which begins with https://"


def _roles_of(options: ServeOptions) -> frozenset[str]:
    named = set(options.roles or ["all"])
    return frozenset(ROLES) if "all" in named else frozenset(named)


def _tls_files(options: ServeOptions) -> TlsFiles | None:
    """Return the files that the arguments name, or those that `--tls auto` makes. Raises `TlsError`."""
    if bool(options.tls_cert) != bool(options.tls_key):
        raise TlsError("a certificate needs its key: name both --tls-cert and --tls-key")
    if options.tls and options.tls_cert:
        raise TlsError("--tls auto makes a certificate of its own: leave --tls-cert and --tls-key out")
    if options.tls:
        return self_signed_files(options.data, options.tls_client_ca)
    if options.tls_cert and options.tls_key:
        return TlsFiles(options.tls_cert, options.tls_key, options.tls_client_ca)
    if options.tls_client_ca:
        why = "--tls-client-ca needs a certificate of the server: --tls-cert and --tls-key, or --tls auto"
        raise TlsError(why)
    return None


def run(args: Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code."""
    from seatwise_server.serving import explain_failure

    options = options_from(args)
    if why := next(find_refusals(options), ""):
        print(f"seatwise serve: {why}", file=sys.stderr)
        return 2
    return explain_failure(lambda: _serve(options))


def _serve(options: ServeOptions) -> None:
    from seatwise_server import log
    from seatwise_server.app import embedded_redis
    from seatwise_server.serving import prepare_process, serve_until_stopped
    from seatwise_server.supervisor import serve_processes

    config = make_config(options)
    prepare_process(config)
    if log.is_in_background(sys.stderr):
        print(f"The server runs in the background and logs to {config.data / log.FILE}", flush=True)
    embedded = embedded_redis(config)
    try:
        on_redis = replace(config, redis_url=embedded.url) if embedded else config
        guard = _new_guard(options, on_redis) if _needs_guard(options) else None
        if guard and options.games is GameChoice.HOSTED:
            work = _guard_until_stopped(guard)
        elif options.referees:
            guarding = guard.run_guard if guard else None
            work = serve_processes(
                plan_referees(options, on_redis), lambda facts: _show(config, facts), embedded, guarding
            )
        else:
            work = serve_until_stopped(config, lambda facts: _show(config, facts), embedded, guard)
        run_in_loop(work, with_uvloop=options.uvloop)
    finally:
        if embedded:
            embedded.stop()


def plan_referees(options: ServeOptions, config: Config) -> list[ProcessPlan]:
    """Return the processes of `--referees`. `auto` stands for one for each core but one, which the front and Redis share."""
    from seatwise_server.supervisor import count_cores, plan_processes

    count = max(1, count_cores() - 1) if options.referees == "auto" else int(options.referees or 1)
    return plan_processes(config, count, options.referee_port, options.max_memory)


def _new_guard(options: ServeOptions, config: Config) -> HostedGuard:
    from seatwise_server.hosted_guard import HostedGuard, hosted_config

    part = max(LEAST_MEMORY, int(HOSTED_MEMORY_SHARE * default_limit()))
    most = part if options.max_memory is None else options.max_memory
    return HostedGuard(hosted_config(config, is_own=options.games is GameChoice.HOSTED, max_memory=most))


async def _guard_until_stopped(guard: HostedGuard) -> None:
    """Guard the referee for games from outside, and do nothing else."""
    guarding = asyncio.create_task(guard.run_guard())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, guarding.cancel)
    with suppress(asyncio.CancelledError):
        await guarding


def _show(config: Config, facts: Facts) -> None:
    """Print the addresses for a person, on standard output. Programs read them from the log."""
    address, pin = facts["address"], facts["pin"]
    is_gateway, roles = "gateway" in config.roles, ", ".join(sorted(config.roles))
    about = f"Admin token: {config.admin_token_file}" if is_gateway else f"Roles: {roles}"
    lines = [f"Seatwise listens on {address}. {about}"]
    if {"lobby", "gateway"} <= config.roles:
        where = "" if config.data == find_data_folder() else f"{DATA_VARIABLE}={quote(str(config.data))} "
        options = _connection_options(address, pin)
        lines.append(f"Connect a bot: {where}{program_name()} bot greedy --address {options}")
    if pin:
        lines.append(f"Pin of its key: {pin}")
    elif not is_local_address(address):
        lines.append(PLAIN_TEXT)
    if pages := facts["http_address"]:
        lines += [f"Pages: {pages}/", f"REST API: {pages}/v1/docs"]
    if facts["ws_address"]:
        lines.append(f"Bots by WebSocket: {facts['ws_address']}")
    print("\n".join(lines), flush=True)


def _connection_options(address: str, pin: str) -> str:
    """Return the options of `seatwise bot` that reach this server from this machine."""
    here = address_from_here(address)
    if is_local_address(here):
        return here
    return f"{here} --tls-pin {pin}" if pin else f"{here} --insecure"


# seatwise config show


def configure_show(parser: ArgumentParser) -> None:
    show = parser.add_subparsers(dest="verb", required=True).add_parser(
        "show", help="show the settings that `seatwise serve` would have here with these options, and where each is from"
    )  # fmt: skip
    show.add_argument("--json", action="store_true", help="print JSON, a line for each setting")
    text = "print all options as the table of the operators' guide"
    show.add_argument("--markdown", action="store_true", help=text)
    add_options(show)


def show_settings(args: Namespace) -> int:
    """Show the settings; return the exit code."""
    if args.markdown:
        print(write_table())
        return 0
    settings = read_settings(args)
    options_of(settings)
    if args.json:
        for each in settings.values():
            value = each.shown if each.option.is_secret else each.value
            told = {"setting": each.option.name, "value": value, "source": each.source}
            print(json.dumps(told, default=str))
        return 0
    rows = [[each.option.name, each.source, each.shown] for each in settings.values()]
    table.show_table("Settings of seatwise serve", ["setting", "from", "value"], rows)
    return 0


COMMAND = Command("serve", "run a server", add_options, run)
CONFIG_COMMAND = Command(
    "config", "show the settings of a server, and where they are from", configure_show, show_settings
)
