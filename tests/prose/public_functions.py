"""The functions that users call, and what their docstrings leave out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from seatwise import __file__ as sdk_file
from seatwise_referee import __file__ as referee_file

PUBLIC_MODULES = (
    "seatwise",
    "seatwise.client",
    "seatwise.async_client",
    "seatwise.hosting",
    "seatwise.local",
    "seatwise.replay",
    "seatwise.rl",
    "seatwise.season",
    "seatwise.testing",
    "seatwise.ubongo",
    "seatwise.ugo",
    "seatwise_referee.game",
    "seatwise_referee.hosted.hosted_game",
    "seatwise_referee.time_control",
)
"""Users import their names from these modules."""
FOLDERS = {"seatwise": Path(sdk_file).parent, "seatwise_referee": Path(referee_file).parent}
UNITS = {"_s": "seconds?", "_ms": "milliseconds?|ms"}
"""What a docstring says of a parameter with this ending."""
POINTS_TO_ANOTHER = re.compile(r"See `[\w.]+`(. The| for the) arguments")
"""The docstring says that another function explains the arguments."""
TELLS_A_RESULT = re.compile(r"\b([Rr]eturns?|[Yy]ields?)\b|^(Whether|The|A|An|Its|All|How) ")


@dataclass(frozen=True, slots=True)
class PublicFunction:
    """A function or method that users call."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    doc: str
    shared_doc: str = ""
    """The arguments that the class explains for all its methods."""

    def __str__(self) -> str:
        return self.name

    @property
    def parameters(self) -> list[str]:
        """Its parameters, beyond self."""
        args = self.node.args
        named = [*args.posonlyargs, *args.args, *filter(None, [args.vararg]), *args.kwonlyargs]
        return [each.arg for each in named if each.arg not in ("self", "cls") and each.arg[0] != "_"]

    def find_gaps(self) -> list[str]:
        """What the docstring leaves out: parameters, their units, the result, and errors that the function itself raises."""
        if POINTS_TO_ANOTHER.search(self.doc):
            return []
        words = f"{self.doc} {self.shared_doc}".replace("`", " ")
        gaps = [f"parameter {each}" for each in self.parameters if not _names(each, words)]
        gaps += [
            f"unit of {each}"
            for each in self.parameters
            for ending, unit in UNITS.items()
            if each.endswith(ending) and not re.search(rf"\b({unit})\b", words)
        ]
        if _returns_something(self.node) and not TELLS_A_RESULT.search(words):
            gaps.append("what it returns")
        return gaps + [f"raises {each}" for each in sorted(_raised_by(self.node)) if each not in words]


def public_functions() -> Iterator[PublicFunction]:
    """Every function that a public module gives users, and every public method of its public classes."""
    seen = set()
    for module in filter(None, map(_import_if_installed, PUBLIC_MODULES)):
        for name in getattr(module, "__all__", None) or list(vars(module)):
            found = getattr(module, name)
            home = str(getattr(found, "__module__", ""))
            if home.partition(".")[0] not in FOLDERS or name.startswith("_") or found in seen:
                continue
            if home == module.__name__ or hasattr(module, "__all__"):
                seen.add(found)
                yield from _functions_of(home, getattr(found, "__name__", ""))


def _import_if_installed(name: str) -> ModuleType | None:
    """Imports the module; None where an optional package, such as NumPy, is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in FOLDERS:
            raise
        return None


def _functions_of(module: str, name: str) -> Iterator[PublicFunction]:
    for node in _parse_module(module).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            yield PublicFunction(f"{module}.{name}", node, ast.get_docstring(node) or "")
        elif isinstance(node, ast.ClassDef) and node.name == name:
            yield from _methods_of(module, node)


def _methods_of(module: str, owner: ast.ClassDef) -> Iterator[PublicFunction]:
    for node in owner.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        doc = ast.get_docstring(node) or ""
        if node.name == "__init__":
            yield PublicFunction(f"{module}.{owner.name}", node, f"{ast.get_docstring(owner) or ''}\n{doc}")
        elif not node.name.startswith("_") and not _is_overload(node):
            shared = (ast.get_docstring(owner) or "").partition("same in all methods")[2]
            yield PublicFunction(f"{module}.{owner.name}.{node.name}", node, doc, shared)


@cache
def _parse_module(module: str) -> ast.Module:
    """Parses the source, which is there beside a compiled module too."""
    package, *rest = module.split(".")
    path = FOLDERS[package].joinpath(*rest)
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _names(parameter: str, words: str) -> bool:
    """Whether the words hold the parameter: `max_matches`, or in plain words "max matches"."""
    return bool(re.search(rf"\b({parameter}|{parameter.replace('_', ' ')})\b", words, re.IGNORECASE))


def _returns_something(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    returned = ast.unparse(node.returns) if node.returns else "None"
    return node.name != "__init__" and returned not in ("None", "Self", "Never", "Awaitable[None] | None")


def _raised_by(node: ast.AST) -> set[str]:
    calls = [each.exc for each in ast.walk(node) if isinstance(each, ast.Raise)]
    named = {it.func.id for it in calls if isinstance(it, ast.Call) and isinstance(it.func, ast.Name)}
    handlers = (each.type for each in ast.walk(node) if isinstance(each, ast.ExceptHandler) and each.type)
    caught = " ".join(map(ast.unparse, handlers))
    return {it for it in named if it[0].isupper() and it != "NotImplementedError" and it not in caught}


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        "overload" in ast.unparse(each) or ".setter" in ast.unparse(each) for each in node.decorator_list
    )
