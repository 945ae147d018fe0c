"""What deploy/ holds: every file is what its tool wants, a broken one is refused, and all of it fits the server."""

from __future__ import annotations

import importlib.util
import re
import shutil
from argparse import ArgumentParser
from pathlib import Path

import pytest
import yaml

from seatwise_server import metrics
from seatwise_server.cli import ctl, serve
from seatwise_server.config import Config
from seatwise_server.rpc import grpc_server as rpc_server

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"

_spec = importlib.util.spec_from_file_location("deploy_check", DEPLOY / "check.py")
assert _spec
assert _spec.loader
check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check)

BROKEN = [
    ("Dockerfile", "Dockerfile", "COPY proto proto", "COPY proto proto extra"),
    ("Dockerfile", "Dockerfile", "ARG BASE=python:3.13-slim", "ARG BASE=python"),
    ("compose.yaml", "compose.yaml", "    command: [redis-server", "    comand: [redis-server"),
    ("compose.yaml", "compose.yaml", 'volumes: ["redis:/data"', 'volumes: ["reddis:/data"'),
    ("kubernetes/", "kubernetes/referee.yaml", "  serviceName:", "  servicename:"),
    ("kubernetes/", "kubernetes/lobby.yaml", "  replicas: 2", "  replicas: two"),
    ("kubernetes/", "kubernetes/gateway.yaml", "kind: Deployment", "kind: Deploiment"),
    ("kubernetes/", "kubernetes/config.yaml", "stringData:", "stringdata:"),
    ("kubernetes/", "kubernetes/metrics.yaml", "data:", "date:"),
    ("kubernetes/", "kubernetes/front-door.yaml", "type: LoadBalancer", "type: 7"),
    ("nginx", "kubernetes/front-door.yaml", "grpc_pass grpcs://lobbies;", "grpc_pas grpcs://lobbies;"),
    ("nginx", "nginx.conf", "listen 7443 ssl http2;", "listen 7443 ssl http2"),
    ("TLS", "nginx.conf", "listen 7443 ssl http2;", "listen 7443 http2;"),
    ("TLS", "nginx.conf", "grpc_pass grpcs://lobbies;", "grpc_pass grpc://lobbies;"),
    ("TLS", "nginx.conf", "grpc_ssl_verify on;", "grpc_ssl_verify off;"),
    ("TLS", "kubernetes/front-door.yaml", "grpc_ssl_verify on;\n", "\n"),
    ("TLS", "kubernetes/front-door.yaml", "grpcs://$referee", "grpc://$referee"),
    ("TLS", "kubernetes/lobby.yaml", "            - --tls-key=/etc/seatwise/tls/tls.key\n", ""),
    ("TLS", "kubernetes/config.yaml", "rediss+sentinel://", "redis+sentinel://"),
    ("TLS", "compose.yaml", "rediss://", "redis://"),
    ("TLS", "compose.yaml", "--tls-cert, /etc/seatwise/tls/tls.crt, ", ""),
    ("TLS", "systemd/seatwise.service", " --tls auto", ""),
    ("TLS", "systemd/seatwise-front.service", " --tls-key /etc/seatwise/tls.key", ""),
    ("TLS", "systemd/seatwise-front.service", "rediss://", "redis://"),
    ("kubernetes/", "kubernetes/network.yaml", "policyTypes: [Ingress]", "policyTipes: [Ingress]"),
    ("limits", "nginx.conf", "limit_conn streams 512;", ""),
    ("limits", "kubernetes/front-door.yaml", "limit_req zone=calls burst=400 nodelay;", ""),
    ("limits", "kubernetes/front-door.yaml", "  externalTrafficPolicy: Local\n", ""),
    ("limits", "kubernetes/gateway.yaml", "              memory: 512Mi", "              cpu: 1"),
    ("limits", "kubernetes/network.yaml", "podSelector: {}", "podSelector: {matchLabels: {a: b}}"),
    ("limits", "kubernetes/network.yaml", "values: [lobby, gateway, referee]", "values: [lobby, gateway]"),
    ("limits", "systemd/seatwise.service", "MemoryMax=80%\n", ""),
    ("limits", "systemd/seatwise-front.service", "StartLimitIntervalSec=0\n", ""),
    ("limits", "systemd/seatwise-referee@.service", "Restart=on-failure\n", ""),
    ("limits", "compose.yaml", "  mem_limit: 1g\n", ""),
    ("systemd/", "systemd/seatwise.service", "KillMode=mixed", "KilMode=mixed"),
    ("systemd/", "systemd/seatwise-front.service", "ExecStart=/", "ExecStart="),
    ("systemd/", "systemd/seatwise-referee@.service", "CapabilityBoundingSet=\n", ""),
]


