"""`seatwise serve`: one server process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from seatwise.cli import arguments, decks
from seatwise.cli.command import Command, program_name
from seatwise.defaults import DATA_VARIABLE, HTTP_PORT, PORT, WS_PORT, data_folder, find_data_folder
from seatwise.kits import REFUSED_GAMES
from seatwise.kits.hosted.installed_games import forbid_game_code, load_installed_games
from seatwise.link.endpoint import is_local_address
from seatwise_server.background_tasks import cancel_until_ended
from seatwise_server.config import (
    ANONYMOUS_READS_PER_SECOND,
    KEEP_RECORDS_S,
    OWNER_REQUESTS_PER_MINUTE,
    OWNER_WATCHES,
    PROCESS_NAME_VARIABLE,
    READS_PER_SECOND,
    ROLES,
    Config,
    HttpSettings,
    SpectatorDelay,
    address_from_here,
)
from seatwise_server.event_loop import has_uvloop, run_in_loop
from seatwise_server.game_choice import GameChoice, has_hosted_games
from seatwise_server.memory import LEAST_MEMORY, START_AGAIN, MemoryLimitPassed, default_limit
from seatwise_server.play.step_marker import STEP_FILE_VARIABLE, STEP_MARKER
from seatwise_server.tls.self_signed import self_signed_files
from seatwise_server.tls.tls_files import TlsError, TlsFiles

if TYPE_CHECKING:
    from seatwise_server.embedded import EmbeddedRedis
    from seatwise_server.hosted_guard import HostedGuard

DAY_S = 24 * 3600
HOSTED_MEMORY_SHARE = 0.5
"""The default limit of the process of games from outside, as a share of that of any other process."""
STEP_MEMORY_SHARE = 0.8
"""The share of that limit which the process may have during a step of a game from outside; the rest is for our own code."""
MOST_GUESTS = 200
"""A request for a seat looks at all places, so there are not more of them."""
PLAIN_TEXT = (
    "This server speaks plain text. Bots on other machines refuse to send their tokens in clear: turn TLS on with "
    "--tls-cert and --tls-key, or with --tls auto."
)
REDIS_VARIABLE = "SEATWISE_REDIS"


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    _add_listening(parser)
    _add_http(parser)
    _add_websockets(parser)
    _add_encryption(parser)
    _add_keeping(parser)
    _add_processes(parser)
    _add_callers(parser)
    _add_matches(parser)
    _add_telling(parser)


def _add_listening(parser: ArgumentParser) -> None:
    """Add the arguments for the addresses: where the server listens, and where bots find it."""
    parser.add_argument(
        "--host",
        type=arguments.parse_host,
        default="127.0.0.1",
        help="address to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--port",
        type=arguments.parse_port,
        default=PORT,
        help="port to listen on; 0 takes a free port (default: %(default)s)",
    )
    parser.add_argument(
        "--address", type=arguments.parse_address, metavar="HOST:PORT",
        help="where bots reach this referee (default: the address it listens on); with --referees, only the host counts",
    )  # fmt: skip


def _add_http(parser: ArgumentParser) -> None:
    """Add the arguments for the REST API and its callers."""
    group = parser.add_argument_group(
        "HTTP", "the pages and the REST API of a gateway; it has the same certificate"
    )
    group.add_argument(
        "--http-host",
        type=arguments.parse_host,
        metavar="HOST",
        help="address that HTTP listens on (default: that of --host)",
    )
    group.add_argument(
        "--http-port", type=arguments.parse_port, metavar="PORT",
        help=f"port of HTTP; 0 takes a free port (default: {HTTP_PORT} if it is free, or a free port with --port 0)",
    )  # fmt: skip
    group.add_argument("--no-http", action="store_true", help="serve no HTTP")
    group.add_argument(
        "--http-cors", action="append", default=[], type=_parse_cors_origin, metavar="ORIGIN",
        help="let pages of this origin call from a browser, e.g. https://example.org; * for all; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--http-lobby", type=arguments.parse_address, metavar="HOST:PORT",
        help="the lobby for bots that come over HTTP (default: this process, if it is a lobby)",
    )  # fmt: skip
    group.add_argument(
        "--http-proxy", action="append", default=[], type=_parse_network, metavar="ADDRESS",
        help="address or network of a proxy before any port: its X-Forwarded-For says who calls, and its WebSockets are not "
        "limited as those of one address; may be repeated",
    )  # fmt: skip


def _parse_cors_origin(text: str) -> str:
    """Return an origin, or * for all."""
    return text if text == "*" else arguments.parse_origin(text)


def _parse_network(text: str) -> str:
    """Return an IP address, or a network such as 10.0.0.0/8."""
    try:
        ip_network(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not an IP address or network: {error}") from None
    return text


def _add_websockets(parser: ArgumentParser) -> None:
    """Add the arguments for bots that use WebSocket."""
    group = parser.add_argument_group("bots by WebSocket")
    group.add_argument(
        "--ws-port", type=arguments.parse_port, metavar="PORT",
        help=f"port for WebSockets; 0 takes a free port (default: {WS_PORT} if it is free, or a free port with --port 0)",
    )  # fmt: skip
    group.add_argument(
        "--ws-host",
        type=arguments.parse_host,
        metavar="HOST",
        help="address that it listens on (default: --host)",
    )
    group.add_argument(
        "--ws-address", type=arguments.parse_ws_address, metavar="URL",
        help="where bots reach it, as in wss://play.example.org/referee-1 behind a proxy (default: where it listens)",
    )  # fmt: skip
    group.add_argument(
        "--ws-origin", type=arguments.parse_origin, action="append", default=[], dest="ws_origins", metavar="ORIGIN",
        help="let pages of this origin connect, as in https://example.org; may be repeated (default: its own host only)",
    )  # fmt: skip
    group.add_argument("--no-ws", action="store_true", help="take no WebSockets")


def _add_encryption(parser: ArgumentParser) -> None:
    """Add the arguments for TLS and its keys."""
    group = parser.add_argument_group("encryption")
    group.add_argument(
        "--tls", choices=["auto"],
        help="auto makes a self-signed certificate, for a LAN, and prints the pin of its key",
    )  # fmt: skip
    group.add_argument(
        "--tls-cert", type=Path, metavar="FILE",
        help="certificate as PEM, with those of its CAs; it is loaded again when the file changes",
    )  # fmt: skip
    group.add_argument("--tls-key", type=Path, metavar="FILE", help="private key of the certificate, as PEM")
    group.add_argument(
        "--tls-client-ca", type=Path, metavar="FILE",
        help="CAs of the clients, as PEM: a client without a certificate of one of them is refused",
    )  # fmt: skip


def _add_keeping(parser: ArgumentParser) -> None:
    """Add the arguments for the store and the data folder."""
    parser.add_argument(
        "--data", type=Path, default=find_data_folder(), metavar="FOLDER",
        help="folder of the embedded Redis and the admin token (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--redis", default=os.environ.get(REDIS_VARIABLE, ""), metavar="URL",
        help="your own Redis: redis://, rediss://, unix://, redis+sentinel://HOST,HOST/SERVICE or "
        f"redis+cluster://HOST,HOST (default: ${REDIS_VARIABLE}, which keeps the URL out of ps, or an embedded Redis)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-loss", action="store_true",
        help="start although this Redis may lose acknowledged moves; matches and records are then marked loss-allowed",
    )  # fmt: skip
    parser.add_argument(
        "--wait-replicas", type=arguments.parse_count_or_zero, default=0, metavar="N",
        help="confirm a move only after N replicas of Redis have it (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--keep-records", type=arguments.parse_span, default=KEEP_RECORDS_S / DAY_S, metavar="DAYS",
        help="how long records are kept (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--gone-for-good", type=arguments.parse_span, default=60.0, metavar="SECONDS",
        help="stop when Redis has not answered for this long (default: %(default)g)",
    )  # fmt: skip


def _add_processes(parser: ArgumentParser) -> None:
    """Add the arguments for roles, referees and what they may take of the machine."""
    parser.add_argument(
        "--role", choices=["all", *ROLES], action="append", dest="roles",
        help="role of this process; may be repeated (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--referees", type=_parse_referees, metavar="N",
        help="run N referees, each a process, beside one for lobby, gateway and HTTP; auto: one for each core but one",
    )  # fmt: skip
    parser.add_argument(
        "--referee-port", type=arguments.parse_port, default=0, metavar="PORT",
        help="with --referees N: the referees listen on PORT to PORT+N-1, and for WebSockets on the N ports after these "
        "(default: free ports)",
    )  # fmt: skip
    parser.add_argument(
        "--games", choices=[each.value for each in GameChoice],
        help="games that the referee of this process plays: own, hosted (from outside packages) or all (default: own where "
        "games from outside are installed, which a process that this one starts plays; else all)",
    )  # fmt: skip
    parser.add_argument(
        "--tables",
        type=arguments.parse_count,
        default=5000,
        metavar="N",
        help="maximum number of matches at once (default: %(default)s)",
    )
    parser.add_argument(
        "--max-memory", type=_parse_memory, metavar="SIZE",
        help="stop in order above this memory, such as 900M, with exit code 75, to be started again; 0 for no limit "
        "(default: 60%% of the memory of the machine or container)",
    )  # fmt: skip
    parser.add_argument(
        "--uvloop",
        action="store_true",
        help="run on uvloop in place of Python's own event loop (extra: uvloop)",
    )


def _add_callers(parser: ArgumentParser) -> None:
    """Add the arguments for registration, and for the limits of callers and owners."""
    parser.add_argument(
        "--reads-per-second", type=_parse_rate, default=READS_PER_SECOND, metavar="N",
        help="reads of each token, and of each address without a token, in a second; five rows of a list count as one; "
        "0 for no limit (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--anonymous-reads-per-second", type=_parse_rate, default=ANONYMOUS_READS_PER_SECOND, metavar="N",
        help="reads of all callers without a token together; 0 for no limit (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--registration", choices=["closed", "invite"], default="closed",
        help="closed: only the operator registers bots; invite: so do owners that were invited (seatwise ctl invite create) "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--oidc-issuer", default="", metavar="URL",
        help="with --registration invite: people that this OpenID Connect issuer knows become owners without an invite",
    )  # fmt: skip
    parser.add_argument(
        "--oidc-audience", default="", metavar="ID",
        help="client id of this server at the issuer: ID tokens for others are refused",
    )  # fmt: skip
    parser.add_argument(
        "--owner-requests-per-minute", type=_parse_rate, default=OWNER_REQUESTS_PER_MINUTE, metavar="N",
        help="changes that each owner, and each bot by its own token, may make in a minute; 0 for no limit (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--owner-matches-at-once", type=arguments.parse_count_or_zero, default=0, metavar="N",
        help="matches that all bots of an owner together may play at once; 0 for no limit (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--owner-matches-a-day", type=arguments.parse_count_or_zero, default=0, metavar="N",
        help="matches that all bots of an owner together may begin in 24 hours; 0 for no limit (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--owner-watches", type=arguments.parse_count_or_zero, default=OWNER_WATCHES, metavar="N",
        help="matches that an owner and its bots may watch at once with their tokens; 0 for no limit (default: %(default)s)",
    )  # fmt: skip


def _add_matches(parser: ArgumentParser) -> None:
    """Add the arguments for decks, house bots, guests and spectators."""
    decks.add_to(parser)
    decks.add_default_to(parser)
    parser.add_argument(
        "--no-house-bots",
        action="store_true",
        help="leave empty seats empty, instead of filling them with house bots",
    )
    parser.add_argument(
        "--guests", type=_parse_guests, default=0, metavar="N",
        help="let N people without an account play at once, each from a page, against house bots; every process of a server needs "
        "the same (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--house-bot", action="append", default=[], metavar="NAME",
        help="house bot that fills empty seats, such as house-search-2000; repeat it for as many as a match can lack "
        "(default: house-counting, house-greedy and house-random, and those of other games)",
    )  # fmt: skip
    parser.add_argument(
        "--spectators", type=SpectatorDelay, choices=list(SpectatorDelay), default=SpectatorDelay.LIVE,
        help="show spectators a position at once (live), when the cards of its round are out of play (round), or when the "
        "match is over (over); every gateway needs the same (default: %(default)s)",
    )  # fmt: skip


def _add_telling(parser: ArgumentParser) -> None:
    """Add the arguments for health checks, metrics and the log."""
    parser.add_argument(
        "--health-port", type=arguments.parse_port, metavar="PORT",
        help="answer health checks on this port too, always in plain text, for probes that do not support TLS",
    )  # fmt: skip
    parser.add_argument(
        "--metrics-host",
        type=arguments.parse_host,
        default="127.0.0.1",
        metavar="HOST",
        help="address that /metrics listens on (default: %(default)s)",
    )
    parser.add_argument(
        "--metrics-port",
        type=arguments.parse_port,
        metavar="PORT",
        help="serve /metrics for Prometheus on this port; 0 takes a free port",
    )
    parser.add_argument(
        "--log-level", choices=["debug", "info", "warning", "error"], default="info",
        help="lowest severity to log (default: %(default)s)",
    )  # fmt: skip


def _parse_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no rate: name a number such as 100, or 0 for no limit")
    return rate


def _parse_guests(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > MOST_GUESTS:
        raise ArgumentTypeError(f"{text!r} is no number of guests: name one from 0 to {MOST_GUESTS}")
    return int(text)


def _parse_referees(text: str) -> int | str:
    return text if text == "auto" else arguments.parse_count(text)


def _parse_memory(text: str) -> int:
    size = arguments.parse_size(text)
    if 0 < size < LEAST_MEMORY:
        raise ArgumentTypeError(f"{text!r} is too little: the server needs {LEAST_MEMORY // 2**20}M")
    return size


def _house_names(args: Namespace) -> tuple[str, ...]:
    """Return the chosen house bots. Raises `ValueError` for a choice that cannot be."""
    from seatwise_server.house import choose_house

    choose_house(args.house_bot)
    return tuple(args.house_bot)


def config_of(args: Namespace) -> Config:
    """Return the configuration for the arguments. Raises `TlsError` for options of TLS that do not fit together."""
    return Config(
        host=args.host,
        port=args.port,
        roles=_parse_roles(args),
        address=args.address or "",
        ws_port=_ws_port(args),
        is_ws_port_default=args.ws_port is None,
        ws_host=args.ws_host or "",
        ws_address=args.ws_address or "",
        ws_origins=tuple(args.ws_origins),
        tls=_tls_files(args),
        is_tls_auto=args.tls == "auto",
        data=args.data,
        redis_url=args.redis,
        allow_loss=args.allow_loss,
        wait_replicas=args.wait_replicas,
        keep_records_s=max(1, int(args.keep_records * DAY_S)),
        most_tables=args.tables,
        max_memory=default_limit() if args.max_memory is None else args.max_memory,
        house_bots=not args.no_house_bots,
        guests=args.guests,
        house_names=_house_names(args),
        health_port=args.health_port,
        http=_http_settings(args),
        proxies=tuple(args.http_proxy),
        reads_per_second=args.reads_per_second,
        anonymous_reads_per_second=args.anonymous_reads_per_second,
        registration=args.registration,
        oidc_issuer=args.oidc_issuer,
        oidc_audience=args.oidc_audience,
        owner_requests_per_minute=args.owner_requests_per_minute,
        owner_matches_at_once=args.owner_matches_at_once,
        owner_matches_a_day=args.owner_matches_a_day,
        owner_watches=args.owner_watches,
        metrics_host=args.metrics_host,
        metrics_port=args.metrics_port,
        gone_for_good_s=args.gone_for_good,
        has_read_process={"gateway", "referee"} <= _parse_roles(args),
        decks=tuple(os.path.abspath(deck) for deck in args.deck),
        default_deck=args.default_deck,
        games=_game_choice(args),
        spectators=args.spectators,
        log_level=args.log_level,
        process_name=os.environ.get(PROCESS_NAME_VARIABLE, ""),
    )


def _game_choice(args: Namespace) -> GameChoice:
    """Return the games of this process: where games from outside are installed, they go to a process of their own."""
    if args.games is None:
        return GameChoice.OWN if _needs_guard(args) else GameChoice.ALL
    return GameChoice(args.games)


def _needs_guard(args: Namespace) -> bool:
    """Return whether this process starts another one for games from outside."""
    if STEP_FILE_VARIABLE in os.environ:  # it is that process
        return False
    if args.games is None:
        return has_hosted_games() and "referee" in _parse_roles(args)
    return bool(args.games == GameChoice.HOSTED)


def _ws_port(args: Namespace) -> int | None:
    if args.no_ws:
        return None
    if args.ws_port is not None:
        return int(args.ws_port)
    return WS_PORT if args.port else 0


def _http_settings(args: Namespace) -> HttpSettings | None:
    if args.no_http or "gateway" not in _parse_roles(args):
        return None
    usual = HTTP_PORT if args.port else 0
    return HttpSettings(
        host=args.http_host or args.host,
        port=usual if args.http_port is None else args.http_port,
        is_port_default=args.http_port is None,
        cors_origins=tuple(args.http_cors),
        lobby=args.http_lobby or "",
        trusted_proxies=tuple(args.http_proxy),
        guests=args.guests,
    )


def _refuse_issuer(args: Namespace) -> str:
    """Return why this server cannot ask that OIDC issuer; empty if it can, or if there is none."""
    if not args.oidc_issuer and not args.oidc_audience:
        return ""
    if not (args.oidc_issuer and args.oidc_audience):
        return "an issuer needs a client id: name both --oidc-issuer and --oidc-audience"
    if args.registration != "invite":
        return "--oidc-issuer lets people register bots: add --registration invite"
    url = urlsplit(args.oidc_issuer)
    if url.scheme != "https" and not (url.scheme == "http" and is_local_address(url.netloc)):
        return f"--oidc-issuer {args.oidc_issuer}: name its URL, which begins with https://"
    return ""


def _refuse_guests(args: Namespace) -> str:
    """Return why this server cannot admit guests; empty if it can, or if none are to come."""
    if args.guests and _parse_roles(args) == frozenset(ROLES):
        for option in ("no_house_bots", "no_http", "no_ws"):
            if getattr(args, option):
                return f"--guests play from a page, by WebSocket, against house bots: leave --{option.replace('_', '-')} out"
    return ""


def _parse_roles(args: Namespace) -> frozenset[str]:
    named = set(args.roles or ["all"])
    return frozenset(ROLES) if "all" in named else frozenset(named)


def _tls_files(args: Namespace) -> TlsFiles | None:
    """Return the files that the arguments name, or those that `--tls auto` makes. Raises `TlsError`."""
    if bool(args.tls_cert) != bool(args.tls_key):
        raise TlsError("a certificate needs its key: name both --tls-cert and --tls-key")
    if args.tls and args.tls_cert:
        raise TlsError("--tls auto makes a certificate of its own: leave --tls-cert and --tls-key out")
    if args.tls:
        return self_signed_files(args.data, args.tls_client_ca)
    if args.tls_cert:
        return TlsFiles(args.tls_cert, args.tls_key, args.tls_client_ca)
    if args.tls_client_ca:
        raise TlsError(
            "--tls-client-ca needs a certificate of the server: --tls-cert and --tls-key, or --tls auto"
        )
    return None


def run(args: Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code."""
    from seatwise_server.app import PortBusy, StoreLost, embedded_redis
    from seatwise_server.cli.serve_processes import refuse_options, serve_processes
    from seatwise_server.embedded import EmbeddedRedisError
    from seatwise_server.store.errors import StoreError
    from seatwise_server.supervisor import StartFailed

    why = _refuse_guests(args) or _refuse_roles(args) or _refuse_issuer(args) or _refuse_uvloop(args)
    why = why or (refuse_options(args) if args.referees else "")
    if why:
        print(f"seatwise serve: {why}", file=sys.stderr)
        return 2
    decks.use_deck_files(args.deck, args.default_deck)
    args.data = args.data or data_folder()
    _open_log(args)
    embedded = None
    try:
        config = config_of(args)
        _prepare_game_code(config)
        embedded = embedded_redis(config)
        guard = _new_guard(args, config, embedded) if _needs_guard(args) else None
        if guard and args.games == GameChoice.HOSTED:
            run_in_loop(_guard_until_stopped(guard), with_uvloop=args.uvloop)
        elif args.referees:
            args.games = GameChoice.OWN.value if guard else args.games
            run_in_loop(serve_processes(args, config, embedded, guard), with_uvloop=args.uvloop)
        else:
            run_in_loop(_serve_until_stopped(config, embedded, guard), with_uvloop=args.uvloop)
    except MemoryLimitPassed as error:
        print(f"seatwise serve: {error}; start it again, its matches wait", file=sys.stderr)
        return START_AGAIN
    except (EmbeddedRedisError, StartFailed, StoreError, StoreLost, PortBusy, TlsError, ValueError) as error:
        print(f"seatwise serve: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"seatwise serve: {_describe_error(error)}", file=sys.stderr)
        return 1
    finally:
        if embedded:
            embedded.stop()
    return 0


def _refuse_roles(args: Namespace) -> str:
    """Return why these roles cannot be served; empty if they can."""
    if _parse_roles(args) == frozenset(ROLES) or args.redis:
        return ""
    return "a process without all roles needs --redis URL: no other process can reach an embedded Redis"


def _refuse_uvloop(args: Namespace) -> str:
    """Return why this process cannot run on uvloop; empty if it can, or need not."""
    if args.uvloop and not has_uvloop():
        return "--uvloop needs the extra of that name: install '.[server,uvloop]' in the clone, or leave --uvloop out"
    return ""


def _open_log(args: Namespace) -> None:
    """Write the log to standard error, or to a file if the process runs in the background of a terminal."""
    from structlog.contextvars import bind_contextvars

    from seatwise_server import log

    if name := os.environ.get(PROCESS_NAME_VARIABLE):
        bind_contextvars(process=name)
    log.configure(args.log_level, background_file=args.data / log.FILE)
    if log.is_in_background(sys.stderr):
        print(f"The server runs in the background and logs to {args.data / log.FILE}", flush=True)


def _prepare_game_code(config: Config) -> None:
    """Import the packages of games from outside where their matches are played, and let no other process do it."""
    import structlog

    for refused in REFUSED_GAMES:
        structlog.get_logger().warning("game_not_hosted", entry=refused.entry, why=refused.why)
    is_player = "referee" in config.roles and config.games is not GameChoice.OWN
    is_guarded = STEP_FILE_VARIABLE in os.environ
    if not is_player or (config.games is GameChoice.HOSTED and not is_guarded):
        forbid_game_code()
        return
    STEP_MARKER.open_file(os.environ.get(STEP_FILE_VARIABLE, ""))
    STEP_MARKER.limit_memory(int(STEP_MEMORY_SHARE * config.max_memory))
    load_installed_games(STEP_MARKER.run_import)


def _describe_error(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return f"{error.filename}: {error.strerror}; choose a writable folder with --data FOLDER"


def _new_guard(args: Namespace, config: Config, embedded: EmbeddedRedis | None) -> HostedGuard:
    from seatwise_server.hosted_guard import HostedGuard

    url = config.redis_url or (embedded.url if embedded else "")
    return HostedGuard(_hosted_arguments(args), {REDIS_VARIABLE: url}, url)


def _hosted_arguments(args: Namespace) -> list[str]:
    """Return the arguments of the referee for games from outside: the same folder and certificate, and free ports."""
    is_own = args.games == GameChoice.HOSTED
    named = {
        "--role": "referee", "--games": "hosted", "--host": args.host, "--data": args.data, "--port": args.port if is_own else 0,
        "--log-level": args.log_level, "--tables": args.tables, "--keep-records": args.keep_records,
        "--tls": args.tls, "--tls-cert": args.tls_cert, "--tls-key": args.tls_key, "--tls-client-ca": args.tls_client_ca,
        "--wait-replicas": args.wait_replicas, "--max-memory": _hosted_memory(args), "--address": args.address if is_own else None,
        "--ws-port": None if args.no_ws else (args.ws_port if is_own else 0),
    }  # fmt: skip
    passed = [
        part for option, value in named.items() if value not in (None, "") for part in (option, str(value))
    ]
    switches = {"--allow-loss": args.allow_loss, "--no-ws": args.no_ws, "--uvloop": args.uvloop}
    return [*passed, *(option for option, is_on in switches.items() if is_on)]


def _hosted_memory(args: Namespace) -> int:
    """Return the limit of the process of games from outside, in bytes. Without a name for it, it is a part of the default."""
    if args.max_memory is not None:
        return int(args.max_memory)
    return max(LEAST_MEMORY, int(HOSTED_MEMORY_SHARE * default_limit()))


async def _guard_until_stopped(guard: HostedGuard) -> None:
    """Guard the referee for games from outside, and do nothing else."""
    guarding = asyncio.create_task(guard.run_guard())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, guarding.cancel)
    with suppress(asyncio.CancelledError):
        await guarding


async def _serve_until_stopped(
    config: Config, embedded: EmbeddedRedis | None, guard: HostedGuard | None = None
) -> None:
    from seatwise_server.app import running

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with running(config, embedded) as server:
        _say_where(config, server.address, server.pin)
        if server.http_address:
            print(f"Pages: {server.http_address}/", flush=True)
            print(f"REST API: {server.http_address}/v1/docs", flush=True)
        if server.ws_address:
            print(f"Bots by WebSocket: {server.ws_address}", flush=True)
        guarding = asyncio.create_task(guard.run_guard()) if guard else None
        told = asyncio.create_task(stop.wait())
        either: list[asyncio.Future[Any]] = [told, server.stopped]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if guarding:
            await cancel_until_ended([guarding])
        if server.stopped.done():
            await server.stopped


def _say_where(config: Config, address: str, pin: str) -> None:
    """Print the address for a person, on standard output. Programs read it from the log."""
    where = "" if config.data == find_data_folder() else f"{DATA_VARIABLE}={quote(str(config.data))} "
    if "gateway" in config.roles:
        print(f"Seatwise listens on {address}. Admin token: {config.admin_token_file}", flush=True)
    else:
        print(f"Seatwise listens on {address}. Roles: {', '.join(sorted(config.roles))}", flush=True)
    if {"lobby", "gateway"} <= config.roles:
        print(
            f"Connect a bot: {where}{program_name()} bot greedy --address {_connection_options(address, pin)}",
            flush=True,
        )
    if pin:
        print(f"Pin of its key: {pin}", flush=True)
    elif not is_local_address(address):
        print(PLAIN_TEXT, flush=True)


def _connection_options(address: str, pin: str) -> str:
    """Return the options of `seatwise bot` that reach this server from this machine."""
    here = address_from_here(address)
    if is_local_address(here):
        return here
    return f"{here} --tls-pin {pin}" if pin else f"{here} --insecure"


COMMAND = Command("serve", "run a server", configure, run)
