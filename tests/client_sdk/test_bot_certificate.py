"""The certificate of a bot, as its reader sees it: what is right, and every way in which it can be wrong."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seatwise.bot_certificate import SignedStatement, parse_certificate, verify_certificate
from seatwise.cli import main

STATEMENT = {
    "suite": "seatwise-certificate/1", "version": "1", "bot": "bots/b/versions/2", "time": "2026-01-01T00:00:00Z",
    "results": {"sits_down": "passed", "answers_pings": "failed"},
}  # fmt: skip


def signed(text: str = json.dumps(STATEMENT)) -> SignedStatement:
    key = Ed25519PrivateKey.generate()
    return SignedStatement(text, key.sign(text.encode()), key.public_key().public_bytes_raw())


def written(certificate: SignedStatement, name: str = "public_key") -> dict[str, str]:
    signature, key = (b64encode(data).decode() for data in (certificate.signature, certificate.public_key))
    return {"statement": certificate.statement, "signature": signature, name: key}


def test_a_certificate_is_found_in_what_the_api_and_the_command_print() -> None:
    certificate = signed()
    shown = {"name": "bots/b/versions/2", "certificate": written(certificate)}
    rest = {"bot": {"certificate": written(certificate, "publicKey")}}
    for told in (written(certificate), shown, rest):
        assert parse_certificate(json.dumps(told).encode()) == certificate
    for text in (b"", b"{}", b"[1]", b'{"entry":{}}\n{"entry":{}}', b"[" * 60_000, b" " * 70_000):
        assert parse_certificate(text) is None


def test_what_was_signed_is_told_and_any_other_text_is_refused() -> None:
    right = signed()
    found = verify_certificate(right, right.public_key)
    assert (found.bot, found.not_passed) == ("bots/b/versions/2", ("answers_pings",))
    with pytest.raises(ValueError, match="the signature does not fit"):
        verify_certificate(replace(right, statement=right.statement.replace("failed", "passed")))
    with pytest.raises(ValueError, match="the signature does not fit"):
        verify_certificate(replace(right, public_key=b"short"))
    with pytest.raises(ValueError, match="another key has signed it"):
        verify_certificate(right, signed().public_key)
    wrong = (
        {"results": 3},
        {"results": {}},
        {"results": {"sits_down": ["passed"]}},
        {"bot": [1]},
        {"time": None},
    )
    for text in ("[]", "{}", "x", *(json.dumps({**STATEMENT, **each}) for each in wrong)):
        with pytest.raises(ValueError, match="no result of an examination"):
            verify_certificate(signed(text))


def test_the_command_says_what_is_not_passed_and_obeys_no_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bot.json"
    file.write_text(json.dumps(written(signed(json.dumps({**STATEMENT, "suite": "\x1b[2J"})))))
    assert main(["verify", str(file)]) == 1
    said = capsys.readouterr().out
    assert "bots/b/versions/2: 1 of 2 checks not passed: answers_pings" in said
    assert "only the server can say: --server ADDR asks it" in said
    assert "\x1b" not in said
    assert main(["verify", "--json", str(file)]) == 1
    assert json.loads(capsys.readouterr().out)["results"] == STATEMENT["results"]
    file.write_text(json.dumps({**written(signed()), "signature": ""}))
    assert main(["verify", str(file)]) == 1
    assert "the signature does not fit the statement" in capsys.readouterr().out


def test_a_certificate_has_no_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Or a chain that is not its own would seem to be checked."""
    file = tmp_path / "bot.json"
    file.write_text(json.dumps(written(signed())))
    assert main(["verify", str(file), "--chain", "0" * 64]) == 2
    assert "a certificate has no chain" in capsys.readouterr().err
