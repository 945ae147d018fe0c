"""The settings of `seatwise serve`: one declaration of each, from which come the command line, the environment and the file.

A value is taken from the command line, else from the environment, else from the file of `--config`, else it is the default.
"""

from __future__ import annotations

import os
import re
import tomllib
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import is_zipfile

from seatwise.cli import arguments
from seatwise.cli.arguments import InputFile
from seatwise.defaults import HTTP_PORT, PORT, WS_PORT, data_folder
from seatwise.errors import UsageError
from seatwise.output import read_text_file
from seatwise_server.game_choice import GameChoice
from seatwise_server.memory import LEAST_MEMORY

ROLES: Final = ("lobby", "referee", "gateway")
MOST_GUESTS: Final = 200
"""A request for a seat looks at all places, so there are not more of them."""
KEEP_RECORDS_S: Final = 30 * 24 * 3600
DAY_S: Final = 24 * 3600
CONFIG_VARIABLE: Final = "SEATWISE_CONFIG"


class SpectatorDelay(StrEnum):
    """When spectators are shown a position."""

    LIVE = "live"
    """At once; hands when the rules open them."""
    ROUND = "round"
    """When the cards of its round are out of play."""
    OVER = "over"
    """When the match is over."""


class Option(NamedTuple):
    """How an operator gives a setting."""

    name: str
    """As on the command line, without the dashes, and in a file: `http-port`."""
    help: str
    """The text of help and pages, with the unit."""
    parse: Callable[[str], Any]
    metavar: str | None = None
    choices: Sequence[str] = ()
    default_text: str = ""
    """The default, where its value does not say it."""
    group: str = ""
    variable: str = ""
    """The variable of the environment: SEATWISE_ and the name, unless another program has a variable of that name."""
    page: str = ""
    """Where docs/ says more."""
    is_secret: bool = False
    """Whether it may hold a password. Then it comes from a file or from standard input only, and is never shown."""


def _option(
    name: str, default: Any, text: str, parse: Callable[[str], Any] = str, metavar: str | None = None, **rest: Any
) -> Any:  # fmt: skip
    variable = rest.pop("variable", _variable_of(name))
    option = Option(name, text, parse, metavar, variable=variable, **rest)
    given = {"default_factory": default} if callable(default) else {"default": default}
    return field(**given, metadata={"option": option})


def _variable_of(name: str) -> str:
    return "SEATWISE_" + name.upper().replace("-", "_")


def _parse_cors_origin(text: str) -> str:
    """Return an origin, or * for all."""
    return text if text == "*" else arguments.parse_origin(text)


def _parse_network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not an IP address or network: {error}") from None
    return text


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


def _parse_deck(text: str) -> str:
    return InputFile(os.path.abspath(text))


def _parse_wheel(text: str) -> str:
    path = InputFile(os.path.abspath(text))
    if not re.fullmatch(r"seatwise(-[A-Za-z0-9._+!]+){4,5}\.whl", os.path.basename(path)):
        raise ArgumentTypeError(f"{text!r} is no wheel of Seatwise, such as seatwise-1.0.0-py3-none-any.whl")
    if not is_zipfile(path):
        raise ArgumentTypeError(f"{text!r} cannot be read, or is no wheel")
    return path


