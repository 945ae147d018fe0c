"""The page of a season: all of it in one file, readable without a script, and with nobody's markup but ours."""

from __future__ import annotations

import csv
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from seasons.one_season import league_of, played

from seatwise.cli import main
from seatwise_server.competition.logged_result import LoggedResult
from seatwise_server.competition.ratings.strengths import StrengthFit, fit_strengths
from seatwise_server.league.publishing import publish_season
from seatwise_server.league.report import facts
from seatwise_server.league.report.facts import describe_leaders
from seatwise_server.league.season_log import Void
from seatwise_server.league.settings import Entrant

VOID_TAGS = {"meta", "br"}


class Page(HTMLParser):
    """Checks that all that is opened is closed, and collects what it is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        told = dict(attrs)
        self.ids += [told["id"] or ""] if "id" in told else []
        self.links += [told[key] or "" for key in ("href", "src") if key in told]
        assert not any(key.startswith("on") for key in told)
        if tag not in VOID_TAGS:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a season that is over."""
    folder = tmp_path_factory.mktemp("season")
    played(folder, league_of(rounds=6)).close()
    publish_season(folder)
    return folder


def page_in(folder: Path) -> Page:
    """Its page."""
    return Page((folder / "report.html").read_text())


def test_the_page_needs_nothing_else(folder):
    page = page_in(folder)
    assert "script" not in page.tags
    beside = [link for link in page.links if not link.startswith("#")]
    assert sorted(beside) == ["crosstable.csv", "results.csv", "season.bundle", "standings.csv"]
    assert all((folder / link).exists() for link in beside)
    assert not re.search(r"url\(|@import|https?://", (folder / "report.html").read_text())


def test_every_section_can_be_reached(folder):
    page = page_in(folder)
    assert {link.removeprefix("#") for link in page.links if link.startswith("#")} == set(page.ids)
    assert {
        "standings",
        "crosstable",
        "curves",
        "points",
        "seats",
        "incidents",
        "statistics",
        "fairness",
        "verify",
    } <= set(page.ids)


def test_the_first_sentence_is_the_verdict_and_a_date_follows(folder):
    os.utime(folder / "season.jsonl", (0, 0))
    publish_season(folder)
    text = (folder / "report.html").read_text()
    [first, second, *_] = re.findall(r"<p[^>]*>(.*?)</p>", text, re.S)
    assert re.match(r"\w+\d (wins|leads)?(, (but|and) the results|\.| and )", first), first
    assert 'last written on <time datetime="1970-01-01">1 January 1970</time>' in second


@pytest.mark.parametrize(
    ("leaders", "rivals", "is_over", "said"),
    [
        ([], None, False, "No result counts yet."),
        (["a", "b"], None, True, "a and b share the first rank."),
        (["a"], None, False, "a leads."),
        (["a"], [], True, "a wins, and the results tell it apart from every other entrant."),
        (["a"], ["b", "c"], True, "a wins, but the results do not tell it apart from b and c."),
    ],
)
def test_a_verdict_says_how_certain_it_is(leaders, rivals, is_over, said):
    assert describe_leaders(leaders, rivals, is_over=is_over) == said


def test_a_cell_of_the_crosstable_leads_to_the_matches_of_the_pair(folder, capsys):
    text = (folder / "report.html").read_text()
    cells = re.findall(r'<td class="\w*"><a href="#(pair-\d+-\d+)">', text)
    assert len(cells) == 2 * len(set(cells)) > 0
    for anchor in cells:
        [section] = re.findall(rf'<section class="pair" id="{anchor}">(.*?)</section>', text, re.S)
        [first, *_] = re.findall(r"<li><code>(\w+)</code>", section)
    assert main(["replay", str(folder / "season.bundle"), first, "--at", "0"]) == 0
    assert f"matches/{first} " in capsys.readouterr().out


def test_a_long_season_lists_some_of_the_matches_of_each_pair(folder, monkeypatch):
    monkeypatch.setattr(facts, "MOST_PAIR_LINES", 6)
    publish_season(folder)
    text = (folder / "report.html").read_text()
    assert re.search(r"<p class=\"note\">And \d+ more; the bundle holds all.</p></section>", text)
    assert all(
        len(re.findall("<li>", section)) == 1
        for section in re.findall(r'<section class="pair".*?</section>', text, re.S)
    )
    monkeypatch.undo()
    publish_season(folder)


def test_a_table_wider_than_a_phone_scrolls_and_can_be_reached_by_keys(folder):
    text = (folder / "report.html").read_text()
    wide = re.findall(r'<div class="wide"[^>]*>', text)
    assert len(wide) > 5
    assert all('tabindex="0"' in each for each in wide)
    assert len(wide) == len(re.findall(r'<div class="wide"[^>]*>(?:<table>|<svg)', text))


def test_no_name_is_cut_on_a_phone(folder):
    assert "ellipsis" not in (folder / "report.html").read_text()


