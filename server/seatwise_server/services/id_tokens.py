"""ID tokens of an OIDC issuer (OpenID Connect Core 1.0): the subject that one names, and whether it is for this server."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
import urllib.request
import warnings
from collections.abc import Awaitable, Callable
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from joserfc import jwk, jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError, SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey

from seatwise_server.refusal import Refusal

# The public keys of an OIDC issuer: fetched within limits of time and size, kept, and asked for again only now and then.

IssuerKey = RSAKey | ECKey | OKPKey
"""A key with which only its owner can sign. There is no other kind here: a shared secret would let anyone sign who checks."""

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
FETCH_S: Final = 5.0
"""The longest time for one document of the issuer, in seconds."""
MOST_DOCUMENT_BYTES: Final = 262_144
MOST_ISSUER_KEYS: Final = 64
LEAST_RSA_BITS: Final = 2_048
KEYS_REFRESH_S: Final = 3_600.0
"""After this time the keys are fetched again, so that a key that the issuer has withdrawn does not count for ever."""
KEYS_KEEP_S: Final = 86_400.0
"""For so long they count if the issuer does not answer."""
NEXT_FETCH_S: Final = 60.0
"""The shortest time between two attempts, whatever keys callers ask for. So nobody can make this server flood the issuer."""

log = structlog.get_logger()


class IssuerUnavailable(Exception):
    """The issuer does not answer, or its answer is not what an issuer sends."""


class IssuerKeys:
    """The keys of one issuer, for one process."""

    def __init__(
        self,
        issuer: str,
        now: Callable[[], float] = time.monotonic,
        fetch: Callable[[str], Awaitable[Any]] | None = None,
    ) -> None:
        """`issuer` is its URL. `now` returns seconds. `fetch` returns the JSON document at a URL; raises IssuerUnavailable."""
        self._issuer = issuer
        self._now = now
        self._fetch = fetch or fetch_document
        self._keys: dict[str, IssuerKey] = {}
        self._fetched_s = float("-inf")
        self._tried_s = float("-inf")
        self._lock = asyncio.Lock()

    async def find_key(self, key_id: str | None) -> IssuerKey | None:
        """Return the key of that id; None if the issuer has none. Without an id, its one key, if it has only one.

        Raises IssuerUnavailable if no keys are known.
        """
        if self._age_s() > KEYS_REFRESH_S or self._look_up(key_id) is None:
            async with self._lock:
                if self._age_s() > KEYS_REFRESH_S or self._look_up(key_id) is None:
                    await self._try_to_fetch()
        if self._age_s() > KEYS_KEEP_S:
            raise IssuerUnavailable("the keys of the issuer could not be fetched; try again in a minute")
        return self._look_up(key_id)

    def _age_s(self) -> float:
        return self._now() - self._fetched_s

    def _look_up(self, key_id: str | None) -> IssuerKey | None:
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id)

    async def _try_to_fetch(self) -> None:
        if self._now() - self._tried_s < NEXT_FETCH_S:
            return
        self._tried_s = self._now()
        try:
            self._keys = await self._fetch_keys()
            self._fetched_s = self._now()
        except IssuerUnavailable as failure:
            log.warning("issuer_unavailable", issuer=self._issuer, why=str(failure))

    async def _fetch_keys(self) -> dict[str, IssuerKey]:
        configuration = await self._fetch(self._issuer.rstrip("/") + CONFIGURATION_PATH)
        found = configuration if isinstance(configuration, dict) else {}
        if found.get("issuer") != self._issuer:
            raise IssuerUnavailable(f"its configuration names the issuer {found.get('issuer')!r}")
        where = found.get("jwks_uri")
        if not isinstance(where, str) or urlsplit(where).scheme not in _schemes_of(self._issuer):
            raise IssuerUnavailable("its configuration names no jwks_uri with https")
        return read_key_set(await self._fetch(where))


def _schemes_of(issuer: str) -> tuple[str, ...]:
    """Return the schemes at which its keys may be: http only for an issuer that is itself at http, on this machine."""
    return ("https", "http") if urlsplit(issuer).scheme == "http" else ("https",)


def read_key_set(document: Any) -> dict[str, IssuerKey]:
    """Return the keys for signatures of a JSON Web Key Set (RFC 7517), by id. Leaves out keys that we cannot use.

    A key without an id has the empty one. Raises IssuerUnavailable for what is no key set, or has no key that we can use.
    """
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise IssuerUnavailable("its key set is no JSON Web Key Set")
    found: dict[str, IssuerKey] = {}
    for entry in listed[:MOST_ISSUER_KEYS]:
        if key := _read_key(entry):
            key_id = entry.get("kid", "")
            found.setdefault(key_id if isinstance(key_id, str) else "", key)
    if not found:
        raise IssuerUnavailable("its key set has no key that this server can use")
    return found


def _read_key(entry: Any) -> IssuerKey | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # of a short key, which is left out below
            key = jwk.import_key(entry)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if isinstance(key, RSAKey):
        return key if key.raw_value.key_size >= LEAST_RSA_BITS else None
    return key if isinstance(key, ECKey | OKPKey) else None


async def fetch_document(url: str) -> Any:
    """Return the JSON document at this URL. Raises IssuerUnavailable if it takes too long, is too large, or is elsewhere."""
    try:
        async with asyncio.timeout(FETCH_S):
            return await asyncio.to_thread(_fetch_now, url)
    except TimeoutError:
        raise IssuerUnavailable(f"{url} did not answer within {FETCH_S:.0f} s") from None
    except (OSError, HTTPException, ValueError, RecursionError) as failure:
        raise IssuerUnavailable(f"{url}: {failure or type(failure).__name__}") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as it is, which is then an error: it could lead to another machine, or away from https."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _fetch_now(url: str) -> Any:
    """Fetch a document in a thread. It ends soon after `FETCH_S`, even if the issuer sends a byte now and then."""
    ends_s = time.monotonic() + FETCH_S
    opener = urllib.request.build_opener(_NoRedirects)
    request = urllib.request.Request(url, headers={"accept": "application/json"})
    body = b""
    with opener.open(request, timeout=FETCH_S) as answer:
        while chunk := answer.read1(65_536):
            body += chunk
            if len(body) > MOST_DOCUMENT_BYTES:
                raise ValueError(f"it has more than {MOST_DOCUMENT_BYTES} bytes")
            if time.monotonic() > ends_s:
                raise TimeoutError
    return json.loads(body)


ID_TOKEN_ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA",
)  # fmt: skip
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
    """Return whether a token has the form of a signed JSON Web Token. No token of this server has it."""
    return token.startswith("ey") and token.count(".") == 2


def owner_id_of(issuer: str, subject: str, secret: bytes) -> str:
    """Return the id of the owner that an issuer names: a pseudonym that nobody can compute without the server's secret."""
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
        """Return the owner that the token names, of the form owners/{owner}. Raises as `read_subject`."""
        subject = await self.read_subject(token)
        return f"owners/{owner_id_of(self._issuer, subject, await self._read_secret())}"

    async def read_subject(self, token: str) -> str:
        """Return the subject that the token names.

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
        """Check that the token is for this server. A token for several must have been asked for by this one (`azp`)."""
        named = claims["aud"]
        audiences = named if isinstance(named, list) else [named]
        party = claims.get("azp", self._audience if len(audiences) == 1 else None)
        if self._audience not in audiences or party != self._audience:
            why = "its audience is another program; ask the operator which one this server expects"
            raise _refuse_id_token(why)


def _read_header(token: str) -> tuple[str, str | None]:
    """Return the algorithm and the id of the key. Other keys that a header names (`jwk`, `jku`, `x5u`) are never used."""
    if len(token) > LONGEST_ID_TOKEN:
        raise _refuse_id_token(f"it has more than {LONGEST_ID_TOKEN} characters")
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _refuse_id_token("it is no signed JSON Web Token") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ID_TOKEN_ALGORITHMS:
        why = f"its algorithm is {str(algorithm)[:20]!r}; a signature such as RS256 or ES256 is needed"
        raise _refuse_id_token(why)
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
