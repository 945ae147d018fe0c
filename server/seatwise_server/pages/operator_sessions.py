"""Sessions of operators in a browser: short, kept in memory, and named by a cookie that no other page can send."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

SESSION_S = 1800
MOST_SESSIONS = 100
COOKIE = "seatwise_operator"
OPERATORS = "/operators"
"""The URL of the page, and the path of the cookie."""


@dataclass(frozen=True, slots=True)
class OperatorSession:
    """A person who has logged in."""

    token: str
    """The token, which is checked again at each request."""
    end_s: float


class OperatorSessions:
    """The sessions of this process. They end with it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[str, OperatorSession] = {}
        """By the digest of the cookie's value, in the order of their beginning."""

    def begin_session(self, token: str) -> str:
        """Begins a session, and returns the value of its cookie."""
        self._drop_ended()
        if len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        value = secrets.token_urlsafe(32)
        self._sessions[_digest(value)] = OperatorSession(token, self._clock() + SESSION_S)
        return value

    def find_session(self, value: str | None) -> OperatorSession | None:
        """Returns the session of a cookie's value; None if it has none, or it has ended."""
        self._drop_ended()
        return self._sessions.get(_digest(value)) if value else None

    def end_session(self, value: str | None) -> None:
        """Ends the session of a cookie's value, if it has one."""
        if value:
            self._sessions.pop(_digest(value), None)

    def _drop_ended(self) -> None:
        now = self._clock()
        self._sessions = {key: each for key, each in self._sessions.items() if each.end_s > now}


def session_cookie(value: str, *, is_secure: bool) -> str:
    """Returns the Set-Cookie header of a session. No script reads the cookie, and no other site makes a browser send it."""
    secure = "; Secure" if is_secure else ""
    age = SESSION_S if value else 0
    return f"{COOKIE}={value}; Path={OPERATORS}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()