def test_it_is_for_light_and_for_dark(folder):
    text = (folder / "report.html").read_text()
    assert "prefers-color-scheme: dark" in text
    assert "color-scheme: light dark" in text


def test_everybody_is_in_the_table_with_strength_and_whom_it_cannot_be_told_from(folder):
    words = " ".join(page_in(folder).words)
    standings = json.loads((folder / "standings.json").read_text())
    assert [row["rank"] for row in standings["rows"]] == sorted(row["rank"] for row in standings["rows"])
    for row in standings["rows"]:
        assert row["name"] in words
        assert f"{row['points']:.2f}" in words
    assert "not distinguishable from" in words


def test_every_plot_says_what_it_shows(folder):
    text = (folder / "report.html").read_text()
    pictures = re.findall(r"<svg[^>]*>.*?</svg>", text, re.S)
    assert len(pictures) >= 7
    for picture in pictures:
        assert re.match(r'<svg[^>]*aria-label="[^"]+"[^>]*><title>[^<]+</title>', picture)
        assert "nan" not in picture
        assert "inf" not in picture.replace("info", "")


def test_the_luck_of_the_deal_is_taken_off_and_how_much_that_was_is_said(folder):
    text = (folder / "report.html").read_text()
    assert "Corrected for the luck of the deal" in text
    assert re.search(
        r"Minus -?\d[^ ]* of the score of greedy and -?\d[^ ]* of the mean score of playouts[^<]*:"
        r" \d+ % of the variance of single matches remains",
        text,
    )


