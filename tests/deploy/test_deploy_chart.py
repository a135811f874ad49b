"""The Helm chart as it is rendered: by the schemas of Kubernetes, restricted, and with settings that there are.

What is read here was rendered by Helm before (`python -m scripts.render_chart`), so that this needs none; a digest says
of which chart that was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import kubernetes_validate
import pytest
import yaml

import icewright.notifications.wiring as messages
import icewright.queries.wiring as queries
import icewright.work.autotune.wiring as autotune
from icewright.configuration.load import load_config
from icewright.core.server_urls import authorities
from icewright.events import listeners
from icewright.policy.rules.files import read_policies
from icewright.retention import history_wiring
from icewright.server import loop, processes, web
from icewright.server.cluster import leadership, zookeeper
from icewright.store.timeouts import Timeouts
from scripts.render_chart import CASES, CHART, heading, rendered_file
from tests.cases import each_case
from tests.deploy.test_deploy_images import STAGES

VALUES = sorted(CASES.glob("*.values.yaml"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SERVICE_MONITOR = json.loads((Path(__file__).parent / "service-monitor.json").read_text(encoding="utf-8"))
SETTINGS = re.compile(r"ICEWRIGHT_(SERVER|OPTIMIZER)__")


def merged(over: dict[str, Any], under: dict[str, Any] = DEFAULTS) -> dict[str, Any]:
    """Values as Helm puts them together."""
    found = deepcopy(under)
    for key, value in over.items():
        old = found.get(key)
        found[key] = merged(value, old) if isinstance(value, dict) and isinstance(old, dict) else value
    return found


def values_of(path: Path) -> dict[str, Any]:
    return merged(yaml.safe_load(path.read_text(encoding="utf-8")))


def manifests(path: Path) -> list[dict[str, Any]]:
    found = yaml.safe_load_all(rendered_file(path).read_text(encoding="utf-8"))
    return [manifest for manifest in found if manifest]


def pods(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for manifest in manifests(path):
        if manifest["kind"] in {"Deployment", "Job"}:
            yield manifest["metadata"]["name"], manifest["spec"]["template"]["spec"]


def environment(container: dict[str, Any]) -> dict[str, str]:
    """Variables of a container, with variables in their values replaced as Kubernetes does."""
    found = {variable["name"]: variable.get("value", "x") for variable in container["env"]}
    return {name: re.sub(r"\$\((\w+)\)", lambda named: found[named[1]], value) for name, value in found.items()}


EACH = each_case("case", VALUES, ids=lambda path: path.name.partition(".")[0])


@EACH
def test_what_is_read_here_was_rendered_from_this_chart(case: Path) -> None:
    first = rendered_file(case).read_text(encoding="utf-8").partition("\n")[0] + "\n"
    assert first == heading(case), "the chart has changed: `python -m scripts.render_chart`"


@EACH
def test_kubernetes_knows_all_of_it(case: Path) -> None:
    found = manifests(case)
    for manifest in found:
        if manifest["kind"] == "ServiceMonitor":
            errors = jsonschema_rs.validator_for(SERVICE_MONITOR).iter_errors(manifest)
            assert [(list(error.instance_path), error.message) for error in errors] == []
        else:
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    kinds = {manifest["kind"] for manifest in found}
    assert kinds >= {"Deployment", "Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"}
    assert "Secret" not in kinds  # what goes through values is kept in the release
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in found]
    assert len(names) == len(set(names))


@EACH
def test_its_pods_are_restricted(case: Path) -> None:
    """By Kubernetes's Pod Security Standards, the profile ``restricted``, and a bit more."""
    for name, pod in pods(case):
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        told = pod["securityContext"]
        assert (told["runAsNonRoot"], told["runAsUser"]) == (True, 10001)
        assert told["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "privileged": False,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert container["resources"]["limits"]["memory"]
            assert "command" not in container  # that of the image
            mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            assert mounted["tmp"] == "/tmp"  # noqa: S108 - of the pod, which has its own
        for volume in pod["volumes"]:
            assert "hostPath" not in volume


def test_a_server_has_more_time_to_end_than_it_may_take() -> None:
    """Whatever hangs: one part after the other ends, and each has its time. What is not counted is the store's."""
    whole_s = (
        web.END_S
        + processes.END_S
        + queries._END_S
        + messages._END_S
        + autotune._END_S
        + history_wiring._END_S
        + listeners._END_S
        + leadership.TIMEOUT_S
        + 2 * zookeeper._END_S
    )
    threads_of_the_loop = 2
    assert threads_of_the_loop * loop.HOUSEKEEPER_TIMEOUT_S < leadership.TIMEOUT_S
    store_s = Timeouts().connect_ms / 1000
    compose = yaml.safe_load((CHART.parents[1] / "compose/compose.yaml").read_text(encoding="utf-8"))
    for grace_s in (
        DEFAULTS["server"]["terminationGracePeriodSeconds"],
        int(compose["x-server"]["stop_grace_period"].removesuffix("s")),
    ):
        assert grace_s > whole_s + store_s


@EACH
def test_their_images_have_versions(case: Path) -> None:
    for _, pod in pods(case):
        for container in pod["containers"]:
            assert re.fullmatch(
                r"registry\.example\.com/icewright-(server|optimizer):\d+\.\d+\.\d+(-\d+)?", container["image"]
            )


@EACH
def test_t5_secrets_are_mounted_and_not_everybody_in_the_pod_reads_them(case: Path) -> None:
    for name, pod in pods(case):
        secrets = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
        assert secrets, name
        assert all(secret["defaultMode"] & 0o007 == 0 for secret in secrets)
        shown = {item["path"] for secret in secrets for item in secret.get("items", ())}
        if "optimizer" in name:
            assert shown == {"optimizer-token"}  # neither the owner's nor the store's
        for variable in pod["containers"][0]["env"]:
            if re.search(r"TOKEN|PASSWORD|HASH_KEY", variable["name"]):
                assert variable["value"].startswith("file:/run/secrets/icewright/")
                assert variable["value"].rpartition("/")[2] in shown


@EACH
def test_their_settings_are_those_that_there_are(case: Path, tmp_path: Path) -> None:
    (written,) = (
        manifest["data"]["icewright.toml"]
        for manifest in manifests(case)
        if "icewright.toml" in manifest.get("data", {})
    )
    (tmp_path / "icewright.toml").write_text(written)
    for _, pod in pods(case):
        (container,) = pod["containers"]
        environ = environment(container)
        assert any(SETTINGS.match(name) for name in environ)
        config = load_config(tmp_path / "icewright.toml", {"HOME": str(tmp_path), **environ}, tmp_path)
        for variable, path in environ.items():
            if variable == "SSL_CERT_FILE" or variable.endswith(("TLS_CERTIFICATE", "TLS_KEY")):
                assert any(path.startswith(f"{mount['mountPath']}/") for mount in container["volumeMounts"])
        if container["name"] == "server":
            assert config.server.is_exposed
            assert str(config.server.port) == str(container["ports"][0]["containerPort"])
        else:
            assert config.optimizer.server_url == values_of(case)["publicUrl"]


@EACH
def test_probes_ask_by_a_name_that_is_answered_and_in_the_way_that_is_spoken(case: Path) -> None:
    (pod,) = (pod for name, pod in pods(case) if name.endswith("-server"))
    (container,) = pod["containers"]
    by_tls = any(variable["name"].endswith("TLS_KEY") for variable in container["env"])
    for probe, path in (
        ("startupProbe", "/api/v1/healthz?live"),
        ("readinessProbe", "/api/v1/healthz"),
        ("livenessProbe", "/api/v1/healthz?live"),
    ):
        asked = container[probe]["httpGet"]
        assert (asked["path"], asked["port"]) == (path, "http")
        assert asked["scheme"] == ("HTTPS" if by_tls else "HTTP")
        (host,) = asked["httpHeaders"]
        assert host["value"] in authorities(values_of(case)["publicUrl"])


@EACH
def test_services_budgets_and_policies_choose_the_pods_that_there_are(case: Path) -> None:
    labels = {
        manifest["metadata"]["name"]: manifest["spec"]["template"]["metadata"]["labels"]
        for manifest in manifests(case)
        if manifest["kind"] == "Deployment"
    }
    chosen = {}
    for manifest in manifests(case):
        spec = manifest.get("spec", {})
        selector = {
            "Service": spec.get("selector"),
            "PodDisruptionBudget": spec.get("selector", {}).get("matchLabels"),
            "NetworkPolicy": spec.get("podSelector", {}).get("matchLabels"),
        }.get(manifest["kind"])
        if selector:
            matches = [name for name, own in labels.items() if selector.items() <= own.items()]
            chosen[manifest["kind"], manifest["metadata"]["name"]] = matches
    assert chosen == {
        ("Service", "lake"): ["lake-server"],
        ("PodDisruptionBudget", "lake-server"): ["lake-server"],
        ("NetworkPolicy", "lake-server"): ["lake-server"],
        ("NetworkPolicy", "lake-optimizer"): ["lake-optimizer"],
    }


def test_prometheus_asks_servers_by_tls_with_a_token_and_by_a_name_that_is_answered() -> None:
    case = CASES / "monitored.values.yaml"
    (monitor,) = (manifest for manifest in manifests(case) if manifest["kind"] == "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (service,) = (manifest for manifest in manifests(case) if manifest["kind"] == "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert (endpoint["scheme"], endpoint["path"]) == ("https", "/api/v1/metrics")
    assert endpoint["authorization"] == {"credentials": {"name": "icewright", "key": "metrics-token"}}
    assert endpoint["tlsConfig"] == {
        "serverName": "icewright.example.com",
        "ca": {"configMap": {"name": "company-authority", "key": "ca.crt"}},
    }
    (pod,) = (pod for name, pod in pods(case) if name.endswith("-server"))
    (container,) = pod["containers"]
    told = {variable["name"]: variable for variable in container["env"]}
    assert told["POD_ADDRESS"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    port = container["ports"][0]["containerPort"]
    assert told["ICEWRIGHT_SERVER__ALLOWED_HOSTS"]["value"] == f'["$(POD_ADDRESS):{port}"]'


def test_nobody_is_asked_for_metrics_unless_somebody_says_so() -> None:
    for case in (CASES / "least.values.yaml", CASES / "most.values.yaml"):
        assert "ServiceMonitor" not in {manifest["kind"] for manifest in manifests(case)}
        assert "POD_ADDRESS" not in rendered_file(case).read_text(encoding="utf-8")


def test_the_schema_of_service_monitors_would_notice() -> None:
    wrong = {"spec": {"selector": {}, "endpoints": [{"port": "http", "pth": "/"}]}}
    assert not jsonschema_rs.validator_for(SERVICE_MONITOR).is_valid(wrong)


def test_nobody_reaches_optimizers_and_servers_only_who_is_named() -> None:
    policies = {
        manifest["metadata"]["name"]: manifest["spec"]
        for manifest in manifests(CASES / "most.values.yaml")
        if manifest["kind"] == "NetworkPolicy"
    }
    assert policies["lake-optimizer"]["ingress"] == []
    assert policies["lake-optimizer"]["policyTypes"] == ["Ingress", "Egress"]
    ((rule,),) = (policies["lake-server"]["ingress"],)
    assert len(rule["from"]) == 2
    assert {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}} in [
        peer.get("namespaceSelector") for peer in rule["from"]
    ]


def test_policies_are_applied_by_the_files_names(tmp_path: Path) -> None:
    case = CASES / "most.values.yaml"
    (job,) = (pod for name, pod in pods(case) if "policies" in name)
    (container,) = job["containers"]
    command, *words = container["args"]
    assert [command, words[0]] == ["policy", "apply"]
    (mounted,) = (mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "policies")
    (files,) = (manifest["data"] for manifest in manifests(case) if manifest["metadata"]["name"] == "lake-policies")
    assert [word for word in words if word.startswith("/")] == [f"{mounted}/{name}" for name in sorted(files)]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        read_policies([tmp_path / name])


@pytest.mark.parametrize("case", VALUES, ids=lambda path: path.name.partition(".")[0])
def test_values_are_as_the_schema_says(case: Path) -> None:
    validator = jsonschema_rs.validator_for(SCHEMA)
    assert not [(list(error.instance_path), error.message) for error in validator.iter_errors(values_of(case))]
    assert not validator.is_valid(DEFAULTS)  # somebody has to say where it is, and who speaks TLS


@each_case(
    "over",
    [
        {"publicUrl": "http://icewright.example.com"},
        {"publicUrl": "https://icewright.example.com/"},
        {"store": {"url": "postgresql://icewright:hunter2@db.example.com/icewright"}},
        {"store": {"url": "sqlite:////var/lib/icewright/icewright.db"}},
        {"image": {"server": {"tag": "latest"}}},
        {"secrets": {"name": ""}},
        {"config": ""},
        {"server": {"tls": {"secretName": ""}}},
        {"server": {"trustedProxies": ["0.0.0.0/0"]}},
        {"server": {"replicas": 0}},
        {
            "server": {"tls": {"secretName": ""}, "trustedProxies": ["10.42.0.0/16"]},
            "serviceMonitor": {"enabled": True},
        },
        {"sever": {}},
        {"policies": {"files": {"../x.yaml": ""}}},
        {"server": {"state": {"persistent": True}, "replicas": 2}},  # one claim, and one spool
        {"server": {"state": {"size": "1GB"}}},
        {"secrets": {"queriesHashKey": "a key/of slashes"}},
    ],
    ids=str,
)
def test_values_that_would_be_wrong_are_refused_before_anything_is_installed(over: dict[str, Any]) -> None:
    good = values_of(CASES / "least.values.yaml")
    assert not jsonschema_rs.validator_for(SCHEMA).is_valid(merged(over, good))


def test_the_chart_and_the_image_are_of_one_mind() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    for name in ("server", "optimizer"):
        assert DEFAULTS["image"][name]["tag"] == chart["appVersion"]
        assert STAGES[name].words("USER") == ["10001:10001"]


def test_the_spool_of_queries_is_on_a_claim_where_it_is_to_last() -> None:
    for case, volume in (("least", {"emptyDir": {"sizeLimit": "2Gi"}}), ("monitored", None)):
        path = CASES / f"{case}.values.yaml"
        (pod,) = (pod for name, pod in pods(path) if name.endswith("-server"))
        (state,) = (one for one in pod["volumes"] if one["name"] == "state")
        assert state == {"name": "state", **(volume or {"persistentVolumeClaim": {"claimName": "lake-state"}})}
    (claim,) = (one for one in manifests(path) if one["kind"] == "PersistentVolumeClaim")
    assert (claim["metadata"]["name"], claim["metadata"]["annotations"]) == (
        "lake-state",
        {"helm.sh/resource-policy": "keep"},
    )
    assert claim["spec"]["storageClassName"] == "ssd"
    environ = environment(pod["containers"][0])
    assert environ["ICEWRIGHT_QUERIES__HASH_KEY"] == "file:/run/secrets/icewright/queries-hash-key"
    assert values_of(path)["secrets"]["queriesHashKey"] == "queries-hash-key"
