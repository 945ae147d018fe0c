"""The form of a bot's name and version, and its resource name: `bots/<name>/versions/<version>`."""

from __future__ import annotations

import re

_BOT_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_VERSION = re.compile(r"[a-z0-9]([a-z0-9.-]{0,18}[a-z0-9])?")


class BadBotName(Exception):
    """A text is not a valid name, version or resource name of a bot; the message says why."""


def bot_name_for(name: str, version: str) -> str:
    """Makes the resource name of a bot. Raises BadBotName."""
    if not _BOT_NAME.fullmatch(name):
        raise BadBotName(
            "a bot's name is 1 to 40 lower-case letters, digits and dashes; it starts with a letter and "
            "does not end with a dash"
        )
    if not _VERSION.fullmatch(version):
        raise BadBotName(
            "a bot's version is 1 to 20 lower-case letters, digits, dots and dashes; it starts and ends "
            "with a letter or digit"
        )
    return f"bots/{name}/versions/{version}"


def parse_bot_name(bot: str) -> tuple[str, str]:
    """Splits a resource name into the bot's name and its version. Raises BadBotName."""
    parts = bot.split("/")
    if len(parts) != 4 or (parts[0], parts[2]) != ("bots", "versions"):
        raise BadBotName("a bot is named bots/<name>/versions/<version>")
    bot_name_for(parts[1], parts[3])
    return parts[1], parts[3]