def test_the_digest_on_the_page_is_that_of_the_bundle(folder, capsys):
    assert main(["verify", str(folder / "season.bundle"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] in (folder / "report.html").read_text()


def test_the_same_season_is_the_same_page(folder):
    before = (folder / "report.html").read_text()
    publish_season(folder)
    assert (folder / "report.html").read_text() == before


def test_tables_are_there_for_spreadsheets(folder):
    with (folder / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    seasons = json.loads((folder / "standings.json").read_text())
    assert len(rows) == 2 * seasons["matches"]
    with (folder / "standings.csv").open() as file:
        assert [row["name"] for row in csv.DictReader(file)] == [row["name"] for row in seasons["rows"]]


def test_a_name_is_shown_as_text_and_never_as_markup(tmp_path):
    entrants = (
        Entrant("<script>alert(1)</script>", "bots/a/versions/1", "greedy"),
        Entrant("\"&'>", "bots/b/versions/1", "random"),
    )
    played(tmp_path, league_of(entrants=entrants, rounds=4)).close()
    publish_season(tmp_path)
    page = page_in(tmp_path)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.words


def test_entrants_of_one_owner_are_named(tmp_path):
    entrants = tuple(
        Entrant(name, f"bots/{name}/versions/1", "random", owner)
        for name, owner in (("a", "ann"), ("b", "ann"), ("c", "cy"))
    )
    played(tmp_path, league_of(entrants=entrants, rounds=3)).close()
    publish_season(tmp_path)
    words = " ".join(page_in(tmp_path).words)
    assert "a and b have one owner, ann." in words
    assert "owner, cy" not in words


def test_a_season_that_goes_on_says_so(tmp_path):
    played(tmp_path, league_of(), most=1).close()
    publish_season(tmp_path)
    words = " ".join(page_in(tmp_path).words)
    assert "The season is not over:" in words
    assert "5 matches are still due" in words
    assert "Differences at every look" in words
    assert "Intervals hold in 95 of 100 seasons, at every look." in words


FIGURES_OF_ONE_LOOK = ("Points a match", "Differences on the same deals", "The better of two", "Final orders")


def test_figures_of_one_look_come_when_a_season_is_over(folder, tmp_path):
    assert {*FIGURES_OF_ONE_LOOK, "Corrected for the luck of the deal"} <= {*page_in(folder).words}
    played(tmp_path, league_of(), most=4).close()
    publish_season(tmp_path)
    assert not {*FIGURES_OF_ONE_LOOK, "Corrected for the luck of the deal"} & {*page_in(tmp_path).words}


def test_the_verdict_of_a_season_that_goes_on_holds_at_every_look(tmp_path, monkeypatch):
    def name_others(self, bot, *, at_every_look=False):
        return tuple(each.bot for each in self.strengths if each.bot != bot) if at_every_look else ()

    monkeypatch.setattr(StrengthFit, "indistinct_bots", name_others)
    played(tmp_path, league_of(), most=5).close()
    publish_season(tmp_path)
    assert "leads, but the results do not tell it apart from" in " ".join(page_in(tmp_path).words)


def test_a_season_that_is_over_has_the_intervals_of_one_look(folder):
    words = page_in(folder).words
    assert "Differences on the same deals" in words
    assert "Differences at every look" not in words


def test_beside_the_verdict_of_a_test_is_no_interval_for_one_look(tmp_path):
    settings = {"format": "ab-test", "deals": "rotation", "entrants": league_of("greedy", "random").entrants}
    league = league_of(**settings, options={"rounds": 6}, rounds=40)
    book = played(tmp_path, league)
    book.close()
    publish_season(tmp_path)
    words = " ".join(page_in(tmp_path).words)
    assert not {*FIGURES_OF_ONE_LOOK, "Corrected for the luck of the deal"} & {*page_in(tmp_path).words}
    assert "hold at every look" in words
    for strength in fit_strengths(book.season.results.values()).widen_for_every_look().strengths:
        assert f"{strength.low:.2f} to {strength.high:.2f}" in words
    assert "H0: random2 does not make" not in words
    standings = json.loads((tmp_path / "standings.json").read_text())
    low, high = standings["difference_interval"]
    assert low < standings["difference"] < high
    assert standings["has_too_few"], "40 units decide nothing, however clear they seem"
    assert "there are too few different deals to decide" in words
    assert main(["verify", str(tmp_path / "season.bundle")]) == 0


def test_results_whose_deals_may_yet_be_played_are_withheld_until_their_records_are_here(tmp_path, capsys):
    book = played(tmp_path, league_of(rounds=2, deals="travelling"))
    *_, result = book.season.results.values()
    assert result.deal
    sharing = [each for each in book.season.results.values() if each.deal == result.deal]
    book.close()
    whole = (tmp_path / "season.jsonl").read_text().splitlines(keepends=True)
    names = {each.match for each in sharing}
    running = [
        line
        for line in whole
        if not ((it := json.loads(line)).get("kind") == "record" and it["match"] in names)
    ]
    (tmp_path / "season.jsonl").write_text("".join(running))
    assert main(["league", "report", str(tmp_path)]) == 0
    assert f"Results withheld until their deals are over: {len(sharing)}" in capsys.readouterr().out
    assert f"{len(sharing)} results are withheld" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "standings.json").read_text())["withheld"] == len(sharing)
    with (tmp_path / "results.csv").open() as file:
        assert not names & {row["match"] for row in csv.DictReader(file)}
    (tmp_path / "season.jsonl").write_text("".join(whole))
    publish_season(tmp_path)
    assert "withheld" not in json.loads((tmp_path / "standings.json").read_text())
    assert "are withheld" not in (tmp_path / "report.html").read_text()


def test_a_season_of_which_nothing_is_played_yet_has_a_page(tmp_path):
    played(tmp_path, league_of(), most=0).close()
    publish_season(tmp_path)
    assert "6 matches are still due" in " ".join(page_in(tmp_path).words)


def test_forfeits_and_voids_are_told_with_what_is_known_of_them(tmp_path):
    league = league_of()
    book = played(tmp_path, league, most=1)
    [result] = book.season.results.values()
    bots = league.players[:2]
    book.append_result(
        "r1-t9", LoggedResult(2, "matches/m9", bots, (9, 4), (1, 2), ("COMPLETED", "TIMED_OUT"))
    )
    told = {
        "match": "matches/m9",
        "bots": bots,
        "points": (9, 4),
        "ranks": (1, 2),
        "endings": ("COMPLETED", "TIMED_OUT"),
    }
    book.append_record("matches/m9", forfeited(book.season.records[result.match], told))
    book.append_void(Void("r1-t2", "matches/m2", "ABORTED: the cat"))
    book.give_up_entrant(league.players[2], "started 4 times in a row")
    book.close()
    publish_season(tmp_path)
    words = " ".join(page_in(tmp_path).words)
    assert "seq 7, 3100 ms: forfeited (TIMED_OUT)" in words
    assert "seq 4, 1060 ms: ran out of time" in words
    assert "ABORTED: the cat" in words
    assert "started 4 times in a row" in words


def forfeited(record: str, told: dict[str, tuple]) -> str:
    """The record as that of another match, with entries that tell how a seat was forfeited."""
    late = {"kind": "default", "reason": "TIMED_OUT", "moves": [{"seat": 1, "move": {}}]}
    entries = [
        late | {"seq": 4, "at_ms": 1060},
        {"kind": "rejected", "seq": 5, "at_ms": 1070, "seat": 0, "reason": "ILLEGAL"},
        late | {"seq": 6, "at_ms": 3100},
        {"kind": "forfeited", "seq": 7, "at_ms": 3100, "seat": 1, "ending": "TIMED_OUT"},
    ]
    facts = {
        "match": told["match"], "seats": [{"bot": bot} for bot in told["bots"]], "outcome": {"points": told["points"]},
        "result": {"ranks": told["ranks"]}, "endings": told["endings"], "chain": "", "deal_set": {},
        "entries": entries,
    }  # fmt: skip
    return json.dumps(json.loads(record) | facts)


def test_a_knockout_is_said_to_go_by_its_bracket(tmp_path):
    played(tmp_path, league_of(format="knockout")).close()
    standings = publish_season(tmp_path).standings
    words = " ".join(page_in(tmp_path).words)
    assert standings["tie_breaks"] == []
    assert "Ordered by the round that each entrant reached" in words
    assert "Ordered by mean points" not in words
