"""ID tokens of an OIDC issuer (OpenID Connect Core 1.0): the subject that one names, and whether it is for this server."""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError

from seatwise_server.refusal import Refusal
from seatwise_server.services.issuer_keys import IssuerKeys, IssuerUnavailable

ID_TOKEN_ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
)
"""Signatures with a key of which only the issuer has the secret part: never `none`, and never a shared secret (HS256)."""
LONGEST_ID_TOKEN: Final = 8_192
LONGEST_SUBJECT: Final = 255
"""OpenID Connect allows no longer one."""
ID_TOKEN_LEEWAY_S: Final = 60
"""How far the clocks of issuer and server may be apart, in seconds."""
ISSUER_OWNER_PREFIX: Final = "oidc-"
"""The id of an owner that an issuer has named begins with it."""
_PSEUDONYM_LETTERS: Final = 26


def looks_like_id_token(token: str) -> bool:
    """Returns whether a token has the form of a signed JSON Web Token. No token of this server has it."""
    return token.startswith("ey") and token.count(".") == 2


def owner_id_of(issuer: str, subject: str, secret: bytes) -> str:
    """Returns the id of the owner that an issuer names: a pseudonym that nobody can compute without the server's secret."""
    digest = hmac.digest(secret, f"{issuer}\n{subject}".encode(), "sha256")
    return ISSUER_OWNER_PREFIX + base64.b32encode(digest).decode().lower()[:_PSEUDONYM_LETTERS]


class IdTokens:
    """Checks the ID tokens of one issuer."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        keys: IssuerKeys,
        read_secret: Callable[[], Awaitable[bytes]],
        now: Callable[[], float] = time.time,
    ) -> None:
        """`audience` is this server's name (client id) at the issuer. `read_secret` returns the secret of pseudonyms.

        `now` returns seconds since 1970.
        """
        self._issuer = issuer
        self._audience = audience
        self._keys = keys
        self._read_secret = read_secret
        self._now = now

    async def read_owner(self, token: str) -> str:
        """Returns the owner that the token names, of the form owners/{owner}. Raises as `read_subject`."""
        subject = await self.read_subject(token)
        return f"owners/{owner_id_of(self._issuer, subject, await self._read_secret())}"

    async def read_subject(self, token: str) -> str:
        """Returns the subject that the token names.

        Raises `Refusal` TOKEN_UNKNOWN, TOKEN_EXPIRED or ISSUER_UNAVAILABLE. A caller is told of wrong claims
        only if the issuer has signed the token.
        """
        algorithm, key_id = _read_header(token)
        try:
            key = await self._keys.find_key(key_id)
        except IssuerUnavailable as failure:
            raise Refusal("ISSUER_UNAVAILABLE", str(failure)) from None
        if key is None:
            raise _refuse_id_token("the issuer has no key of this id")
        try:
            claims = jwt.decode(token, key, algorithms=[algorithm]).claims
        except (JoseError, ValueError, TypeError, RecursionError):
            raise _refuse_id_token("the issuer has not signed it") from None
        self._check_times_and_issuer(claims)
        self._check_audience(claims)
        return _check_subject(claims)

    def _check_times_and_issuer(self, claims: dict[str, Any]) -> None:
        needed: Any = {"essential": True}
        registry = jwt.JWTClaimsRegistry(
            now=lambda: int(self._now()), leeway=ID_TOKEN_LEEWAY_S, iss={"essential": True, "value": self._issuer},
            sub=needed, aud=needed, exp=needed, iat=needed,
        )  # fmt: skip
        try:
            registry.validate(claims)
        except ExpiredTokenError:
            raise Refusal("TOKEN_EXPIRED", "this ID token has expired; sign in again at its issuer") from None
        except (JoseError, ValueError, TypeError, OverflowError) as wrong:
            raise _refuse_id_token(str(wrong)) from None

    def _check_audience(self, claims: dict[str, Any]) -> None:
        """Checks that the token is for this server. A token for several must have been asked for by this one (`azp`)."""
        named = claims["aud"]
        audiences = named if isinstance(named, list) else [named]
        party = claims.get("azp", self._audience if len(audiences) == 1 else None)
        if self._audience not in audiences or party != self._audience:
            raise _refuse_id_token(
                "its audience is another program; ask the operator which one this server expects"
            )


def _read_header(token: str) -> tuple[str, str | None]:
    """Returns the algorithm and the id of the key. Other keys that a header names (`jwk`, `jku`, `x5u`) are never used."""
    if len(token) > LONGEST_ID_TOKEN:
        raise _refuse_id_token(f"it has more than {LONGEST_ID_TOKEN} characters")
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _refuse_id_token("it is no signed JSON Web Token") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ID_TOKEN_ALGORITHMS:
        raise _refuse_id_token(
            f"its algorithm is {str(algorithm)[:20]!r}; a signature such as RS256 or ES256 is needed"
        )
    if key_id is not None and not isinstance(key_id, str):
        raise _refuse_id_token("the id of its key is no text")
    return algorithm, key_id


def _check_subject(claims: dict[str, Any]) -> str:
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
        raise _refuse_id_token(f"its subject is no text of 1 to {LONGEST_SUBJECT} characters")
    return subject


def _refuse_id_token(why: str) -> Refusal:
    return Refusal("TOKEN_UNKNOWN", f"this ID token does not count here: {why}")
