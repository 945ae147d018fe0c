"""From the bundle of a season anybody works out its whole table; whatever was changed in it is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matches.forging import chained
from seasons.one_season import files_in, forged, league_of, played

from seatwise.cli import main
from seatwise_referee.journal import canonical_json
from seatwise_server.league import season_log
from seatwise_server.league.par import par_of
from seatwise_server.league.publishing import publish_season
from seatwise_server.league.rules import schedule_of
from seatwise_server.league.season_log import Void


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a season that is over."""
    folder = tmp_path_factory.mktemp("season")
    played(folder, league_of()).close()
    assert publish_season(folder).digest
    return folder / "season.bundle"


def said_of(bundle: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    """What `seatwise verify` says of it."""
    code = main(["verify", str(bundle), *more])
    return code, capsys.readouterr().out


Lines = list[dict[str, Any]]


def changed(content: bytes, change: Callable[[Lines], Any]) -> bytes:
    """Lines of JSON, changed."""
    lines = [json.loads(line) for line in content.splitlines()]
    change(lines)
    return b"".join(json.dumps(line, sort_keys=True).encode() + b"\n" for line in lines)


def changed_settings(content: bytes, **changes: Any) -> bytes:
    """Settings with other values."""
    return json.dumps(json.loads(content) | changes).encode()


def test_a_season_is_worked_out_again_from_its_bundle(bundle, capsys):
    code, said = said_of(bundle, capsys)
    assert code == 0
    assert "6 records verified" in said
    assert "the schedule and the table of its 4 entrants follow from the records" in said


FORMATS: dict[str, dict[str, Any]] = {
    "round robin at tables of three": {"seats": 3, "deals": "none"},
    "rotating deals": {"deals": "rotation"},
    "swiss": {"format": "swiss", "rounds": 3},
    "knockout": {"format": "knockout"},
    "gauntlet": {"format": "gauntlet", "challengers": ("greedy2",), "rounds": 4},
    "A against B": {
        "format": "ab-test",
        "deals": "rotation",
        "rounds": 30,
        "entrants": league_of().entrants[:2],
    },
    "A against itself": {
        "format": "ab-test",
        "deals": "rotation",
        "rounds": 3,
        "entrants": league_of("greedy", "greedy").entrants,
    },
}


@pytest.fixture(scope="module")
def swiss_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a Swiss tournament, which stores its draws."""
    folder = tmp_path_factory.mktemp("swiss")
    played(folder, league_of(*["greedy"] * 6, format="swiss", rounds=3, deals="none")).close()
    assert publish_season(folder).digest
    return folder / "season.bundle"


def test_a_draw_is_checked_without_drawing_it_again(swiss_bundle, capsys, monkeypatch):
    module = "seatwise_server.competition.schedules.swiss.draw_swiss_round"
    monkeypatch.setattr(module, lambda *_, **__: pytest.fail("it was drawn again"))
    code, said = said_of(swiss_bundle, capsys)
    assert code == 0, said


def change_draw(number: int, **changes: Any) -> Callable[[Lines], None]:
    """Other values in the draw of a round, from 1."""

    def change(draws: Lines) -> None:
        draws[number - 1] |= changes

    return change


SWISS_FORGERIES: dict[str, tuple[Callable[[Lines], Any], str]] = {
    "a draw less": (
        lambda draws: draws.pop(),
        "draws.jsonl: there are draws of 2 rounds, and the schedule stores 3",
    ),
    "draws in another order": (lambda draws: draws.reverse(), "draws.jsonl: line 1: round is 3"),
    "tables that were not played": (change_draw(2, tables=[[0, 1], [2, 3], [4, 5]]), "results.jsonl: "),
    "a table less": (
        lambda draws: draws[2]["tables"].pop(),
        "draws.jsonl: there is a draw of a round that was not played",
    ),
    "a bye for nobody": (change_draw(1, byes=[5]), "draws.jsonl: round 1: the byes are [5]"),
    "a look ahead in the last round": (
        change_draw(3, ahead=[[0, 1]]),
        "draws.jsonl: round 3: the tables are not those",
    ),
    "an entrant that is none": (
        change_draw(1, byes=[6]),
        "draws.jsonl: line 1: an entrant is no whole number",
    ),
    "an entrant that is a truth": (
        change_draw(1, byes=[True]),
        "draws.jsonl: line 1: an entrant is no whole number",
    ),
    "a draw that is none": (change_draw(1, tables=3), "draws.jsonl: line 1: this is no draw of a round"),
    "a strange key": (change_draw(1, luck=1), "draws.jsonl: line 1: the key 'luck' does not belong there"),
    "a table that is none": (change_draw(1, tables=[3]), "draws.jsonl: line 1: a table is no list"),
}


@pytest.mark.parametrize("kind", SWISS_FORGERIES)
def test_a_forged_draw_is_named(swiss_bundle, tmp_path, capsys, kind):
    change, expected = SWISS_FORGERIES[kind]
    draws = changed(files_in(swiss_bundle)["draws.jsonl"], change)
    code, said = said_of(forged(swiss_bundle, tmp_path, {"draws.jsonl": draws}), capsys)
    assert code == 1
    assert expected in said


def test_only_a_swiss_tournament_has_draws(bundle, tmp_path, capsys):
    draw = b'{"round": 1, "tables": [], "byes": [], "ahead": []}\n'
    assert "draws.jsonl" not in files_in(bundle)
    code, said = said_of(forged(bundle, tmp_path, {"draws.jsonl": draw}), capsys)
    assert code == 1
    assert "draws.jsonl: there are draws of 1 rounds, and the schedule stores 0" in said


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_worked_out_again(tmp_path, capsys, form):
    played(tmp_path, league_of(**FORMATS[form])).close()
    assert publish_season(tmp_path).digest
    code, said = said_of(tmp_path / "season.bundle", capsys)
    assert code == 0, said
    assert b"Infinity" not in files_in(tmp_path / "season.bundle")["standings.json"]


def test_the_digest_says_whether_it_is_the_season_that_was_published(bundle, capsys):
    code, said = said_of(bundle, capsys, "--json")
    digest = json.loads(said)["digest"]
    assert said_of(bundle, capsys, "--chain", digest)[0] == 0
    code, said = said_of(bundle, capsys, "--chain", "0" * 64)
    assert code == 1
    assert "it is not that season" in said


def test_the_same_season_is_the_same_bundle_to_the_last_byte(bundle):
    before = bundle.read_bytes()
    publish_season(bundle.parent)
    assert bundle.read_bytes() == before


def test_a_file_that_was_changed_is_named_by_its_hash(bundle, tmp_path, capsys):
    files = files_in(bundle)
    with zipfile.ZipFile(bundle) as archive:
        manifest = archive.read("manifest.json")
    with zipfile.ZipFile(tmp_path / "changed", "w") as archive:
        archive.writestr("manifest.json", manifest)
        for name, content in files.items():
            archive.writestr(name, content + b"\n" if name == "voids.jsonl" else content)
    code, said = said_of(tmp_path / "changed", capsys)
    assert code == 1
    assert "voids.jsonl: SHA-256 is" in said


def forge_score(files: dict[str, bytes]) -> dict[str, bytes]:
    """A result that its record does not bear out."""

    def more_points(results: Lines) -> None:
        results[1]["points"][0] += 5

    return {"results.jsonl": changed(files["results.jsonl"], more_points)}


def forge_record(files: dict[str, bytes]) -> dict[str, bytes]:
    """Result and record alike."""

    def more_points(lines: Lines) -> None:
        points = lines[1]["points"] if "points" in lines[1] else lines[1]["outcome"]["points"]
        points[0] += 5

    record = changed(files["records.jsonl"], more_points).replace(b", ", b",").replace(b": ", b":")
    return {"results.jsonl": changed(files["results.jsonl"], more_points), "records.jsonl": record}


def drop_result(files: dict[str, bytes]) -> dict[str, bytes]:
    """A match less in the log, its record left behind."""
    return {"results.jsonl": b"".join(files["results.jsonl"].splitlines(keepends=True)[:-1])}


def drop_match(files: dict[str, bytes]) -> dict[str, bytes]:
    """A match less, with all that speaks of it."""

    def drop(results: Lines) -> None:
        del results[2]
        for number, result in enumerate(results, start=1):
            result["seq"] = number

    lines = files["records.jsonl"].splitlines(keepends=True)
    return {
        "results.jsonl": changed(files["results.jsonl"], drop),
        "records.jsonl": b"".join(lines[:2] + lines[3:]),
    }


def drop_record(files: dict[str, bytes]) -> dict[str, bytes]:
    """A result without proof."""
    return {"records.jsonl": b"".join(files["records.jsonl"].splitlines(keepends=True)[:-1])}


def swap_results(files: dict[str, bytes]) -> dict[str, bytes]:
    """Results under each other's names."""

    def swap(results: Lines) -> None:
        results[0]["table"], results[1]["table"] = results[1]["table"], results[0]["table"]

    return {"results.jsonl": changed(files["results.jsonl"], swap)}


def repeat_table(files: dict[str, bytes]) -> dict[str, bytes]:
    """One table played twice."""

    def repeat(results: Lines) -> None:
        results[1]["table"] = results[0]["table"]

    return {"results.jsonl": changed(files["results.jsonl"], repeat)}


def forge_standings(files: dict[str, bytes]) -> dict[str, bytes]:
    """Another winner."""
    standings = json.loads(files["standings.json"])
    rows = standings["rows"]
    rows[0]["name"], rows[1]["name"] = rows[1]["name"], rows[0]["name"]
    return {"standings.json": json.dumps(standings).encode()}


def forge_par(files: dict[str, bytes], *par: object) -> dict[str, bytes]:
    """Points of the par bot that were made up."""

    def change(results: Lines) -> None:
        results[1]["par"] = list(par)

    return {"results.jsonl": changed(files["results.jsonl"], change)}


def name_at_length(files: dict[str, bytes], length: int) -> dict[str, bytes]:
    """A name that no screen holds, with orders to the terminal in it."""

    def change(results: Lines) -> None:
        results[1]["match"] = "\x1b[2J" * (length // 4)

    return {"results.jsonl": changed(files["results.jsonl"], change)}


def name_without_record(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same where the name itself is told."""

    def change(results: Lines) -> None:
        results[-1]["match"] = "\x1b[2J" * 2000

    return drop_record(files) | {"results.jsonl": changed(files["results.jsonl"], change)}


def forge_rank(files: dict[str, bytes]) -> dict[str, bytes]:
    """What Python takes for 1."""
    standings = json.loads(files["standings.json"])
    standings["rows"][0]["rank"] = True
    return {"standings.json": json.dumps(standings).encode()}


def forge_entrants(files: dict[str, bytes], count: int, **more: Any) -> dict[str, bytes]:
    """More of them than have played."""
    entrants = [{"name": f"e{n}", "player": f"bots/e{n}/versions/1", "bot": ""} for n in range(count)]
    return {"settings.json": changed_settings(files["settings.json"], entrants=entrants, **more)}


DEEP = b"[" * 990 + b"]" * 990


def voids(count: int) -> bytes:
    """So many void matches of one table."""
    return b"".join(
        b'{"table": "r1-t1.%d", "match": "matches/x%d", "reason": "ABORTED", "absent": [], "excuse": ""}\n'
        % (n, n)
        for n in range(count)
    )


def repeat_match(files: dict[str, bytes], **void: Any) -> dict[str, bytes]:
    """The first match is the second attempt; the first one was void."""

    def change(results: Lines) -> None:
        results[0]["table"] += ".2"

    table = json.loads(files["results.jsonl"].splitlines()[0])["table"]
    line = {"table": table, "match": "matches/x", "reason": "ABORTED", "absent": [], "excuse": ""} | void
    return {
        "results.jsonl": changed(files["results.jsonl"], change),
        "voids.jsonl": json.dumps(line).encode() + b"\n",
    }


def add_key(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    """A key of which this version knows nothing, in the first line."""
    first, *rest = files[name].splitlines(keepends=True)
    return {name: first.replace(b"{", b'{"is_void": true, ', 1) + b"".join(rest)}


SECOND_RANKS = b'"ranks": [2, 1], "ranks": '


def test_a_season_of_a_game_that_is_not_installed_is_not_checked(bundle, tmp_path, capsys):
    settings = changed_settings(files_in(bundle)["settings.json"], game="whist", rules_version="some-whist/1")
    other = forged(bundle, tmp_path, {"settings.json": settings})
    code, said = said_of(other, capsys)
    assert code == 2
    assert "not checked: install some-whist, the package that the record names for the game 'whist'" in said
    code, said = said_of(other, capsys, "--json")
    told = json.loads(said)
    assert (code, told["wrong"], told["not_checked"]) == (2, 0, 1)


FORGERIES: dict[str, tuple[Callable[[dict[str, bytes]], dict[str, bytes]], str]] = {
    "a forged score": (forge_score, "by its record points is"),
    "a score forged in its record too": (forge_record, "records.jsonl: line 2"),
    "a result that is gone": (drop_result, "matches/m6 has no result: it was dropped from the log"),
    "a match that is gone": (drop_match, "is missing"),
    "a record that is gone": (drop_record, "matches/m6 has no record"),
    "results that were exchanged": (swap_results, "results.jsonl: line"),
    "a table that was played twice": (repeat_table, "was played in line 1 already"),
    "changed standings": (forge_standings, "standings.json: rows[0].name is"),
    "a changed limit": (
        lambda files: {
            "settings.json": changed_settings(files["settings.json"], time={"free_ms": {"card": 1}})
        },
        "time_control is",
    ),
    "a changed option": (
        lambda files: {"settings.json": changed_settings(files["settings.json"], options={"rounds": 2})},
        "options is",
    ),
    "changed rules": (
        lambda files: {"settings.json": changed_settings(files["settings.json"], rules_version="2")},
        "rules_version is",
    ),
    "another draw": (
        lambda files: {"settings.json": changed_settings(files["settings.json"], seed="7")},
        "results.jsonl: line",
    ),
    "more rounds": (
        lambda files: {"settings.json": changed_settings(files["settings.json"], rounds=4)},
        "results.jsonl: ",
    ),
    "a void match that nobody scheduled": (
        lambda _: {
            "voids.jsonl": b'{"table": "r9-t9", "match": "matches/x", "reason": "ABORTED", "absent": [], "excuse": ""}\n'
        },
        "voids.jsonl: r9-t9 is not a void match of the schedule",
    ),
    "a match that was void and counts": (
        lambda _: {
            "voids.jsonl": b'{"table": "r1-t1", "match": "matches/x", "reason": "ABORTED", "absent": [], "excuse": ""}\n'
        },
        "r1-t1",
    ),
    "a season without end": (
        lambda files: {"settings.json": changed_settings(files["settings.json"], rounds=10**400)},
        "settings.json: rounds is 1000",
    ),
    "orders to the terminal": (
        lambda files: {"settings.json": changed_settings(files["settings.json"], game="\x1b[2J\ud800")},
        "and settings.json has",
    ),
    "a tie-break that is none": (
        lambda files: {"settings.json": changed_settings(files["settings.json"], tie_breaks=["luck"])},
        "there is no tie-break 'luck'",
    ),
    "par that was made up": (
        lambda files: forge_par(files, 1, 2.5),
        "results.jsonl: line 2: par is [1.0, 2.5]; for",
    ),
    "par that is no number": (
        lambda files: forge_par(files, float("nan"), 1),
        "this is no JSON: NaN is no number",
    ),
    "par that is too large": (
        lambda files: {
            "results.jsonl": files["results.jsonl"].replace(b'"par": []', b'"par": [1e999, 1]', 1)
        },
        "results.jsonl: line 1: this is no JSON: 1e999 is too large",
    ),
    "a name for a screen": (
        lambda files: name_at_length(files, 8_000),
        'records.jsonl: line 2: matches/m2: by its record match is "matches/m2", and line 2',
    ),
    "a name for a screen, without a record": (name_without_record, "results.jsonl: line 6: \\x1b[2J\\x1b[2J"),
    "a name for a wall": (
        lambda files: name_at_length(files, 100_000),
        "results.jsonl: line 2: is longer than 65536 bytes",
    ),
    "settings nested deeply": (
        lambda _: {"settings.json": DEEP},
        "settings.json: this is no JSON: its brackets are",
    ),
    "a result nested deeply": (
        lambda files: {"results.jsonl": b'{"seq":1,"x":' + DEEP + b"}\n" + files["results.jsonl"]},
        "results.jsonl: line 1: this is no JSON: its brackets are nested too deeply",
    ),
    "standings nested deeply": (
        lambda _: {"standings.json": DEEP},
        "standings.json: this is no JSON: its brackets",
    ),
    "standings without end": (
        lambda _: {"standings.json": json.dumps(os.urandom(3 << 20).hex()).encode()},
        "standings.json: is longer than 4194304 bytes",
    ),
    "settings of nothing but lists": (
        lambda _: {"settings.json": b"[" + b"[]," * 10**6 + b"0]", "standings.json": os.urandom(1 << 16)},
        "settings.json: this is no JSON: it has more than 1048576 values",
    ),
    "records that are unpacked for ever": (
        lambda _: {"records.jsonl": bytes(100 << 20)},
        "bytes, more than 200 for each of the bundle's",
    ),
    "a rank of true": (forge_rank, "standings.json: rows[0].rank is true; the results give 1"),
    "a table of objects": (
        lambda _: {"voids.jsonl": b'{"table": {}}\n'},
        "voids.jsonl: line 1: table is {}, which no schedule has",
    ),
    "an entrant that is none": (
        lambda _: {"entrants.jsonl": b'{"player": {}, "kind": "given_up", "results": 1}\n'},
        "entrants.jsonl: line 1: {} cannot be 'given_up' here",
    ),
    "a long table": (
        lambda _: {"voids.jsonl": b'{"table": "%s"}\n' % (b"r" * 65)},
        'voids.jsonl: line 1: table is "rrr',
    ),
    "more void matches than can be": (
        lambda _: {"voids.jsonl": voids(2000)},
        "voids.jsonl: more than 1018 void matches, and 6 that count",
    ),
    "more entrants than can have played": (
        lambda files: forge_entrants(files, 29),
        "settings.json: there are 29 entrants, too many for 6 played matches",
    ),
    "more entrants than matches that were given up": (
        lambda files: forge_entrants(files, 3900, rounds=1) | {"voids.jsonl": voids(1000)},
        "settings.json: there are 3900 entrants, too many for 506 played matches",
    ),
    "a cycle longer than was played": (
        lambda files: forge_entrants(files, 20),
        "settings.json: rounds is 19, which does not fit 6 played matches",
    ),
    "a key of one result twice, so that some readers see another winner": (
        lambda files: {"results.jsonl": files["results.jsonl"].replace(b'"ranks": ', SECOND_RANKS, 1)},
        "results.jsonl: line 1: this is no JSON: the key 'ranks' stands twice in one object",
    ),
    "a setting twice": (
        lambda files: {"settings.json": files["settings.json"].replace(b"{", b'{"rounds":9,', 1)},
        "settings.json: this is no JSON: the key 'rounds' stands twice in one object",
    ),
    "a result in UTF-16": (
        lambda files: {"results.jsonl": files["results.jsonl"].decode().encode("utf-16")},
        "results.jsonl: line 1: this is no JSON: 'utf-8' codec can't decode",
    ),
    "brackets that are seen in UTF-16 only": (
        lambda _: {"settings.json": ('{"\u0122":' + "[" * 10**5 + "]" * 10**5 + "}").encode("utf-16")},
        "settings.json: this is no JSON: 'utf-8' codec can't decode",
    ),
    "a strange key in a result": (
        lambda files: add_key(files, "results.jsonl"),
        "results.jsonl: line 1: the key 'is_void' does not belong there",
    ),
    "a strange key in a void match": (
        lambda files: repeat_match(files, is_void=False),
        "voids.jsonl: line 1: the key 'is_void' does not belong there",
    ),
    "a strange key in an entrant": (
        lambda _: {
            "entrants.jsonl": b'{"player": "bots/random1/versions/1", "kind": "given_up", "results": 1, "x": 1}\n'
        },
        "entrants.jsonl: line 1: the key 'x' does not belong there",
    ),
    "an entrant that is given up for no reason": (
        lambda _: {
            "entrants.jsonl": b'{"player": "bots/random1/versions/1", "kind": "given_up", "results": 1}\n'
        },
        "entrants.jsonl: line 1: why must be a text",
    ),
    "a void match that counts": (
        lambda files: repeat_match(files, match="matches/m1"),
        "voids.jsonl: line 1: 'matches/m1' is another match of this season",
    ),
    "a void match without a name": (
        lambda files: repeat_match(files, match={}),
        "voids.jsonl: line 1: match, reason and excuse must be texts",
    ),
    "a void match without a reason": (
        lambda files: repeat_match(files, reason=None),
        "voids.jsonl: line 1: match, reason and excuse must be texts",
    ),
    "a void match twice": (
        lambda files: repeat_match(files) | {"voids.jsonl": repeat_match(files)["voids.jsonl"] * 2},
        "was void already",
    ),
    "no settings at all": (lambda _: {"settings.json": b"[]"}, "settings.json: has no list of entrants"),
    "settings of no league": (
        lambda files: {"settings.json": changed_settings(files["settings.json"], entrants=[{"x": 1}])},
        "settings.json: these are not settings",
    ),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forgery_is_named_though_all_hashes_are_right(bundle, tmp_path, capsys, kind):
    forge, expected = FORGERIES[kind]
    code, said = said_of(forged(bundle, tmp_path, forge(files_in(bundle))), capsys)
    assert code == 1
    assert expected in said
    assert said.count("\n") == 1
    assert said.strip().isprintable()
    assert len(said) < 800


def test_a_match_that_was_void_once_is_accepted(bundle, tmp_path, capsys):
    code, said = said_of(forged(bundle, tmp_path, repeat_match(files_in(bundle))), capsys)
    assert code == 0, said


def forge_set(files: dict[str, bytes], *numbers: int, **changes: Any) -> dict[str, bytes]:
    """Records, from 1, that name their set of duplicate deals otherwise; with their chains and results."""
    records, results = (
        [*map(json.loads, files[name].splitlines())] for name in ("records.jsonl", "results.jsonl")
    )
    for number in numbers:
        record = records[number - 1]
        record["deal_set"] |= changes
        records[number - 1] = record = chained(record)
        results[number - 1] |= {"chain": record["chain"], "deal": record["deal_set"]["name"]}
    return {
        "records.jsonl": b"".join(canonical_json(record) + b"\n" for record in records),
        "results.jsonl": b"".join(json.dumps(result).encode() + b"\n" for result in results),
    }


def rotated(folder: Path) -> Path:
    """A season of two units, in each of which two bots play one deal from both seats."""
    played(folder, league_of("random", "greedy", deals="rotation", is_trusted=True, rounds=2)).close()
    assert publish_season(folder).digest
    return folder / "season.bundle"


SET_FORGERIES: dict[str, tuple[tuple[int, ...], dict[str, Any], str]] = {
    "a deal of another season in one match": (
        (2,),
        {"name": "sets/other-r1-t1"},
        "results.jsonl: line 2: r1-t1-s2 has a deal of sets/other, not of sets/small-a1b2c3",
    ),
    "a set of more matches": (
        (1, 2),
        {"size": 1000},
        "records.jsonl: line 1: r1-t1-s1 is match 1 of 1000 of its set, and must be 1 of 2",
    ),
}


@pytest.mark.parametrize("kind", SET_FORGERIES)
def test_a_deal_that_is_not_shared_as_the_settings_say_is_named(tmp_path, capsys, kind):
    """Or each bot could be given the cards with which it does well, though the page says that their luck cancels out."""
    numbers, changes, expected = SET_FORGERIES[kind]
    bundle = rotated(tmp_path)
    assert said_of(bundle, capsys)[0] == 0
    code, said = said_of(forged(bundle, tmp_path, forge_set(files_in(bundle), *numbers, **changes)), capsys)
    assert (code, expected in said) == (1, True), said


def test_one_deal_under_two_names_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("seasons.one_season._seed", lambda _: bytes(32))
    said = said_of(rotated(tmp_path), capsys)[1]
    assert "r2-t1-s1 has the same deal as the set sets/small-a1b2c3-r1-t1" in said


@pytest.mark.parametrize("table", ["zzz", "u1-s1.2", "u9-s1"])
def test_a_test_has_no_void_matches_of_tables_that_it_has_not(tmp_path, capsys, table):
    names = ("random", "greedy")
    league = league_of(*names, format="ab-test", deals="rotation", is_trusted=True, rounds=8)
    played(tmp_path, league).close()
    publish_season(tmp_path)
    void = (
        b'{"table": "%s", "match": "matches/x", "reason": "ABORTED", "absent": [], "excuse": ""}\n'
        % table.encode()
    )
    other = forged(tmp_path / "season.bundle", tmp_path, {"voids.jsonl": void})
    assert f"voids.jsonl: {table} is not a void match of the schedule" in said_of(other, capsys)[1]


WALK_OVERS = {
    "round robin": {},
    "knockout": {"format": "knockout"},
    "swiss": {"format": "swiss", "rounds": 3},
}


@pytest.mark.parametrize("form", WALK_OVERS)
def test_a_walk_over_is_recorded_verified_and_shown(tmp_path, capsys, form):
    league = league_of(deals="none", **WALK_OVERS[form])
    lost = miss_first_match(tmp_path, league)
    played(tmp_path, league).close()
    assert publish_season(tmp_path).digest
    bundle = tmp_path / "season.bundle"
    assert said_of(bundle, capsys)[0] == 0
    rows = {row["player"]: row for row in json.loads((tmp_path / "standings.json").read_text())["rows"]}
    absent = lost.bots[0]
    assert (rows[absent]["walk_overs"], rows[lost.bots[1]]["walk_overs"]) == (1, 0)
    assert "Walk-overs" in (tmp_path / "report.html").read_text()
    for changes, expected in (
        ({"absent": [lost.bots[1]]}, "standings.json" if form == "round robin" else ""),
        ({"absent": ["bots/nobody/versions/1"]}, "was not missed by" if form == "round robin" else ""),
        ({"excuse": "LIMIT"}, ""),
    ):
        line = changed(
            files_in(bundle)["voids.jsonl"], lambda voids, to=changes: [void.update(to) for void in voids]
        )
        code, said = said_of(forged(bundle, tmp_path, {"voids.jsonl": line}), capsys)
        assert (code, expected in said) == (1, True), said


def miss_first_match(folder: Path, league: Any) -> Any:
    """The first bot of the first match misses it twice."""
    book = played(folder, league, most=0)
    first = season_log.find_due_matches(schedule_of(league), book)[0]
    for number, table in enumerate((first.id, f"{first.id}.2")):
        book.append_void(Void(table, f"matches/v{number}", "TOO_FEW_SAT", first.bots[:1]))
    book.close()
    return first


def test_an_annulled_walk_over_is_played_again_and_its_reason_is_published(tmp_path, capsys):
    league = league_of(deals="none", format="knockout")
    lost = miss_first_match(tmp_path, league)
    command = ["league", "annul", lost.id, str(tmp_path), "--why", "the hall had no network"]
    assert main(command) == 0
    assert main(command) == 2
    assert "no match is lost by walk-over" in capsys.readouterr().err
    book = played(tmp_path, league)
    book.close()
    assert f"{lost.id}.3" in book.season.results
    assert publish_season(tmp_path).digest
    assert said_of(tmp_path / "season.bundle", capsys)[0] == 0
    voids = [json.loads(line) for line in files_in(tmp_path / "season.bundle")["voids.jsonl"].splitlines()]
    assert {void["excuse"] for void in voids} == {"annulled: the hall had no network"}


def test_a_walk_over_on_which_a_later_round_rests_is_not_annulled(tmp_path, capsys):
    league = league_of(deals="none", format="knockout")
    lost = miss_first_match(tmp_path, league)
    played(tmp_path, league).close()
    assert main(["league", "annul", lost.id, str(tmp_path), "--why", "late"]) == 2
    assert "a later round was drawn" in capsys.readouterr().err


def test_a_test_has_no_size_that_overflows(tmp_path, capsys):
    league = league_of("random", "greedy", format="ab-test", deals="rotation", is_trusted=True, rounds=8)
    played(tmp_path, league).close()
    publish_season(tmp_path)
    files = files_in(tmp_path / "season.bundle")
    trial = json.loads(files["settings.json"])["trial"]
    for points in ("1e308", "inf", "nan"):
        settings = changed_settings(files["settings.json"], trial=trial | {"least_points": points})
        other = forged(tmp_path / "season.bundle", tmp_path, {"settings.json": settings})
        assert "least_points: must be between 0 and 1000" in said_of(other, capsys)[1]


def test_par_is_right_if_the_par_bot_scores_it(bundle, tmp_path, capsys):
    files = files_in(bundle)
    pars = iter([par_of(json.loads(line)) for line in files["records.jsonl"].splitlines()])

    def change(results: Lines) -> None:
        for result in results:
            result["par"] = list(next(pars))

    results = changed(files["results.jsonl"], change)
    code, said = said_of(forged(bundle, tmp_path, {"results.jsonl": results}), capsys)
    assert code == 0, said


@pytest.mark.parametrize("way", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_what_unpacks_in_little_memory_is_unpacked(bundle, tmp_path, capsys, way):
    """LZMA may ask for four gigabytes."""
    with zipfile.ZipFile(tmp_path / "packed", "w", way) as archive, zipfile.ZipFile(bundle) as genuine:
        for name in genuine.namelist():
            archive.writestr(name, genuine.read(name))
    assert "manifest.json: is packed in another way" in said_of(tmp_path / "packed", capsys)[1]


def test_no_more_is_read_of_a_directory_than_seven_files_need(bundle, tmp_path, capsys):
    path = tmp_path / "directory.bundle"
    path.write_bytes(bundle.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(3000):
            archive.writestr(f"{number}", b"")
    assert "this is no bundle: its directory is too long" in said_of(path, capsys)[1]


def test_a_name_in_the_zip_that_is_no_text_is_named(bundle, tmp_path, capsys):
    """Before each file the zip has its name once more."""
    archive = bytearray(bundle.read_bytes())
    with zipfile.ZipFile(bundle) as genuine:
        start = genuine.getinfo("settings.json").header_offset
    archive[start + 7] |= 8  # the name is in UTF-8
    archive[start + 30] = 0xFF
    (tmp_path / "name.bundle").write_bytes(archive)
    code, said = said_of(tmp_path / "name.bundle", capsys)
    assert (code, "settings.json: cannot be unpacked: 'utf-8' codec" in said) == (1, True)


def test_a_file_that_lies_before_the_zip_is_named(bundle, tmp_path, capsys):
    archive = bytearray(bundle.read_bytes())
    archive[-6:-2] = (int.from_bytes(archive[-6:-2], "little") + 1000).to_bytes(4, "little")
    (tmp_path / "before.bundle").write_bytes(archive)
    code, said = said_of(tmp_path / "before.bundle", capsys)
    assert (code, "cannot be unpacked: its directory names a place before its beginning" in said) == (1, True)


def test_a_match_that_was_dropped_is_named_by_who_played_it(bundle, tmp_path, capsys):
    said = said_of(forged(bundle, tmp_path, drop_match(files_in(bundle))), capsys)[1]
    assert "the match r" in said
    assert "bots/random" in said


def test_a_match_that_nobody_scheduled_is_named(tmp_path, capsys):
    """As by a runner that played on until it liked the table."""
    league = league_of(format="gauntlet", challengers=("greedy2",), rounds=6)
    played(tmp_path, league).close()
    publish_season(tmp_path)
    files = files_in(tmp_path / "season.bundle")
    fewer = changed_settings(files["settings.json"], rounds=3)
    said = said_of(forged(tmp_path / "season.bundle", tmp_path, {"settings.json": fewer}), capsys)[1]
    assert "is not in the schedule of these settings" in said


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"PK\x03\x04" + bytes(100)])
def test_a_file_that_only_begins_as_a_bundle_is_refused(tmp_path, capsys, content):
    (tmp_path / "none").write_bytes(content)
    code, said = said_of(tmp_path / "none", capsys)
    assert code == 1
    assert "this is no bundle" in said


def test_a_strange_file_does_not_belong_into_a_bundle(bundle, tmp_path, capsys):
    path = tmp_path / "more.bundle"
    path.write_bytes(bundle.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../evil", b"")
    assert "'../evil' does not belong into a bundle" in said_of(path, capsys)[1]


BARE = """
import sys
for name in ("grpc", "hiredis", "jinja2", "markupsafe", "openskill", "prometheus_client", "redis", "rich", "structlog"):
    sys.modules[name] = None
from seatwise.cli import main
from seatwise_referee.journal import canonical_json
sys.exit(main(["verify", sys.argv[1]]))
"""


def test_the_bare_package_is_enough_to_work_a_season_out_again(bundle):
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(bundle)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "the schedule and the table of its 4 entrants follow from the records" in done.stdout


def test_where_the_arithmetic_is_not_installed_the_table_is_said_not_to_be_checked(
    bundle, capsys, monkeypatch
):
    monkeypatch.setattr("seatwise.season.checking.entry_points", lambda **_: [])
    code, said = said_of(bundle, capsys)
    assert code == 0
    assert "6 records verified" in said
    assert "NOT CHECKED: schedule and table; that needs the server extra" in said


def test_nothing_of_our_disk_is_published(bundle):
    assert json.loads(files_in(bundle)["settings.json"])["entrants"][0]["bot"] == "random"


def test_a_season_that_goes_on_has_no_bundle_yet(tmp_path):
    played(tmp_path, league_of(), most=3).close()
    assert not publish_season(tmp_path).digest
    assert (tmp_path / "standings.json").exists()
    assert not (tmp_path / "season.bundle").exists()
