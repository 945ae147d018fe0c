"""Bots by name: the samples of each game, of rising strength, and classes in files."""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, cast

from seatwise.bot import Bot, BotFactory, check_bot, traceback_of
from seatwise.errors import UsageError
from seatwise.kits import DEFAULT_GAME, KITS, find_server_kit

SAMPLES: Final = {game: tuple(kit.samples) for game, kit in KITS.items()}
"""The names of the samples by game, the weakest first."""


def sample(name: str, game: str = DEFAULT_GAME) -> type[Bot]:
    """Return the class of a sample, derived from `Bot`, by its name in `SAMPLES`. Raises `KeyError` if the game has none of this name.

    Example:
        >>> SAMPLES["ugo"][:5]
        ('random', 'half-greedy', 'greedy', 'counting', 'counting-ahead')
        >>> sample("greedy").__name__
        'Greedy'
    """
    module, _, cls = find_server_kit(game).samples[name].partition(":")
    found = getattr(import_module(module), cls)
    return cast("type[Bot]", found if isinstance(found, type) else found(game, name))


def load_bot(text: str, game: str = DEFAULT_GAME) -> BotFactory:
    """Return the bot's class, for the name of a sample or FILE.py:CLASS. Raises `UsageError`, which says what is wrong."""
    if text in find_server_kit(game).samples:
        return sample(text, game)
    file, colon, name = text.rpartition(":")
    if not colon:
        raise UsageError(_explain_unknown(text, game))
    module = _load_module(Path(file), text)
    return check_bot(_find_class(module, file, name), game)


def load_version(text: str, game: str) -> BotFactory:
    """Return the bot's class as `load_bot` does, with modules of its own: another version may have modules of the same names.

    The folder of the file is on the path only while it is loaded. So a module that lies beside it must be imported at the top.
    """
    before, path = set(sys.modules), list(sys.path)
    folder = Path(text.rpartition(":")[0]).resolve().parent
    if text not in find_server_kit(game).samples:
        sys.path.insert(0, str(folder))
    try:
        return load_bot(text, game)
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).resolve().is_relative_to(folder):
                del sys.modules[name]


def bot_name(text: str) -> str:
    """Return a name for that bot: the name of the sample or of the class."""
    return text.rpartition(":")[2]


def _explain_unknown(text: str, game: str) -> str:
    samples = ", ".join(find_server_kit(game).samples)
    if text.endswith(".py"):
        return f"{text}: which class? Write {text}:CLASS, as in {text}:MyBot"
    others = [other for other, kit in KITS.items() if text in kit.samples]
    if others:
        return f"{text} is a sample for the game {others[0]}; the samples for {game} are {samples}"
    return f"{text}: no such sample; the samples are {samples}. For your own bot write FILE.py:CLASS"


def _load_module(path: Path, text: str) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{text}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"seatwise_bot_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{text}: {path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look it up there
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # so that the bot finds the modules beside it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{text}: {path} cannot be imported\n{traceback_of(error)}") from error
    return module


def _find_class(module: ModuleType, file: str, name: str) -> object:
    found = getattr(module, name, None)
    if found is not None:
        return found
    bots = [each for each, cls in vars(module).items() if isinstance(cls, type) and issubclass(cls, Bot)]
    there = [each for each in bots if getattr(module, each) is not Bot]
    hint = f"; there is {', '.join(there)}" if there else "; it has no class derived from seatwise.Bot"
    raise UsageError(f"{file}: no class {name or '(empty name)'}{hint}")
