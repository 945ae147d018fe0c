"""Which addresses are reached by TLS, and where a token may go in clear."""

from __future__ import annotations

import pytest

from seatwise.errors import EncryptionError, UsageError
from seatwise.link.endpoint import Endpoint, refuse_clear_text, resolve_endpoint

TLS_LOBBY = resolve_endpoint("https://lobby.example:7433")
LOCAL_LOBBY = resolve_endpoint("localhost:7433")
CLEAR_LOBBY = resolve_endpoint("lobby.example:7433", insecure=True)


@pytest.mark.parametrize(
    ("address", "insecure", "lobby", "target", "is_encrypted"),
    [
        ("https://host:7433", False, None, "host:7433", True),
        ("HTTPS://host:7433/", False, None, "host:7433", True),
        ("https://host", True, None, "host", True),
        ("http://host:7433", True, None, "host:7433", False),
        ("host:7433", False, None, "host:7433", True),
        ("host:7433", True, None, "host:7433", False),
        ("127.0.0.1:7433.", False, None, "127.0.0.1:7433", False),
        ("https://host:7433.", False, None, "host:7433", True),
        (" host:7433 ", False, None, "host:7433", True),
        ("dns:///host:7433", False, None, "dns:///host:7433", True),
        ("[2001:db8::1]:7433", False, None, "[2001:db8::1]:7433", True),
        ("localhost:7433", False, None, "localhost:7433", False),
        ("https://localhost:7433", False, None, "localhost:7433", True),
        ("127.0.0.2:1", False, None, "127.0.0.2:1", False),
        ("[::1]:7433", False, None, "[::1]:7433", False),
        ("unix:/run/seatwise", False, None, "unix:/run/seatwise", False),
        # What the lobby offers: with a scheme it is clear, without one it is as with the lobby, or safer.
        ("referee:1", False, TLS_LOBBY, "referee:1", True),
        ("127.0.0.1:1", False, TLS_LOBBY, "127.0.0.1:1", True),
        ("http://referee:1", True, TLS_LOBBY, "referee:1", False),
        ("https://referee:1", True, CLEAR_LOBBY, "referee:1", True),
        ("referee:1", True, CLEAR_LOBBY, "referee:1", False),
        ("referee:1", False, LOCAL_LOBBY, "referee:1", True),
        ("127.0.0.1:1", False, LOCAL_LOBBY, "127.0.0.1:1", False),
        ("https://127.0.0.1:1", False, LOCAL_LOBBY, "127.0.0.1:1", True),
    ],
)
def test_an_address_means_one_endpoint(
    address: str, insecure: bool, lobby: Endpoint | None, target: str, is_encrypted: bool
) -> None:
    endpoint = resolve_endpoint(address, insecure=insecure, lobby=lobby)
    assert (endpoint.target, endpoint.is_encrypted) == (target, is_encrypted)


@pytest.mark.parametrize("address", ["::1:7433", "https://2001:db8::1:7433", "::1"])
def test_an_address_of_ipv6_without_brackets_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="write it in brackets"):
        resolve_endpoint(address)


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("host:7433", "host", 7433),
        ("https://host", "host", 443),
        ("[::1]:7433", "::1", 7433),
        ("dns:///host:1", "host", 1),
    ],
)
def test_host_and_port(address: str, host: str, port: int) -> None:
    endpoint = resolve_endpoint(address)
    assert (endpoint.host, endpoint.port) == (host, port)


@pytest.mark.parametrize(
    "address",
    [
        "host:7433", "0.0.0.0:7433", "localhost.example:7433", "127.example:1", "127.0.0.1.example:1", "10.0.0.1:1",
        "127.0.0.1:80@evil.example:1", "127.0.0.1:1,evil.example:1", "localhost:1/evil.example", "127.1:1", "vsock:2:1",
        "ipv4:10.0.0.1:1,127.0.0.1:1", "dns://127.0.0.1/evil.example:1", "[::1]evil.example:1", "", "unixs:/x",
    ],
)  # fmt: skip
def test_no_other_machine_gets_a_token_in_clear(address: str) -> None:
    """Whatever it looks like: it is encrypted, or refused where it says that it is not."""
    assert resolve_endpoint(address).is_encrypted
    plain = resolve_endpoint(f"http://{address}")
    with pytest.raises(EncryptionError, match="the token would travel in clear"):
        refuse_clear_text(plain, "secret", insecure=False)
    refuse_clear_text(plain, "secret", insecure=True)
    refuse_clear_text(plain, "", insecure=False)


@pytest.mark.parametrize(
    "address", ["localhost:1", "127.0.0.1:1", "[::1]:1", "unix:/run/x", "http://LOCALHOST:1"]
)
def test_this_machine_may_be_told_in_clear(address: str) -> None:
    refuse_clear_text(resolve_endpoint(address), "secret", insecure=False)


def test_it_is_said_who_can_do_what_about_it() -> None:
    with pytest.raises(EncryptionError, match=r"write https://host:1, or allow it with --insecure"):
        refuse_clear_text(resolve_endpoint("http://host:1"), "secret", insecure=False)
    offered = resolve_endpoint("http://host:1", lobby=TLS_LOBBY)
    with pytest.raises(
        EncryptionError, match=r"the lobby offers a seat at http://host:1, .* its operator can turn TLS on"
    ):
        refuse_clear_text(offered, "secret", insecure=False)
