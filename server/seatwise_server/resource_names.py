"""Names of resources: bots and their owners, and matches, whose names cannot be guessed or follow from a request."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata

_BOT_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_VERSION = re.compile(r"[a-z0-9]([a-z0-9.-]{0,18}[a-z0-9])?")
_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0 " + "".join(
    map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)
"""Letters that count as printable and show nothing, variation selectors among them."""


class BadBotName(Exception):
    """A text is not a valid name, version or resource name of a bot; the message says why."""

    def __init__(self, message: str, part: str = "bot") -> None:
        """`part` is the part that is wrong, as requests call it: bot or version."""
        super().__init__(message)
        self.part = part


def bot_name_for(name: str, version: str) -> str:
    """Make the resource name of a bot. Raises BadBotName."""
    if not _BOT_NAME.fullmatch(name):
        raise BadBotName(
            "a bot's name is 1 to 40 lower-case letters, digits and dashes; it starts with a letter and "
            "does not end with a dash"
        )
    if not _VERSION.fullmatch(version):
        why = "a bot's version is 1 to 20 lower-case letters, digits, dots and dashes; it starts and ends with a letter or digit"
        raise BadBotName(why, "version")
    return f"bots/{name}/versions/{version}"


def parse_bot_name(bot: str) -> tuple[str, str]:
    """Split a resource name into the bot's name and its version. Raises BadBotName."""
    parts = bot.split("/")
    if len(parts) != 4 or (parts[0], parts[2]) != ("bots", "versions"):
        raise BadBotName("a bot is named bots/<name>/versions/<version>")
    bot_name_for(parts[1], parts[3])
    return parts[1], parts[3]


def unify_owner(text: str) -> str:
    """Return the one form of the name of a person or team: NFC, without outer blanks; empty if nothing of it is visible.

    A Mac decomposes accents. Without this, "Zoë" from there would be another owner than "Zoë" from elsewhere.
    """
    name = unicodedata.normalize("NFC", text).strip(_INVISIBLE)
    seen = (unicodedata.category(letter)[0] in "LNPS" and letter not in _INVISIBLE for letter in name)
    return name if any(seen) else ""


def former_owner_forms(text: str) -> set[str]:
    """Return the forms in which earlier versions may have stored this name."""
    return {text, unify_owner(text), unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)}


ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""Characters that are not easily confused with one another."""
ID_LENGTH = 12


def new_match_name() -> str:
    """Draw a name that cannot be guessed and is short enough to type."""
    return "matches/" + "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


def match_name_for(request_id: str) -> str:
    """Derive a name from the request id, always the same, so that a repeated request creates no second match."""
    digest = hashlib.sha256(f"create/{request_id}".encode()).digest()[:ID_LENGTH]
    return "matches/" + "".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in digest)
