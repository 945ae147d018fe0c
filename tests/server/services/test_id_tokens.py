"""People of an OIDC issuer become owners with an ID token: what such a token must be, and what an attacker may try with one."""

from __future__ import annotations

import asyncio
import base64
import json
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.fake_issuer import AUDIENCE, ISSUER, NOW_S, SUBJECT, FakeIssuer, issuer_server, new_key
from joserfc import jws, jwt
from joserfc.jwk import OctKey

from seatwise_server.cli import owners, serve
from seatwise_server.refusal import Refusal
from seatwise_server.services import id_tokens
from seatwise_server.services.id_tokens import (
    KEYS_KEEP_S,
    KEYS_REFRESH_S,
    LONGEST_ID_TOKEN,
    NEXT_FETCH_S,
    IdTokens,
    IssuerUnavailable,
    fetch_document,
    owner_id_of,
    read_key_set,
)
from seatwise_server.store import Store


async def refusal_of(tokens: IdTokens, token: str) -> Refusal:
    with pytest.raises(Refusal) as refused:
        await tokens.read_subject(token)
    return refused.value


async def test_an_id_token_names_its_subject_and_the_owner_does_not() -> None:
    issuer = FakeIssuer()
    tokens = issuer.id_tokens()
    assert await tokens.read_subject(issuer.token()) == SUBJECT
    owner = await tokens.read_owner(issuer.token())
    assert owner == await tokens.read_owner(issuer.token(iat=NOW_S - 9))
    assert owner.startswith("owners/oidc-")
    assert "joan" not in owner
    assert len(issuer.asked) == 2, "configuration and keys are kept"
    others = {
        owner_id_of(*it) for it in ((ISSUER, "x", b"s"), (ISSUER + "/", "x", b"s"), (ISSUER, "x", b"t"))
    }
    assert len(others) == 3


WRONG_CLAIMS: dict[str, dict[str, Any]] = {
    "another audience": {"aud": "another"},
    "several audiences, asked for by another": {"aud": [AUDIENCE, "another"], "azp": "another"},
    "several audiences, asked for by nobody": {"aud": [AUDIENCE, "another"]},
    "asked for by another": {"azp": "another"},
    "no audience": {"aud": None},
    "an empty audience": {"aud": []},
    "a nested audience": {"aud": [{"seatwise": 1}]},
    "another issuer": {"iss": "https://evil.example.org"},
    "no issuer": {"iss": None},
    "not yet valid": {"nbf": NOW_S + 3600},
    "issued in the future": {"iat": NOW_S + 3600},
    "no end": {"exp": None},
    "an end that is no number": {"exp": "never"},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a subject that is no text": {"sub": 7},
    "a long subject": {"sub": "x" * 256},
}


@pytest.mark.parametrize("claims", WRONG_CLAIMS.values(), ids=WRONG_CLAIMS.keys())
async def test_a_signed_token_with_wrong_claims_is_refused(claims: dict[str, Any]) -> None:
    issuer = FakeIssuer()
    refusal = await refusal_of(issuer.id_tokens(), issuer.token(**claims))
    assert refusal.reason == "TOKEN_UNKNOWN"
    assert refusal.message.startswith("this ID token does not count here: ")


async def test_an_expired_token_is_told_so() -> None:
    issuer = FakeIssuer()
    assert (await refusal_of(issuer.id_tokens(), issuer.token(exp=NOW_S - 120))).reason == "TOKEN_EXPIRED"
    assert await issuer.id_tokens().read_subject(issuer.token(exp=NOW_S - 30)) == SUBJECT, "clocks differ"


def encoded(part: Any) -> str:
    return encoded_bytes(json.dumps(part).encode())


