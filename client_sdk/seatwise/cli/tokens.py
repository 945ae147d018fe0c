"""Finds tokens on the machine of the server: the server's own token, and those of bots that ran on this machine.

They are used only for a server on this machine, because an admin token must never reach another machine.
"""

from __future__ import annotations

import logging
import os
from errno import EACCES
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Unpack

from seatwise.defaults import HTTP_PORT, PORT, TOKEN_VARIABLE, WS_PORT, data_folder, find_data_folder
from seatwise.errors import AlreadyExistsError, BadTokenError, UsageError
from seatwise.link.endpoint import (
    REST_PREFIX,
    is_local_address,
    is_rest_address,
    is_web_socket_address,
    resolve_endpoint,
)

if TYPE_CHECKING:
    from seatwise.client import Client
    from seatwise.link.security import SecurityOptions

log = logging.getLogger("seatwise")

STARTUP_PATIENCE_S = 10.0
"""The longest time in which a server starts, in seconds."""

LOOK_EVERY_S = 0.1


def admin_token() -> str | None:
    """Return the server's own token; `None` if it cannot be read."""
    folder = find_data_folder()
    return _read_token(folder / "admin.token") if folder else None


def token_at(address: str, given: str | None, *, as_admin: bool = True) -> str:
    """Return the given token, or this machine's admin token for a server on it; empty if there is none."""
    here = admin_token() if as_admin and is_local_address(address) else None
    return given or os.environ.get(TOKEN_VARIABLE) or here or ""


def own_bots() -> list[str]:
    """Return the bots whose tokens are on this machine. Format: bots/{bot}/versions/{version}."""
    folder = find_data_folder()
    files = sorted((folder / "bots").glob("*.token")) if folder else []
    parts = [file.name.removesuffix(".token").partition(".") for file in files]
    return [f"bots/{bot}/versions/{version}" for bot, _, version in parts]


def slug_of(name: str) -> str:
    """Return the name of a bot for the name of a class, of at most 40 letters: my-bot for MyBot."""
    from seatwise.local.matches import slug_of_name

    return slug_of_name(name)[:40]


def token_for(address: str, bot: str, version: str, **security: Unpack[SecurityOptions]) -> str:
    """Return the bot's token: the one that it got before, or a new one. Raises `UsageError` if neither can be had."""
    if not is_local_address(address):
        raise UsageError(
            f"no token: pass --token, or set {TOKEN_VARIABLE}. The operator of {address} issues tokens"
        )
    address = _grpc_address(address)
    file = data_folder() / "bots" / f"{bot}.{version}.token"
    token = _read_token(file)
    if token is None or not _is_known(address, token, f"bots/{bot}/versions/{version}", security):
        _make_folder(file.parent)
        token = _register_bot(address, bot, version, security)
        _write_token(file, token)
    return token


def _grpc_address(address: str) -> str:
    """Return the address for gRPC of a server on this machine: over WebSockets and HTTP no bots register themselves."""
    if not (is_web_socket_address(address) or is_rest_address(address)):
        return address
    endpoint = resolve_endpoint(address.strip().removeprefix(REST_PREFIX))
    usual = WS_PORT if endpoint.is_web_socket else HTTP_PORT
    if endpoint.port != usual:
        raise UsageError(
            f"no token: pass --token, or set {TOKEN_VARIABLE}. Bots get one by themselves at {usual}, the usual port, only"
        )
    return f"http{'s' if endpoint.is_encrypted else ''}://localhost:{PORT}"


def _make_folder(folder: Path) -> None:
    """Make the folder before a token is requested, because the server shows a token only once."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
    except OSError as error:
        raise UsageError(
            f"the bot's token cannot be stored in {folder}: {error.strerror}. Pass one with --token, or set {TOKEN_VARIABLE}"
        ) from None


def _is_known(address: str, token: str, name: str, security: SecurityOptions) -> bool:
    """Return whether the server knows the token. It does not if its data was deleted since. A revoked token raises `BadTokenError`."""
    with _open_client(address, token, security) as client:
        try:
            client.get_bot(name)
        except BadTokenError as error:
            if error.reason != "TOKEN_UNKNOWN":
                raise
            return False
        return True


def _register_bot(address: str, bot: str, version: str, security: SecurityOptions) -> str:
    admin = _awaited_admin_token()
    if admin is None:
        raise UsageError(
            f"no token, and {data_folder() / 'admin.token'} cannot be read to get one: is `seatwise serve` running "
            "on this machine, by the same user? Otherwise pass --token, or set SEATWISE_TOKEN"
        )
    with _open_client(address, admin, security) as client:
        try:
            return client.register_bot(bot, version, owner=os.environ.get("USER", "")).token
        except AlreadyExistsError as error:
            raise UsageError(
                f"{error.message}. Its token is not on this machine: pass it with --token, or play under another "
                "--name or --version"
            ) from None


def _awaited_admin_token() -> str | None:
    """Return `admin_token`, and wait for it if the server has just been started and has not written it yet."""
    deadline = monotonic() + STARTUP_PATIENCE_S
    if (token := admin_token()) is None:
        log.info("waiting for `seatwise serve` on this machine")
    while token is None and monotonic() < deadline:
        sleep(LOOK_EVERY_S)
        token = admin_token()
    return token


def _open_client(address: str, token: str, security: SecurityOptions) -> Client:
    from seatwise.client import Client

    return Client(address, token, patience_s=STARTUP_PATIENCE_S, **security)


def _read_token(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except OSError:
        return None


def _write_token(file: Path, token: str) -> None:
    """Write the token so that only its owner can read it, and never half of it."""
    draft = file.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as out:
        out.write(token + "\n")
    draft.replace(file)