def found_by(what: str, folder: Path) -> list[str]:
    """The complaints of one check; the test is left out where its tool is missing."""
    try:
        return list(check.CHECKS[what](folder))
    except check.Missing as missing:
        pytest.skip(f"NOT CHECKED HERE: {missing}")


@pytest.mark.parametrize("what", check.CHECKS)
def test_the_files_of_deploy_are_in_order(what):
    assert found_by(what, DEPLOY) == []


FIRST_OF_EACH = {what: at for at, (what, *_) in reversed(list(enumerate(BROKEN)))}.values()


@pytest.mark.parametrize(
    ("what", "name", "right", "wrong"),
    [
        pytest.param(*each, marks=() if at in FIRST_OF_EACH else pytest.mark.slow)
        for at, each in enumerate(BROKEN)
    ],
)
def test_a_broken_copy_is_refused(tmp_path, what, name, right, wrong):
    folder = tmp_path / "deploy"
    shutil.copytree(DEPLOY, folder)
    text = (folder / name).read_text()
    assert right in text
    (folder / name).write_text(text.replace(right, wrong, 1))
    assert found_by(what, folder)


def test_every_file_has_its_broken_copy():
    checked = {path for pattern in ("Dockerfile", "*.yaml", "*.conf") for path in DEPLOY.glob(pattern)}
    checked |= {*DEPLOY.glob("kubernetes/*"), *DEPLOY.glob("systemd/*")}
    assert {str(path.relative_to(DEPLOY)) for path in checked} == {name for _, name, _, _ in BROKEN}


def test_a_missing_tool_is_said_and_fails_nothing(monkeypatch, capsys):
    monkeypatch.setattr(check.shutil, "which", lambda *_, **__: None)
    assert check.main(DEPLOY) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(
        [name for name in check.CHECKS if name not in ("TLS", "limits")]
    )  # these need no tool
    assert all(line.startswith("not checked here: deploy/") for line in said)


# What they ask of the server


def manifests() -> list[dict]:
    return [
        it for path in sorted(DEPLOY.glob("kubernetes/*.yaml")) for it in yaml.safe_load_all(path.read_text())
    ]


def containers() -> dict[str, dict]:
    """Those of ours, by the workload's name."""
    return {
        it["metadata"]["name"]: container
        for it in manifests()
        if it["kind"] in ("Deployment", "StatefulSet")
        for container in it["spec"]["template"]["spec"]["containers"]
        if container["name"] == "seatwise"
    }


def entry_point() -> list[str]:
    """Of the image, without the command itself."""
    [line] = [
        line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("ENTRYPOINT")
    ]
    return list(yaml.safe_load(line.removeprefix("ENTRYPOINT ")))[2:]


def command_lines() -> dict[str, list[str]]:
    """All that are here, by where they are from: the arguments of `seatwise serve`."""
    lines = check.command_lines(DEPLOY)
    return {
        name: line if name.endswith(".service") else [*entry_point(), *line] for name, line in lines.items()
    }


def config_of(line: list[str]) -> Config:
    parser = ArgumentParser(exit_on_error=False)
    serve.configure(parser)
    return serve.config_of(parser.parse_args(line))


@pytest.mark.parametrize("name", command_lines())
def test_every_command_line_is_one_that_the_server_takes(name, monkeypatch):
    monkeypatch.setenv("SEATWISE_REDIS", "redis://db")
    config = config_of(command_lines()[name])
    assert config.host == "0.0.0.0"
    assert config.metrics_port is not None
    assert bool(config.address) == (config.roles == {"referee"})
    assert config.tls


def test_a_password_stands_on_no_command_line():
    assert not [name for name, line in command_lines().items() if "--redis" in " ".join(line)]


def test_all_roles_are_there_in_every_way_to_run_several_processes():
    kinds = {"compose": "compose ", "systemd": "seatwise-", "kubernetes": "seatwise-"}
    for kind, prefix in kinds.items():
        lines = [
            line
            for name, line in command_lines().items()
            if name.startswith(prefix) and name.endswith(".service") == (kind == "systemd")
        ]
        assert set().union(*[config_of(line).roles for line in lines]) == set(serve.ROLES)