def encoded_bytes(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def forgeries(issuer: FakeIssuer) -> Iterator[tuple[str, str]]:
    """What somebody without the issuer's key may send, and what the refusal says."""
    good, stranger = issuer.token(), new_key("first")
    header, payload, signature = good.split(".")
    for name in ("none", "None", "NONE"):
        yield f"{encoded({'alg': name, 'kid': 'first'})}.{payload}.", "algorithm"
    public = issuer.keys[0]
    for secret in (public.as_pem(private=False), json.dumps(public.as_dict(private=False)).encode()):
        shared = OctKey.import_key(base64.b64encode(secret))
        yield issuer.token({"alg": "HS256", "kid": "first"}, shared), "algorithm"
    yield issuer.token({"kid": "first"}, stranger), "not signed it"
    embedded = {"kid": "first", "jwk": stranger.as_dict(private=False)}
    yield f"{encoded({'alg': 'ES256', **embedded})}.{payload}.{signature}", "not signed it"
    yield (
        f"{header}.{encoded({**json.loads(base64.urlsafe_b64decode(payload + '==')), 'sub': 'root'})}.{signature}",
        "not signed it",
    )
    yield f"{header}.{payload}.", "not signed it"
    yield f"{header}.{payload}.{signature[:-4]}AAAA", "not signed it"
    yield f"{encoded({'kid': 'first'})}.{payload}.{signature}", ""
    yield f"{encoded({'alg': ['ES256'], 'kid': 'first'})}.{payload}.{signature}", ""
    yield f"{encoded({'alg': 'ES256', 'kid': {}})}.{payload}.{signature}", ""
    yield f"{encoded({'alg': 'ES256', 'kid': 'first', 'crit': ['x'], 'x': 1})}.{payload}.{signature}", ""
    yield f"{encoded([])}.{payload}.{signature}", ""
    yield "eyJ" + "[" * 8000 + f".{payload}.x", ""
    yield f"{base64.urlsafe_b64encode(b'[' * 4000).decode()}.{payload}.x", ""
    yield "ey.ey.ey", ""
    yield good + "x" * LONGEST_ID_TOKEN, "more than 8192 characters"
    yield "eyé.\ud800.x", ""


async def test_a_token_signed_by_no_key_of_the_issuer_is_refused() -> None:
    issuer = FakeIssuer()
    tokens = issuer.id_tokens()
    for forged, says in forgeries(issuer):
        refusal = await refusal_of(tokens, forged)
        assert (refusal.reason, says in refusal.message) == ("TOKEN_UNKNOWN", True), (
            forged[:80],
            refusal.message,
        )
    content = jws.serialize_compact(
        {"alg": "ES256", "kid": "first"}, b"[1]", issuer.keys[0], algorithms=["ES256"]
    )
    assert (await refusal_of(tokens, content)).reason == "TOKEN_UNKNOWN"


async def test_new_keys_are_fetched_and_unknown_ones_do_not_flood_the_issuer() -> None:
    issuer = FakeIssuer()
    tokens = issuer.id_tokens()
    assert await tokens.read_subject(issuer.token()) == SUBJECT
    strange = [issuer.token({"kid": f"strange-{number}"}) for number in range(50)]
    refusals = await asyncio.gather(*(refusal_of(tokens, token) for token in strange))
    assert {it.reason for it in refusals} == {"TOKEN_UNKNOWN"}
    assert len(issuer.asked) == 2
    issuer.keys = [new_key("second")]
    rotated = issuer.token()
    assert (await refusal_of(tokens, rotated)).reason == "TOKEN_UNKNOWN"
    issuer.now_s += NEXT_FETCH_S
    await asyncio.gather(*(tokens.read_subject(rotated) for _ in range(20)))
    assert len(issuer.asked) == 4, "one fetch for all who wait"
    first = issuer.token({"kid": "first"})
    assert (await refusal_of(tokens, first)).reason == "TOKEN_UNKNOWN", "the issuer has withdrawn it"


async def test_a_withdrawn_key_ends_and_an_issuer_that_is_away_stops_nobody_for_a_day() -> None:
    issuer = FakeIssuer()
    tokens, old = issuer.id_tokens(), issuer.token()
    await tokens.read_subject(old)
    issuer.is_away = True
    issuer.now_s += KEYS_REFRESH_S + 1
    for _ in range(5):
        assert await tokens.read_subject(old) == SUBJECT
    assert len(issuer.asked) == 3, "it is asked once a minute"
    issuer.now_s += KEYS_KEEP_S
    for _ in range(2):
        assert (await refusal_of(tokens, old)).reason == "ISSUER_UNAVAILABLE"
    assert len(issuer.asked) == 4
    issuer.is_away, issuer.keys = False, [new_key("second")]
    issuer.now_s += NEXT_FETCH_S
    assert (await refusal_of(tokens, old)).reason == "TOKEN_UNKNOWN"
    assert await tokens.read_subject(issuer.token()) == SUBJECT


async def test_a_token_without_a_key_id_needs_an_issuer_with_one_key() -> None:
    issuer = FakeIssuer()
    [key] = issuer.keys
    unnamed = jwt.encode({"alg": "ES256"}, jwt.decode(issuer.token(), key).claims, key)
    assert await issuer.id_tokens().read_subject(unnamed) == SUBJECT
    issuer.keys.append(new_key("second"))
    assert (await refusal_of(issuer.id_tokens(), unnamed)).reason == "TOKEN_UNKNOWN"


def test_only_public_keys_for_signatures_count() -> None:
    good, shared = new_key("good").as_dict(private=False), OctKey.generate_key(256, {"kid": "shared"})
    small = {"kty": "RSA", "kid": "small", "e": "AQAB", "n": encoded_bytes(b"\xc1" * 128)}
    large = {**small, "kid": "large", "n": encoded_bytes(b"\xc1" * 256)}
    entries = [
        good,
        shared.as_dict(),
        small,
        large,
        {**good, "kid": "enc", "use": "enc"},
        {"kty": "EC"},
        {"kty": 7},
        "key",
        None,
    ]
    assert read_key_set({"keys": entries}).keys() == {"good", "large"}
    for wrong in ({"keys": [shared.as_dict()]}, {"keys": []}, {"keys": "x"}, [], None):
        with pytest.raises(IssuerUnavailable):
            read_key_set(wrong)


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://evil.example.org", "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": ISSUER, "jwks_uri": "http://id.example.org/keys"},
        {"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"},
        {"issuer": ISSUER, "jwks_uri": 7},
        [],
    ],
)
async def test_a_configuration_that_is_not_the_issuers_is_not_followed(configuration: Any) -> None:
    issuer = FakeIssuer()
    issuer.document = lambda _: configuration  # type: ignore[method-assign]
    assert (await refusal_of(issuer.id_tokens(), issuer.token())).reason == "ISSUER_UNAVAILABLE"
    assert len(issuer.asked) == 1


