"""The compose file: by the schema of the specification, with nothing secret in it, and with settings that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from icewright.configuration.load import load_config
from tests.cases import each_case
from tests.deploy.test_deploy_images import PINNED, STAGES

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "deploy/compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
SCHEMA = json.loads((HERE / "compose-spec.json").read_text(encoding="utf-8"))
SERVERS = ("server-1", "server-2")
OURS = (*SERVERS, "optimizer")
HOST = "icewright.example.com"
FIRST_LOOK: dict[str, Any] = yaml.safe_load((FOLDER / "first-look.yaml").read_text(encoding="utf-8"))


def environment(service: str) -> dict[str, str]:
    """Variables of a service, with the one that its user chooses in place."""
    return {
        name: re.sub(r"\$\{ICEWRIGHT_HOST:\?[^}]*\}", HOST, str(value))
        for name, value in SERVICES[service].get("environment", {}).items()
    }


def test_it_is_a_compose_file() -> None:
    validator = jsonschema_rs.validator_for(SCHEMA)
    assert not [(list(error.instance_path), error.message) for error in validator.iter_errors(COMPOSE)]
    assert not validator.is_valid({**COMPOSE, "services": {**SERVICES, "x": {"imaje": "x"}}})


@each_case("service", SERVICES)
def test_every_image_has_a_version(service: str) -> None:
    image = SERVICES[service]["image"]
    if service in OURS:
        assert re.fullmatch(r"icewright-(server|optimizer):\d+\.\d+\.\d+", image)
        assert SERVICES[service]["build"]["target"] in STAGES
        assert (FOLDER / SERVICES[service]["build"]["context"] / SERVICES[service]["build"]["dockerfile"]).is_file()
    else:
        assert PINNED.match(image), image


@each_case("service", SERVICES)
def test_nobody_is_privileged_or_writes_where_it_would_stay(service: str) -> None:
    told = SERVICES[service]
    assert told["read_only"] is True
    assert told["cap_drop"] == ["ALL"]
    assert told["security_opt"] == ["no-new-privileges:true"]
    assert int(told["user"].partition(":")[0]) > 0
    assert not {"privileged", "cap_add", "devices", "network_mode", "pid", "ipc"} & set(told)
    assert not [volume for volume in told.get("volumes", []) if not volume.startswith("store:")]


@each_case("service", SERVICES)
def test_t5_secrets_are_files_and_never_variables(service: str) -> None:
    for name, value in environment(service).items():
        if re.search(r"TOKEN|PASSWORD|SECRET|CREDENTIAL|_KEY", name):
            assert value.removeprefix("file:").startswith("/run/secrets/"), name
            assert value.rpartition("/")[2] in SERVICES[service]["secrets"], name
    for secret in SERVICES[service].get("secrets", []):
        assert COMPOSE["secrets"][secret]["file"].startswith("./secrets/")
    assert not (FOLDER / "secrets").exists()


@each_case("service", OURS)
def test_its_settings_are_those_that_there_are(service: str, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), **environment(service)}
    config = load_config(FOLDER / "icewright.toml", environ, tmp_path)
    assert config.catalogs
    assert {"source": "icewright", "target": "/etc/icewright/icewright.toml"} in SERVICES[service]["configs"]
    if service in SERVERS:
        assert config.server.is_exposed
        assert config.server.public_url == f"https://{HOST}"
        assert config.server.token is not None
    else:
        assert config.optimizer.server_url == f"https://{HOST}"


def test_the_balancer_alone_is_believed_to_speak_tls(tmp_path: Path) -> None:
    told = SERVICES["balancer"]["networks"]["inside"]
    for service in SERVERS:
        config = load_config(FOLDER / "icewright.toml", {"HOME": str(tmp_path), **environment(service)}, tmp_path)
        assert config.server.trusted_proxies == (told["ipv4_address"],)
        assert not SERVICES[service].get("ports")
    assert [service for service in SERVICES if SERVICES[service].get("ports")] == ["balancer"]
    assert [re.sub(r"\$\{.*", HOST, alias) for alias in told["aliases"]] == [HOST]


def test_the_balancer_says_itself_how_a_request_came() -> None:
    told = (FOLDER / "haproxy.cfg").read_text(encoding="utf-8")
    assert "http-request set-header X-Forwarded-Proto https" in told  # set, not added: a client's own word is gone
    assert "ssl crt /run/secrets/tls-pem" in told
    assert "set-header Host" not in told
    for service in SERVERS:
        port = environment(service)["ICEWRIGHT_SERVER__PORT"]
        assert f"server {service} {service}:{port}" in told
    assert re.findall(r"^ +server (\S+)", told, re.MULTILINE) == list(SERVERS)
    assert "%HPO" in told  # the path alone: one-time codes are behind it
    assert not re.search(r"%(HU|HQ|r|HPO?Q)\b", told)
    assert 'hdr Host "${ICEWRIGHT_HOST}"' in told
    assert "ICEWRIGHT_HOST" in SERVICES["balancer"]["environment"]


def test_a_first_look_needs_nothing_prepared_and_is_for_this_machine_alone() -> None:
    validator = jsonschema_rs.validator_for(SCHEMA)
    assert not [(list(error.instance_path), error.message) for error in validator.iter_errors(FIRST_LOOK)]
    text = (FOLDER / "first-look.yaml").read_text(encoding="utf-8")
    assert "${" not in text
    assert not {"secrets", "volumes", "networks"} & set(FIRST_LOOK)
    for name, told in FIRST_LOOK["services"].items():
        assert told["read_only"] is True, name
        assert told["cap_drop"] == ["ALL"], name
        assert int(told["user"].partition(":")[0]) > 0, name
        assert not {"environment", "env_file", "privileged", "cap_add", "volumes"} & set(told), name
        assert name == "demo" or PINNED.match(told["image"]), name
    demo = FIRST_LOOK["services"]["demo"]
    assert demo["build"]["target"] in STAGES
    assert (FOLDER / demo["build"]["context"] / demo["build"]["dockerfile"]).is_file()
    assert demo["command"][0] == json.loads(STAGES["demo"].words("CMD")[0])[0]


def test_the_door_of_a_first_look_leads_to_its_server() -> None:
    """By the port that the server's own links and Host headers have."""
    demo, door = FIRST_LOOK["services"]["demo"], FIRST_LOOK["services"]["door"]
    port = demo["command"][demo["command"].index("--port") + 1]
    assert door["network_mode"] == "service:demo"
    assert demo["ports"] == [f"127.0.0.1:{port}:7080"]
    told = (FOLDER / FIRST_LOOK["configs"]["door"]["file"]).read_text(encoding="utf-8")
    assert re.findall(r"^ +bind (.*)$", told, re.MULTILINE) == [":7080"]
    assert re.findall(r"^ +server \S+ (.*)$", told, re.MULTILINE) == [f"127.0.0.1:{port}"]
    assert "mode tcp" in told
