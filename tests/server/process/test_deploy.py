"""What deploy/ holds: every file is what its tool wants, a broken one is refused, and all of it fits the server."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

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
    ("kubernetes/", "kubernetes/manifests/referee.yaml", "  serviceName:", "  servicename:"),
    ("kubernetes/", "kubernetes/manifests/lobby.yaml", "  replicas: 2", "  replicas: two"),
    ("kubernetes/", "kubernetes/manifests/gateway.yaml", "kind: Deployment", "kind: Deploiment"),
    ("kubernetes/", "kubernetes/manifests/namespace.yaml", "labels:", "lables:"),
    ("kubernetes/", "kubernetes/manifests/redis.yaml", "  serviceName:", "  servicename:"),
    ("kubernetes/", "kubernetes/monitoring/autoscaler.yaml", "minReplicas: 2", "minReplicas: two"),
    ("kubernetes/", "kubernetes/manifests/front-door.yaml", "type: LoadBalancer", "type: 7"),
    (
        "nginx",
        "kubernetes/manifests/front-door.yaml",
        "grpc_pass grpcs://lobbies;",
        "grpc_pas grpcs://lobbies;",
    ),
    ("nginx", "nginx.conf", "listen 7443 ssl http2;", "listen 7443 ssl http2"),
    ("TLS", "nginx.conf", "listen 7443 ssl http2;", "listen 7443 http2;"),
    ("TLS", "nginx.conf", "grpc_pass grpcs://lobbies;", "grpc_pass grpc://lobbies;"),
    ("TLS", "nginx.conf", "grpc_ssl_verify on;", "grpc_ssl_verify off;"),
    ("TLS", "kubernetes/manifests/front-door.yaml", "grpc_ssl_verify on;\n", "\n"),
    ("TLS", "kubernetes/manifests/front-door.yaml", "grpcs://$referee", "grpc://$referee"),
    ("TLS", "kubernetes/manifests/lobby.yaml", "            - --tls-key=/etc/seatwise/tls/tls.key\n", ""),
    ("TLS", "compose.yaml", "rediss://", "redis://"),
    ("TLS", "compose.yaml", "--tls-cert, /etc/seatwise/tls/tls.crt, ", ""),
    ("TLS", "systemd/seatwise.service", " --tls auto", ""),
    ("TLS", "systemd/seatwise-front.service", " --tls-key /etc/seatwise/tls.key", ""),
    ("TLS", "systemd/seatwise-front.service", "rediss://", "redis://"),
    ("kubernetes/", "kubernetes/manifests/network.yaml", "policyTypes: [Ingress]", "policyTipes: [Ingress]"),
    (
        "addresses",
        "kubernetes/manifests/network.yaml",
        "policyTypes: [Ingress, Egress]",
        "policyTypes: [Ingress]",
    ),
    ("addresses", "kubernetes/manifests/front-door.yaml", "livenessProbe:", "startupProbe:"),
    ("addresses", "kubernetes/manifests/referee.yaml", "wss://$(PUBLIC_ADDRESS)", "wss://localhost:7443"),
    ("addresses", "kubernetes/settings.env", "public-address=", "public-address=localhost:7443"),
    ("addresses", "compose.yaml", '--address, "referee-1.internal:7433"', '--address, "localhost:7433"'),
    ("limits", "nginx.conf", "limit_conn streams 512;", ""),
    ("limits", "kubernetes/manifests/front-door.yaml", "limit_req zone=calls burst=400 nodelay;", ""),
    ("limits", "kubernetes/manifests/front-door.yaml", "  externalTrafficPolicy: Local\n", ""),
    ("limits", "kubernetes/manifests/gateway.yaml", "              memory: 512Mi", "              cpu: 1"),
    ("limits", "kubernetes/manifests/network.yaml", "podSelector: {}", "podSelector: {matchLabels: {a: b}}"),
    (
        "limits",
        "kubernetes/manifests/network.yaml",
        "values: [lobby, gateway, referee]",
        "values: [lobby, gateway]",
    ),
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
    checked |= {*DEPLOY.glob("kubernetes/manifests/*"), *DEPLOY.glob("systemd/*")}
    checked |= {DEPLOY / "kubernetes/settings.env", DEPLOY / "kubernetes/monitoring/autoscaler.yaml"}
    assert {str(path.relative_to(DEPLOY)) for path in checked} == {name for _, name, _, _ in BROKEN}


def test_a_missing_tool_is_said_and_fails_nothing(monkeypatch, capsys):
    monkeypatch.setattr(check.shutil, "which", lambda *_, **__: None)
    assert check.main(DEPLOY) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(
        [name for name in check.CHECKS if name not in ("TLS", "limits", "addresses")]
    )  # these need no tool
    assert all(line.startswith("not checked here: deploy/") for line in said)


# What they ask of the server


def manifests() -> list[dict]:
    return list(check._manifests(DEPLOY))


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
    serve.add_options(parser)
    return serve.make_config(serve.options_from(parser.parse_args(line)))


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
        port = config_of([*entry_point(), *check.command_lines(DEPLOY)[name]]).health_port
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
    del workloads["seatwise-redis"]  # there is one
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


# The names, the secrets, and what the tools of a cluster make of the files


def test_all_files_carry_the_names_of_one(tmp_path):
    assert subprocess.run([sys.executable, DEPLOY / "names.py", "--check"], check=False).returncode == 0
    for folder in ("deploy", "proto", "docs/starters/go"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    names = tmp_path / "deploy" / "names.toml"
    text = names.read_text().replace('"seatwise"', '"registry.example.org/games/seatwise"')
    names.write_text(text.replace('"seatwise.example"', '"git.example.org/games"'))
    done = subprocess.run(
        [sys.executable, names.with_name("names.py")], capture_output=True, text=True, check=True
    )
    assert {"deploy/compose.yaml", "docs/starters/go/go.mod", "proto/seatwise/v1/bot.proto"} <= {
        *done.stdout.split()
    }
    referee = (tmp_path / "deploy/kubernetes/manifests/referee.yaml").read_text()
    assert "image: registry.example.org/games/seatwise:0.3.0" in referee
    assert (
        'go_package = "git.example.org/games/gen/' in (tmp_path / "proto/seatwise/v1/bot.proto").read_text()
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Path:
    """A copy of the files for Kubernetes, with secrets and settings."""
    folder = tmp_path_factory.mktemp("cluster") / "kubernetes"
    shutil.copytree(DEPLOY / "kubernetes", folder)
    program = os.environ | {"SEATWISE": f"{Path(sys.executable).parent}/seatwise"}
    make = [folder / "secrets" / "make-secrets.sh", "seatwise.example.org"]
    done = subprocess.run(make, env=program, capture_output=True, text=True, check=True)
    assert "Pin of its key: sha256//" in done.stdout
    (folder / "settings.env").write_text(
        "public-address=seatwise.example.org:7443\npod-network=10.244.0.0/16\n"
    )
    return folder


@pytest.mark.slow
def test_secrets_are_made_once_and_readable_for_their_owner_alone(cluster):
    made = {path.name: path.read_text() for path in (cluster / "secrets").iterdir() if path.is_file()}
    assert len(made["admin.token"]) >= 32
    assert made["url"].startswith("rediss://:")
    assert made["url"].split(":")[2].split("@")[0] in made["redis.conf"]
    for name in ("admin.token", "url", "redis.conf", "tls.key", "door.key"):
        assert (cluster / "secrets" / name).stat().st_mode & 0o077 == 0, name
    make = [cluster / "secrets" / "make-secrets.sh", "seatwise.example.org"]
    program = os.environ | {"SEATWISE": f"{Path(sys.executable).parent}/seatwise"}
    subprocess.run(make, env=program, capture_output=True, check=True)
    assert all((cluster / "secrets" / name).read_text() == text for name, text in made.items())
    refused = subprocess.run([make[0], "localhost"], env=program, capture_output=True, text=True, check=False)
    assert "do not find localhost" in refused.stderr


TOOLS = {
    "helm": "helm.sh/helm/v3/cmd/helm@v3.16.4",
    "kustomize": "sigs.k8s.io/kustomize/kustomize/v5@v5.4.3",
    "promtool": "github.com/prometheus/prometheus/cmd/promtool@v0.55.1",
}


def go_tool(name: str) -> str:
    """The path of a tool, which is built once from its Go module."""
    folder = Path.home() / ".cache" / "seatwise-tools"
    if (folder / name).exists():
        return str(folder / name)
    if shutil.which("go") is None:
        pytest.skip(f"{name} is not built: Go is not installed")
    module = TOOLS[name]
    build = (
        f"go mod init tools && go get {module} && go build -o '{folder / name}' {module.partition('@')[0]}"
    )
    with (
        TemporaryDirectory() as empty
    ):  # a module of our own: `go install` refuses one that replaces others, as promtool's does
        done = subprocess.run(["sh", "-c", build], cwd=empty, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{module} cannot be built here: {done.stderr[-300:]}")
    return str(folder / name)


def run_tool(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr[-3000:])
    return done.stdout


def resources_in(text: str) -> dict[tuple[str, str], dict]:
    found = [each for each in yaml.safe_load_all(text) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_chart_and_kustomization_render_the_same(cluster):
    helm, kustomize = go_tool("helm"), go_tool("kustomize")
    asked = ["--set", "publicAddress=seatwise.example.org:7443", "--set", "podNetwork=10.244.0.0/16"]
    run_tool(helm, "lint", cluster, *asked)
    chart = resources_in(run_tool(helm, "template", "seatwise", cluster, "--namespace", "seatwise", *asked))
    overlay = resources_in(run_tool(kustomize, "build", cluster))
    secrets = resources_in(run_tool(kustomize, "build", cluster / "secrets"))
    assert all(all(secret["data"].values()) for secret in secrets.values())
    [(_, settings)] = [key for key in overlay if key[1].startswith("seatwise-settings-")]
    plain = yaml.safe_load(yaml.safe_dump(list(overlay.values())).replace(settings, "seatwise-settings"))
    named = {(each["kind"], each["metadata"]["name"]): each for each in plain}
    del named["Namespace", "seatwise"]
    assert named == chart
    mounted = {
        volume["secret"]["secretName"]
        for each in chart.values()
        for volume in each.get("spec", {}).get("template", {}).get("spec", {}).get("volumes", ())
        if "secret" in volume
    }
    assert mounted == {name for _, name in secrets}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_chart_asks_for_what_has_no_default_and_takes_other_values(cluster, tmp_path):
    helm = go_tool("helm")
    asked = ["--set", "publicAddress=h:7443", "--set", "podNetwork=10.0.0.0/8"]
    for options, said in (
        ((), "publicAddress: the HOST:PORT"),
        (("--set", "publicAddress=localhost:7443"), "do not find localhost"),
        (("--set", "publicAddress=h:7443"), "podNetwork: the network"),
    ):
        done = subprocess.run(
            [helm, "template", cluster, *options], capture_output=True, text=True, check=False
        )
        assert done.returncode
        assert said in done.stderr
    values = tmp_path / "values.yaml"
    values.write_text(
        "image: registry.example.org/s:1\nmonitoring: true\nautoscaling: true\nredis: false\n"
        "patches: {StatefulSet/seatwise-referee: {spec: {replicas: 4}}}\n"
    )
    text = run_tool(helm, "template", "x", cluster, "--namespace", "games", "--values", values, *asked)
    found = resources_in(text)
    assert found["StatefulSet", "seatwise-referee"]["spec"]["replicas"] == 4
    assert {each["metadata"]["namespace"] for each in found.values()} == {"games"}
    assert "seatwise.svc" not in re.sub(r"games\.svc|seatwise\.games", "", text)
    assert ("StatefulSet", "seatwise-redis") not in found
    assert {"PodMonitor", "PrometheusRule", "HorizontalPodAutoscaler"} <= {kind for kind, _ in found}
    images = re.findall(r"image: (\S+)", text)
    assert set(images) == {"registry.example.org/s:1", "nginx:1.27-alpine"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_promtool_takes_the_alerts():
    said = run_tool(
        go_tool("promtool"), "check", "rules", DEPLOY / "kubernetes" / "monitoring" / "alerts.yaml"
    )
    assert "13 rules found" in said


# What docs/operations.md says of it

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def test_the_verbs_of_ctl_are_those_that_are_written_down():
    parser = ArgumentParser()
    ctl.configure(parser)
    [verbs] = [action.choices for action in parser._actions if action.dest == "verb"]
    assert set(re.findall(r"^\| `seatwise ctl ([\w-]+)", OPERATIONS, re.MULTILINE)) == set(verbs)


def exposed_metrics() -> set[str]:
    """The names of all samples, as a query may have them."""
    page = metrics.MetricsPage(
        lambda: dict.fromkeys(metrics.METRIC_HELP, 0.0), metrics.Depths(None), lambda: 0.0
    )
    ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"]}
    return {found.name + end for found in page.collect() for end in ends.get(found.type, [""])}


def test_alerts_dashboard_and_autoscaler_name_only_metrics_that_exist():
    folder = DEPLOY / "kubernetes" / "monitoring"
    [group] = yaml.safe_load((folder / "alerts.yaml").read_text())["groups"]
    panels = json.loads((folder / "dashboard.json").read_text())["panels"]
    queries = [rule["expr"] for rule in group["rules"]]
    queries += [target["expr"] for panel in panels for target in panel["targets"]]
    queries.append((folder / "autoscaler.yaml").read_text().replace("seatwise_tables_taken_ratio", ""))
    labels = {"grpc_server", "http_request_method", "http_response_status_code"}
    named = {name for query in queries for name in re.findall(r"\b(?:seatwise|grpc|http)_\w+_\w+", query)}
    assert named - labels <= exposed_metrics()
    assert len(named) > 20


def test_the_metrics_are_those_that_are_written_down():
    page = metrics.MetricsPage(
        lambda: dict.fromkeys(metrics.METRIC_HELP, 0.0), metrics.Depths(None), lambda: 0.0
    )
    there = {
        sample.removeprefix("seatwise_")
        for found in page.collect()
        for sample in [found.name + {"counter": "_total", "info": "_info"}.get(found.type, "")]
    }
    [table] = re.findall(r"^\| metric \| alarm \|$(.*?)^$", OPERATIONS, re.MULTILINE | re.DOTALL)
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)[{`]", row.split("|")[1])}
    assert named == there