# Over HTTP


async def test_a_document_is_fetched_within_a_time_and_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    with issuer_server() as server:
        assert (await fetch_document(f"{server.url}/keys"))["keys"]
        for kind, says in (("huge", "more than"), ("moved", "302")):
            with pytest.raises(IssuerUnavailable, match=says):
                await fetch_document(f"{server.url}/{kind}")
        monkeypatch.setattr(id_tokens, "FETCH_S", 0.15)
        for kind in ("hang", "drip"):
            with pytest.raises(IssuerUnavailable):
                await fetch_document(f"{server.url}/{kind}")
    with pytest.raises(IssuerUnavailable):
        await fetch_document(f"{server.url}/keys")


def test_the_command_reads_the_token_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    owners.configure_owners(parser)
    (tmp_path / "good").write_text(FakeIssuer().token() + "\n")
    args = parser.parse_args(["create", "--id-token", str(tmp_path / "good")])
    assert (args.id, args.token) == ("", (tmp_path / "good").read_text().strip())
    (tmp_path / "bad").write_text("seatwise_access_x")
    for name in ("bad", "absent"):
        with pytest.raises(SystemExit):
            parser.parse_args(["create", "--id-token", str(tmp_path / name)])
        assert name in capsys.readouterr().err


async def test_all_processes_have_one_secret_of_pseudonyms(store: Store) -> None:
    secrets = await asyncio.gather(*(store.owners.read_pseudonym_secret() for _ in range(9)))
    assert len({*secrets}) == 1
    assert len(secrets[0]) == 32


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--oidc-issuer", ISSUER], "name both"),
        (["--oidc-issuer", ISSUER, "--oidc-audience", "x"], "add --registration invite"),
        (
            ["--oidc-issuer", "http://id.example.org", "--oidc-audience", "x", "--registration", "invite"],
            "https://",
        ),
        (["--oidc-issuer", ISSUER, "--oidc-audience", "x", "--registration", "invite"], ""),
    ],
)
def test_an_issuer_that_cannot_be_is_refused_when_the_server_starts(options: list[str], says: str) -> None:
    parser = ArgumentParser()
    serve.add_options(parser)
    why = next(serve.find_refusals(serve.options_from(parser.parse_args(options))), "")
    assert (says in why) if says else why == ""