_HTTP: Final = "HTTP: the pages and the REST API of a gateway; it has the same certificate"
_WS: Final = "bots by WebSocket"
_TLS: Final = "encryption"
_PORT, _COUNT, _COUNT_OR_ZERO = arguments.parse_port, arguments.parse_count, arguments.parse_count_or_zero


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings that each process of a server has as the operator gives them."""

    host: str = _option("host", "127.0.0.1", "address to listen on", arguments.parse_host)
    port: int = _option("port", PORT, "port to listen on; 0 takes a free port", _PORT)
    address: str = _option(
        "address", "", "where bots reach this referee; with --referees, only the host counts", arguments.parse_address, "HOST:PORT",
        default_text="the address it listens on", variable="SEATWISE_REFEREE_ADDRESS",
    )  # fmt: skip
    ws_host: str = _option(
        "ws-host", "", "address that it listens on", arguments.parse_host, "HOST", group=_WS, default_text="--host",
    )  # fmt: skip
    ws_address: str = _option(
        "ws-address", "", "where bots reach it, as in wss://play.example.org/referee-1 behind a proxy",
        arguments.parse_ws_address, "URL", group=_WS, default_text="where it listens",
    )  # fmt: skip
    ws_origins: tuple[str, ...] = _option(
        "ws-origin", (), "let pages of this origin connect, as in https://example.org; may be repeated",
        arguments.parse_origin, "ORIGIN", group=_WS, default_text="its own host only",
    )  # fmt: skip
    proxies: tuple[str, ...] = _option(
        "http-proxy", (), "address or network of a proxy before any port; may be repeated. Its X-Forwarded-For says who calls, over HTTP "
        "and over gRPC. Its WebSockets are not limited as those of one address. Bots behind it have no allowance in races that count",
        _parse_network, "ADDRESS", group=_HTTP, page="protocol.md#the-allowance",
    )  # fmt: skip
    data: Path = _option(
        "data", data_folder, "folder of the embedded Redis and the admin token", Path, "FOLDER",
        default_text="~/.local/share/seatwise",
    )  # fmt: skip
    redis_url: str = _option(
        "redis", "", "your own Redis: redis://, rediss://, unix://, redis+sentinel://HOST,HOST/SERVICE or "
        "redis+cluster://HOST,HOST; a URL with a password goes into the file of --redis-file or --config",
        str, "URL", default_text="an embedded Redis", is_secret=True, page="redis.md",
    )  # fmt: skip
    allow_loss: bool = _option(
        "allow-loss", False, "start although this Redis may lose acknowledged moves; matches and records are then marked loss-allowed",
    )  # fmt: skip
    wait_replicas: int = _option(
        "wait-replicas", 0, "confirm a move only after N replicas of Redis have it", _COUNT_OR_ZERO, "N", page="redis.md",
    )  # fmt: skip
    gone_for_good_s: float = _option(
        "gone-for-good", 60.0, "stop when Redis has not answered for this long", arguments.parse_span, "SECONDS",
    )  # fmt: skip
    most_tables: int = _option("tables", 5000, "maximum number of matches at once", _COUNT, "N")
    uvloop: bool = _option(
        "uvloop", False, "run on uvloop in place of Python's own event loop (extra: uvloop)", page="operations.md#sizing",
    )  # fmt: skip
    reads_per_second: float = _option(
        "reads-per-second", 100.0, "reads of each token, and of each address without a token, in a second; five rows of a list count "
        "as one; 0 for no limit", _parse_rate, "N", page="operations.md#the-budget-of-reads",
    )  # fmt: skip
    # Six callers that list 50 matches each in a closed loop get 9 lists a second of it, and matches are not slowed down.
    anonymous_reads_per_second: float = _option(
        "anonymous-reads-per-second", 300.0, "reads of all callers without a token together; 0 for no limit", _parse_rate, "N"
    )  # fmt: skip
    registration: str = _option(
        "registration", "closed",
        "closed: only the operator registers bots; invite: so do owners that were invited (seatwise ctl invite create)",
        choices=("closed", "invite"), page="operations.md#owners",
    )  # fmt: skip
    oidc_issuer: str = _option(
        "oidc-issuer", "", "with --registration invite: people that this OpenID Connect issuer knows become owners without an invite",
        str, "URL", page="operations.md#owners",
    )  # fmt: skip
    oidc_audience: str = _option(
        "oidc-audience", "", "client id of this server at the issuer: ID tokens for others are refused", str, "ID",
    )  # fmt: skip
    owner_requests_per_minute: float = _option(
        "owner-requests-per-minute", 30.0,
        "changes that each owner, and each bot by its own token, may make in a minute; 0 for no limit", _parse_rate, "N",
    )  # fmt: skip
    owner_matches_at_once: int = _option(
        "owner-matches-at-once", 0, "matches that all bots of an owner together may play at once; 0 for no limit", _COUNT_OR_ZERO, "N",
        page="operations.md#owners",
    )  # fmt: skip
    owner_matches_a_day: int = _option(
        "owner-matches-a-day", 0, "matches that all bots of an owner together may begin in 24 hours; 0 for no limit",
        _COUNT_OR_ZERO, "N",
    )  # fmt: skip
    owner_watches: int = _option(
        "owner-watches", 50, "matches that an owner and its bots may watch at once with their tokens; 0 for no limit",
        _COUNT_OR_ZERO, "N",
    )  # fmt: skip
    decks: tuple[str, ...] = _option(
        "deck", (), "file with your own deck, for a game with decks; may be repeated. A match uses the deck that its option `deck` "
        "names", _parse_deck, "FILE", page="#cards-of-your-own",
    )  # fmt: skip
    default_deck: str = _option(
        "default-deck", "", "deck of matches whose option `deck` is not set: easy, club, master, or the name of a deck of your own",
        str, "DECK", default_text="club",
    )  # fmt: skip
    guests: int = _option(
        "guests", 0, "let N people without an account play at once, each from a page, against house bots; every process of a server "
        "needs the same", _parse_guests, "N", page="pages.md#guests",
    )  # fmt: skip
    house_names: tuple[str, ...] = _option(
        "house-bot", (), "house bot that fills empty seats, such as house-search-2000; repeat it for as many as a match can lack",
        str, "NAME", default_text="house-counting, house-greedy, house-random and those of races; none of games from outside",
        page="training.md#levels-to-play-against",
    )  # fmt: skip
    spectators: SpectatorDelay = _option(
        "spectators", SpectatorDelay.LIVE, "show spectators a position at once (live), when the cards of its round are out of play "
        "(round), or when the match is over (over); every gateway needs the same", SpectatorDelay, choices=list(SpectatorDelay),
    )  # fmt: skip
    health_port: int | None = _option(
        "health-port", None, "answer health checks on this port too, always in plain text, for probes that do not support TLS",
        _PORT, "PORT",
    )  # fmt: skip
    metrics_host: str = _option(
        "metrics-host", "127.0.0.1", "address that /metrics listens on", arguments.parse_host, "HOST"
    )
    metrics_port: int | None = _option(
        "metrics-port", None, "serve /metrics for Prometheus on this port; 0 takes a free port", _PORT, "PORT"
    )
    log_level: str = _option(
        "log-level", "info", "lowest severity to log", choices=("debug", "info", "warning", "error")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(ServerSettings):
    """All settings of `seatwise serve`."""

    http_host: str = _option(
        "http-host", "", "address that HTTP listens on", arguments.parse_host, "HOST", group=_HTTP, default_text="that of --host",
    )  # fmt: skip
    http_port: int | None = _option(
        "http-port", None, "port of HTTP; 0 takes a free port", _PORT, "PORT", group=_HTTP,
        default_text=f"{HTTP_PORT} if it is free, or a free port with --port 0", page="pages.md",
    )  # fmt: skip
    no_http: bool = _option("no-http", False, "serve no HTTP", group=_HTTP)
    http_cors: tuple[str, ...] = _option(
        "http-cors", (), "let pages of this origin call from a browser, e.g. https://example.org; * for all; may be repeated",
        _parse_cors_origin, "ORIGIN", group=_HTTP,
    )  # fmt: skip
    embed_origins: tuple[str, ...] = _option(
        "embed-origin", (), "let pages of this origin show the pages under /embed/ in a frame, as in https://example.org; may be repeated",
        arguments.parse_origin, "ORIGIN", group=_HTTP, page="pages.md#pages-in-a-frame",
    )  # fmt: skip
    wheel: str = _option(
        "wheel", "", "offer this wheel of Seatwise under /dist/. The pages link it, with its hash, to callers by TLS and on this machine",
        _parse_wheel, "FILE", group=_HTTP, page="#a-class-in-one-room",
    )  # fmt: skip
    install: str = _option(
        "install", "", "sentence of the pages that says where visitors get Seatwise, if not from --wheel", str, "TEXT", group=_HTTP,
        default_text="Install it in a clone of the repository: pip install .",
    )  # fmt: skip
    http_lobby: str = _option(
        "http-lobby", "", "the lobby for bots that come over HTTP; SEATWISE_TLS_CA or SEATWISE_TLS_PIN names the CA or key to trust "
        "there", arguments.parse_address, "HOST:PORT", group=_HTTP,
        default_text="this process, if it is a lobby",
    )  # fmt: skip
    ws_port: int | None = _option(
        "ws-port", None, "port for WebSockets; 0 takes a free port", _PORT, "PORT", group=_WS,
        default_text=f"{WS_PORT} if it is free, or a free port with --port 0",
    )  # fmt: skip
    no_ws: bool = _option("no-ws", False, "take no WebSockets", group=_WS)
    tls: str = _option(
        "tls", "", "auto makes a self-signed certificate, for a LAN, and prints the pin of its key", choices=("auto",),
        group=_TLS, page="#encryption",
    )  # fmt: skip
    # SEATWISE_TLS_CERT and SEATWISE_TLS_KEY are those of a client, such as the house bots of this server.
    tls_cert: Path | None = _option(
        "tls-cert", None, "certificate as PEM, with those of its CAs; it is loaded again when the file changes", Path, "FILE",
        group=_TLS, variable="SEATWISE_SERVER_TLS_CERT",
    )  # fmt: skip
    tls_key: Path | None = _option(
        "tls-key", None, "private key of the certificate, as PEM", Path, "FILE", group=_TLS, variable="SEATWISE_SERVER_TLS_KEY"
    )  # fmt: skip
    tls_client_ca: Path | None = _option(
        "tls-client-ca", None, "CAs of the clients, as PEM: a client without a certificate of one of them is refused", Path, "FILE",
        group=_TLS,
    )  # fmt: skip
    redis_file: str = _option(
        "redis-file", "", "file with the URL of --redis, for a URL with a password; - for standard input", str, "FILE",
    )  # fmt: skip
    keep_records: float = _option(
        "keep-records", KEEP_RECORDS_S / DAY_S,
        "how long records are kept; a day in which no server runs, or the clock of Redis leaps, may not count",
        arguments.parse_span, "DAYS",
    )  # fmt: skip
    roles: tuple[str, ...] = _option(
        "role", (), "role of this process; may be repeated", choices=("all", *ROLES), default_text="all"
    )
    referees: int | str | None = _option(
        "referees", None, "run N referees, each a process, beside one for lobby, gateway and HTTP; auto: one for each core but one",
        _parse_referees, "N", page="operations.md#ways-to-run-it",
    )  # fmt: skip
    referee_port: int = _option(
        "referee-port", 0, "with --referees N: the referees listen on PORT to PORT+N-1, and for WebSockets on the N ports after these",
        _PORT, "PORT", default_text="free ports",
    )  # fmt: skip
    games: GameChoice | None = _option(
        "games", None, "games that the referee of this process plays: own, hosted (from outside packages) or all", GameChoice,
        choices=list(GameChoice), default_text="own where games from outside are installed, which a process that this one starts plays; "
        "else all",
    )  # fmt: skip
    max_memory: int | None = _option(
        "max-memory", None, "stop in order above this memory, such as 900M, with exit code 75, to be started again; 0 for no limit",
        _parse_memory, "SIZE", default_text="60% of the memory of the machine or container", page="operations.md#sizing",
    )  # fmt: skip
    no_house_bots: bool = _option(
        "no-house-bots", False, "leave empty seats empty, instead of filling them with house bots"
    )


class Setting(NamedTuple):
    """A setting as it holds."""

    option: Option
    value: Any
    source: str
    """Where it comes from: "--port", "SEATWISE_PORT", the name of the file, or "default"."""

    @property
    def shown(self) -> str:
        """The value for people, without a password."""
        if not self.value and self.source == "default" and self.option.default_text:
            return f"({self.option.default_text})"
        if isinstance(self.value, tuple):
            return ", ".join(map(str, self.value))
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        text = "" if self.value is None else str(self.value)
        return hide_passwords(text) if self.option.is_secret else text


def _declared() -> list[tuple[Field[Any], Option]]:
    found = [(each, each.metadata["option"]) for each in fields(ServeOptions)]
    return sorted(found, key=lambda pair: ["", _HTTP, _WS, _TLS].index(pair[1].group))


def _is_list(declared: Field[Any]) -> bool:
    return isinstance(declared.default, tuple)


def _is_switch(declared: Field[Any]) -> bool:
    return isinstance(declared.default, bool)


def describe_default(declared: Field[Any], option: Option) -> str:
    """Return the default as help and pages say it; empty for none."""
    if option.default_text or _is_switch(declared) or _is_list(declared):
        return option.default_text
    value = declared.default
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def add_options(parser: ArgumentParser) -> None:
    """Add all options. The parsed ones have an entry in the namespace only where they are given."""
    parser.add_argument(
        "--config", type=InputFile, metavar="FILE",
        help=f"file with settings in TOML, such as http-port = 8080; the command line and the environment come first (${CONFIG_VARIABLE})",
    )  # fmt: skip
    groups = {"": parser}
    for declared, option in _declared():
        if option.group not in groups:
            title, _, description = option.group.partition(": ")
            groups[option.group] = parser.add_argument_group(title, description or None)  # type: ignore[assignment]
        default = describe_default(declared, option)
        text = (option.help + (f" (default: {default})" if default else "")).replace("%", "%%")
        how: dict[str, Any] = {"action": "store_true"} if _is_switch(declared) else {
            "type": option.parse, "metavar": option.metavar, "choices": option.choices or None,
            "action": "append" if _is_list(declared) else "store",
        }  # fmt: skip
        groups[option.group].add_argument(
            f"--{option.name}", dest=declared.name, default=SUPPRESS, help=text, **how
        )


def read_settings(args: Namespace, environment: Mapping[str, str] = os.environ) -> dict[str, Setting]:
    """Return what holds, by the names of fields of `ServeOptions`. Raises `UsageError`, which names the source of a wrong value."""
    path = getattr(args, "config", None) or environment.get(CONFIG_VARIABLE, "")
    told = _read_file(path) if path else {}
    return {
        each.name: _find_setting(each, option, args, environment, told, path) for each, option in _declared()
    }


def _find_setting(
    declared: Field[Any], option: Option, args: Namespace, environment: Mapping[str, str], told: Mapping[str, Any], path: str
) -> Setting:  # fmt: skip
    if hasattr(args, declared.name):
        value = getattr(args, declared.name)
        found = Setting(option, tuple(value) if isinstance(value, list) else value, f"--{option.name}")
    elif option.variable in environment and environment[option.variable] != "":
        text = environment[option.variable]
        given: Any = [part.strip() for part in text.split(",")] if _is_list(declared) else text
        found = Setting(option, _parse_value(declared, option, given, option.variable), option.variable)
    elif option.name in told:
        value = _parse_value(declared, option, told[option.name], f"{path}: {option.name}")
        return Setting(option, value, path)
    else:
        default = declared.default_factory() if declared.default_factory is not MISSING else declared.default
        return Setting(option, default, "default")
    if option.is_secret and hide_passwords(found.value) != found.value:
        raise UsageError(
            f"{found.source}: a password is for files only, because others may see command lines and environments. Write the URL into a "
            f"file, and name that: --{option.name}-file FILE, or --{option.name}-file - for standard input"
        )
    return found


_SWITCH_WORDS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def _parse_value(declared: Field[Any], option: Option, given: Any, where: str) -> Any:
    """Return the value of an option that is given as text, or as a value of TOML."""
    if _is_switch(declared):
        word = str(given).lower() if isinstance(given, bool | str) else ""
        if word not in _SWITCH_WORDS:
            raise UsageError(f"{where}: {given!r} is neither true nor false")
        return _SWITCH_WORDS[word]
    if _is_list(declared):
        if not isinstance(given, list):
            raise UsageError(f"{where}: {given!r} is no list, such as [{given!r}]")
        return tuple(_parse_text(option, each, where) for each in given)
    return _parse_text(option, given, where)


def _parse_text(option: Option, given: Any, where: str) -> Any:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise UsageError(f"{where}: {given!r} is no value for it")
    if option.choices and str(given) not in option.choices:
        raise UsageError(f"{where}: {given!r} is none of {', '.join(option.choices)}")
    try:
        return option.parse(str(given))
    except (ArgumentTypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}") from None


def _read_file(path: str) -> dict[str, Any]:
    """Return the settings in a file. A name may have - or _ in it. Raises `UsageError`."""
    text = read_text_file(path)
    try:
        told = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: this is not TOML: {error}") from None
    found = {name.replace("_", "-"): value for name, value in told.items()}
    names = [option.name for _, option in _declared()]
    for name in found.keys() - set(names):
        from difflib import get_close_matches

        near = get_close_matches(name, names, 1)
        raise UsageError(f"{path}: there is no setting {name}" + (f"; is it {near[0]}?" if near else ""))
    return found


def options_of(settings: Mapping[str, Setting]) -> ServeOptions:
    """Return the values alone, with the URL of Redis from its file. Raises `UsageError` if that cannot be read."""
    options = {name: setting.value for name, setting in settings.items()}
    if path := options["redis_file"]:
        if options["redis_url"]:
            why = f"{settings['redis_url'].source} and {settings['redis_file'].source} both name a Redis"
            raise UsageError(why)
        options["redis_url"] = read_text_file(path).strip()
        if not options["redis_url"]:
            raise UsageError(f"{path}: it holds no URL of Redis")
    return ServeOptions(**options)


def hide_passwords(url: str) -> str:
    """Return a URL with *** in place of each password in it."""
    hidden = re.sub(r"(://[^/@?]*:)[^/?]+@", r"\1***@", url)
    return re.sub(r"(password=)[^&]+", r"\1***", hidden)


def write_table() -> str:
    """Return the settings as a table in Markdown, for docs/operator-guide.md."""
    first = f"file with settings in TOML (environment: {CONFIG_VARIABLE})"
    rows = ["| option | meaning |", "|---|---|", f"| `--config FILE` | {first} |"]
    for declared, option in _declared():
        default = describe_default(declared, option)
        value = option.metavar or "\\|".join(option.choices)
        value = f" {value}" if value and not _is_switch(declared) else ""
        told = option.help + (f"; default: {default}" if default else "")
        told += f" ([more]({option.page}))" if option.page else ""
        if option.variable != _variable_of(option.name):
            told += f" (environment: {option.variable})"
        rows.append(f"| `--{option.name}{value}` | {told} |")
    return "\n".join(rows)
