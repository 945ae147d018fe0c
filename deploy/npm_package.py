"""The npm package for bots in JavaScript: the files of the Node starter, with types that are written from the protos.

`python deploy/npm_package.py FOLDER` writes the tarball, which `npm install` takes. Two runs write the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from seatwise.v1 import lobby_service_pb2, play_service_pb2
from seatwise_server.services.declarations import read_comments

ROOT = Path(__file__).resolve().parents[1]
STARTER = ROOT / "docs" / "starters" / "node"
SHARED = ("bot.mjs", "link.mjs", "seat.mjs", "wire.mjs")
"""The files of the starter that know nothing of its strategy."""
SHOWN = (
    lobby_service_pb2.SeatOffer,
    play_service_pb2.Update,
    play_service_pb2.MatchEnded,
    play_service_pb2.SubmitMove,
)
"""The messages that a bot is given, or gives; those in them are typed, too."""
SCALARS = {
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
    FieldDescriptor.CPPTYPE_STRING: "string",
    FieldDescriptor.CPPTYPE_INT64: "string",
    FieldDescriptor.CPPTYPE_UINT64: "string",
}
"""As JSON has them: whole numbers of 64 bits are texts, and bytes are base64."""
TYPES = """\
// Written from the protos.

export interface BotOptions {
  /** ws://host:port or wss://host:port, the server's WebSocket port. */
  address: string;
  /** The bot's token. */
  token: string;
  /**
   * Answers a prompt: a move, or several that are sent in this order, as layouts in a race are. `view` is the part of `update`
   * that the game has: `UgoView`, `UbongoView` or `JsonView`.
   */
  choose(pace: string, view: any, update: Update): Choice | Promise<Choice>;
  /** The queues to wait in; none for matches that name the bot. */
  queues?: string[];
  /** Play at most so many matches at once: 4 if left out. */
  maxMatches?: number;
  /** Stop after so many matches; 0, or left out, means never. */
  matches?: number;
  /** Let the token travel in clear to another machine. */
  insecure?: boolean;
  /** Is told a line when something happens; `console.error` if left out. */
  log?(line: string): void;
  /** Is told the end of each match. */
  matchEnded?(ended: MatchEnded, offer: SeatOffer): void;
}

/** A move in the game's own terms. */
export type Move = UgoMove | UbongoMove | JsonValue;
export type Choice = Move | Move[];

export declare class Bot {
  constructor(options: BotOptions);
  /** Attends and plays until all is drained. Rejects with a `StreamEnd` that no other attempt can mend. */
  run(): Promise<void>;
  /** Takes no more seats, finishes the open matches, and ends. */
  drain(): void;
}

/** The end of a stream, with the reason that the server gave, if it gave one. */
export declare class StreamEnd extends Error {
  code: string;
  reason: string;
  metadata: Record<string, string>;
}
"""
README = """\
# {name}

A client for bots of Seatwise in JavaScript, over WebSocket, for Node 22 and newer and for browsers. With Node 20 write
`node --experimental-websocket`.

```js
import {{ Bot }} from "{name}";

const bot = new Bot({{
  address: "ws://localhost:7481",
  token: process.env.SEATWISE_TOKEN,
  queues: ["casual"],
  choose: (pace, view) => (pace === "arrange" ? {{ arrange: {{ cards: view.wonCards }} }} : {{ play: view.legalCards[0] }}),
}});
await bot.run();
```

The bot comes again when a connection breaks, and no move is lost or played twice. `index.d.ts` has the types of views and moves.
A browser plays only at a server whose operator names the origin of the page (`--ws-origin`).
"""


def main() -> None:
    """Writes the tarball into the folder that the command line names."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    print(write_package(Path(sys.argv[1]), version))


def write_package(folder: Path, version: str) -> Path:
    """Writes the tarball of this version, and returns its path."""
    scope = tomllib.loads((ROOT / "deploy" / "names.toml").read_text(encoding="utf-8"))["npm"]
    name = f"{scope}/bot"
    manifest = {
        "name": name,
        "version": version,
        "description": "Bots of Seatwise over WebSocket",
        "license": "Apache-2.0",
        "type": "module",
        "exports": {".": {"types": "./index.d.ts", "default": "./index.mjs"}},
        "engines": {"node": ">=20"},
    }
    texts = {file: (STARTER / file).read_text(encoding="utf-8") for file in SHARED}
    texts["package.json"] = json.dumps(manifest, indent=2) + "\n"
    texts["README.md"] = README.format(name=name)
    texts["LICENSE"] = (ROOT / "LICENSE").read_text(encoding="utf-8")
    texts["index.mjs"] = 'export { Bot } from "./bot.mjs";\nexport { StreamEnd } from "./wire.mjs";\n'
    texts["index.d.ts"] = write_types()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for file, text in sorted(texts.items()):
            info = tarfile.TarInfo(f"package/{file}")
            info.size = len(data := text.encode())
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return path


def write_types() -> str:
    """Returns the declarations for TypeScript."""
    found: dict[str, Descriptor | EnumDescriptor] = {}
    for shown in SHOWN:
        _collect(cast(Descriptor, shown.DESCRIPTOR), found)
    comments = read_comments()
    lines = [line for name in sorted(found) for line in ("", *_lines_of(found[name], comments))]
    return TYPES + "\n".join(lines) + "\n"


def _collect(type_: Descriptor | EnumDescriptor, found: dict[str, Descriptor | EnumDescriptor]) -> None:
    if type_.full_name in found or type_.full_name.startswith("google."):
        return
    if not (isinstance(type_, Descriptor) and type_.GetOptions().map_entry):
        found[type_.full_name] = type_
    if isinstance(type_, Descriptor):
        for field in type_.fields:
            if inner := field.message_type or field.enum_type:
                _collect(inner, found)


def _lines_of(type_: Descriptor | EnumDescriptor, comments: Mapping[str, str]) -> Iterator[str]:
    yield f"/** {comments[type_.full_name].replace('*/', '* /')} */"
    if isinstance(type_, EnumDescriptor):
        yield f"export type {_name_of(type_)} = {' | '.join(json.dumps(value.name) for value in type_.values)};"
        return
    yield f"export interface {_name_of(type_)} {{"
    for field in type_.fields:
        yield f"  /** {comments[field.full_name].replace('*/', '* /')} */"
        yield f"  {field.json_name}{'?' if field.has_presence else ''}: {_type_of(field)};"
    yield "}"


def _type_of(field: FieldDescriptor) -> str:
    inner = field.message_type or field.enum_type
    if field.message_type and field.message_type.GetOptions().map_entry:
        return f"Record<string, {_type_of(field.message_type.fields_by_name['value'])}>"
    if inner is None:
        name = SCALARS.get(field.cpp_type, "number")
    else:
        name = "string" if inner.full_name.startswith("google.") else _name_of(inner)
    return f"{name}[]" if field.is_repeated else name


def _name_of(type_: Descriptor | EnumDescriptor) -> str:
    """Returns the name of a type; those of a game have it before them, and inner ones the outer name."""
    package, _, name = type_.full_name.partition(".v1.")
    game = package.removeprefix("seatwise.games.") if package.startswith("seatwise.games.") else ""
    return game.capitalize() + name.replace(".", "")


if __name__ == "__main__":
    main()
