"""An OIDC issuer of our own, with its own key: in memory, or at a port of loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey

from seatwise_server.services.id_tokens import MOST_DOCUMENT_BYTES, IdTokens, IssuerKeys, IssuerUnavailable

ISSUER, AUDIENCE, SUBJECT = "https://id.example.org", "seatwise", "joan@example.org"
NOW_S = 1_795_000_000
EVENT_LIMIT_S = 30.0


def new_key(key_id: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": key_id, "use": "sig", "alg": "ES256"})


class FakeIssuer:
    """An issuer in memory, which counts how often it is asked."""

    def __init__(self, issuer: str = ISSUER) -> None:
        self.issuer = issuer
        self.keys: list[Any] = [new_key("first")]
        self.now_s = 0.0
        self.asked: list[str] = []
        self.is_away = False

    async def fetch(self, url: str) -> Any:
        self.asked.append(url)
        if self.is_away:
            raise IssuerUnavailable("away")
        return self.document(url)

    def document(self, url: str) -> Any:
        if url.endswith("/.well-known/openid-configuration"):
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return {"keys": [key.as_dict(private=False) for key in self.keys]}

    def id_tokens(self) -> IdTokens:
        keys = IssuerKeys(self.issuer, lambda: self.now_s, self.fetch)
        return IdTokens(self.issuer, AUDIENCE, keys, read_secret, lambda: NOW_S)

    def token(self, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """An ID token with these changes; a claim of None is left out."""
        usual = {"iss": self.issuer, "aud": AUDIENCE, "sub": SUBJECT, "iat": NOW_S - 5, "exp": NOW_S + 300}
        named = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        signer = key or self.keys[-1]
        usual_header = {"alg": "ES256", "kid": signer.kid}
        return jwt.encode(
            {**usual_header, **(header or {})}, named, signer, algorithms=["ES256", "HS256", "RS256"]
        )


async def read_secret() -> bytes:
    return b"of the server"


class IssuerServer(ThreadingHTTPServer):
    """A fake issuer on loopback, with documents that are too large, hang, drip, or lie elsewhere."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _IssuerHandler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.fake = FakeIssuer(self.url)
        self.is_over = threading.Event()


class _IssuerHandler(BaseHTTPRequestHandler):
    server: IssuerServer

    def do_GET(self) -> None:
        kind = self.path.strip("/")
        if kind == "hang":
            self.server.is_over.wait(EVENT_LIMIT_S)
            return
        self.send_response(302 if kind == "moved" else 200)
        if kind == "moved":
            self.send_header("location", f"{self.server.url}/keys")
        self.end_headers()
        try:
            self._write_body(kind)
        except OSError:
            return

    def _write_body(self, kind: str) -> None:
        if kind == "huge":
            for _ in range(2 * MOST_DOCUMENT_BYTES // 1024):
                self.wfile.write(b"[" * 1024)
        elif kind == "drip":
            while not self.server.is_over.wait(0.01):
                self.wfile.write(b" ")
        else:
            self.wfile.write(json.dumps(self.server.fake.document(self.path)).encode())

    def log_message(self, *_: Any) -> None:
        """Stays silent."""


@contextmanager
def issuer_server() -> Iterator[IssuerServer]:
    server = IssuerServer()
    serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.shutdown()
        serving.join(EVENT_LIMIT_S)
        server.server_close()