def test_probes_ask_for_what_the_server_answers():
    for name, container in containers().items():
        assert container["readinessProbe"]["grpc"]["service"] == rpc_server.ABLE, name
        assert container["livenessProbe"]["grpc"]["service"] == rpc_server.LIVE, name
        # The probes of Kubernetes speak no TLS.
        port = config_of([*entry_point(), *container["args"]]).health_port
        assert {container[probe]["grpc"]["port"] for probe in ("readinessProbe", "livenessProbe")} == {port}
        assert {"name": "health", "containerPort": port} in container["ports"]


def test_labels_selectors_and_services_belong_together():
    workloads = {
        it["metadata"]["name"]: it["spec"]["template"]["metadata"]["labels"]
        for it in manifests()
        if it["kind"] in ("Deployment", "StatefulSet")
    }
    for it in manifests():
        spec = it.get("spec", {})
        chosen = spec["selector"] if it["kind"] == "Service" else spec.get("selector", {}).get("matchLabels")
        if chosen:
            assert [name for name, labels in workloads.items() if chosen.items() <= labels.items()], it
    budgets = [
        it["spec"]["selector"]["matchLabels"] for it in manifests() if it["kind"] == "PodDisruptionBudget"
    ]
    assert sorted(map(str, budgets)) == sorted(map(str, workloads.values()))


def test_the_front_door_knows_the_referees_by_the_names_that_they_give():
    [address] = [arg for arg in containers()["seatwise-referee"]["args"] if arg.startswith("--address=")]
    named = address.removeprefix("--address=").replace("$(POD_NAME)", "seatwise-referee-11")
    [conf] = [
        it["data"]["nginx.conf"]
        for it in manifests()
        if it["metadata"]["name"] == "seatwise-front-door" and it["kind"] == "ConfigMap"
    ]
    [pattern] = re.findall(r'"~(\^\(\?:https://\)\?\(\?<named>seatwise-referee.*?\$)"', conf)
    pattern = pattern.replace("(?<", "(?P<")
    for offered in (named, f"https://{named}"):
        found = re.match(pattern, offered)
        assert found
        assert found["named"] == named
    for other in ("redis:6379", f"{named}.evil.org:7433", f"x{named}", named.replace("7433", "22")):
        assert not re.match(pattern, other)


def test_both_front_doors_route_alike():
    """But for how they come by addresses, and where they may write; WebSockets are routed by the addresses of referees."""
    route = r"(grpc_|location|client_max|client_body_timeout|error_page|if|return|add_header)"
    texts = [text.splitlines() for _, text in check._nginx_files(DEPLOY)]
    routes = [
        [line.strip() for line in lines if re.match(route, line.strip()) and "/v1/play" not in line]
        for lines in texts
    ]
    assert routes[0] == routes[1]


def test_the_image_holds_what_its_wheel_is_made_of():
    """Every folder that is copied is let through by the list of what to leave out, and is here."""
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    let_through = set(re.findall(r"^!(.*)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    assert names == let_through
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_no_registry_is_named():
    for path in DEPLOY.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert not re.search(
                r"(docker\.io|ghcr\.io|quay\.io|gcr\.io|pypi|index-url)", path.read_text()
            ), path


# What docs/operations.md says of it

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def test_the_verbs_of_ctl_are_those_that_are_written_down():
    parser = ArgumentParser()
    ctl.configure(parser)
    [verbs] = [action.choices for action in parser._actions if action.dest == "verb"]
    assert set(re.findall(r"^\| `seatwise ctl ([\w-]+)", OPERATIONS, re.MULTILINE)) == set(verbs)


def test_the_metrics_are_those_that_are_written_down():
    page = metrics.MetricsPage(
        lambda: dict.fromkeys(metrics.METRIC_HELP, 0.0), metrics.Depths(None), lambda: 0.0
    )
    there = {
        sample.removeprefix("seatwise_")
        for found in page.collect()
        for sample in [found.name + ("_total" if found.type == "counter" else "")]
    }
    [table] = re.findall(r"^\| metric \| alarm \|$(.*?)^$", OPERATIONS, re.MULTILINE | re.DOTALL)
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)[{`]", row.split("|")[1])}
    assert named == there
