"""The settings of `seatwise serve`: from the command line, the environment and a file, in this order; no secret is shown."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from seatwise.errors import UsageError
from seatwise_server.cli import serve
from seatwise_server.config import Config
from seatwise_server.settings import hide_passwords, read_settings, write_table

ROOT = Path(__file__).parents[3]
FILE = """
http-port = 8000
ws_port = 8001
http-cors = ["https://a.example", "*"]
no-house-bots = true
keep-records = 2.5
max-memory = "900M"
redis = "redis://:hidden@db/0"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SEATWISE_REDIS", raising=False)
    path = tmp_path / "seatwise.toml"
    path.write_text(FILE)
    return path


def config_of(*options: str) -> Config:
    parser = ArgumentParser()
    serve.add_options(parser)
    return serve.make_config(serve.options_from(parser.parse_args(options)))


def sources_of(*options: str) -> dict[str, tuple[Any, str]]:
    parser = ArgumentParser()
    serve.add_options(parser)
    return {
        name: (each.value, each.source) for name, each in read_settings(parser.parse_args(options)).items()
    }


def test_the_command_line_goes_before_the_environment_before_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATWISE_HTTP_PORT", "8100")
    monkeypatch.setenv("SEATWISE_WS_PORT", "8101")
    monkeypatch.setenv("SEATWISE_HTTP_CORS", "https://b.example, https://c.example")
    monkeypatch.setenv("SEATWISE_ALLOW_LOSS", "yes")
    found = sources_of("--config", str(file), "--ws-port", "8201")
    assert found["http_port"] == (8100, "SEATWISE_HTTP_PORT")
    assert found["ws_port"] == (8201, "--ws-port")
    assert found["http_cors"] == (("https://b.example", "https://c.example"), "SEATWISE_HTTP_CORS")
    assert found["allow_loss"] == (True, "SEATWISE_ALLOW_LOSS")
    assert found["max_memory"] == (900 * 2**20, str(file))
    assert found["port"] == (7433, "default")
    config = config_of("--config", str(file))
    assert (config.keep_records_s, config.house_bots) == (216_000, False)
    assert config.redis_url == "redis://:hidden@db/0"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("http-prot = 1", "there is no setting http-prot; is it http-port?"),
        ("port = true", "port: True is no value for it"),
        ("port = 99999", "'99999' is not a port"),
        ("port = [1]", "port: [1] is no value for it"),
        ("no-http = 1", "no-http: 1 is neither true nor false"),
        ('http-cors = "*"', "is no list, such as ['*']"),
        ('registration = "open"', "'open' is none of closed, invite"),
        ("port = ", "Invalid value"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        config_of("--config", str(path))
    assert str(refused.value).startswith(f"{path}: ")
    assert why in str(refused.value)


def test_a_password_comes_from_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "redis+sentinel://me:hidden@a,b/service?sentinel_password=too"
    with pytest.raises(UsageError, match="--redis: a password is for files only") as refused:
        config_of("--redis", url)
    assert "hidden" not in str(refused.value)
    monkeypatch.setenv("SEATWISE_REDIS", url)
    with pytest.raises(UsageError, match="SEATWISE_REDIS: a password"):
        config_of()
    monkeypatch.setenv("SEATWISE_REDIS", "rediss://db")
    assert config_of().redis_url == "rediss://db"
    secret = tmp_path / "redis.url"
    secret.write_text(f"{url}\n")
    with pytest.raises(UsageError, match="both name a Redis"):
        config_of("--redis-file", str(secret))
    monkeypatch.delenv("SEATWISE_REDIS")
    assert config_of("--redis-file", str(secret)).redis_url == url
    secret.write_text("\n")  # as from a secret that is not there
    with pytest.raises(UsageError, match="it holds no URL of Redis"):
        config_of("--redis-file", str(secret))
    assert hide_passwords(url) == "redis+sentinel://me:***@a,b/service?sentinel_password=***"


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_config_show_tells_where_values_are_from_and_no_secret(
    file: Path, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    parser = ArgumentParser()
    serve.configure_show(parser)
    assert serve.show_settings(parser.parse_args(["show", *how, "--config", str(file), "--port", "1"])) == 0
    said = capsys.readouterr().out
    assert "hidden" not in said
    assert "redis://:***@db/0" in said
    if how:
        rows = [json.loads(line) for line in said.splitlines()]
        assert {"setting": "port", "value": 1, "source": "--port"} in rows
        assert {"setting": "http-port", "value": 8000, "source": str(file)} in rows


def test_the_guide_has_the_table_of_all_settings() -> None:
    """Write it with `seatwise config show --markdown`."""
    assert write_table() in (ROOT / "docs/operator-guide.md").read_text()
