"""What is handed to ``spark-submit``, word by word, and what is handed to nobody."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.codec import loads
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.work.optimizers import DeployMode, OptimizerSettings
from icewright.work.launch.pods import driver_pod, executor_pod, settings_secret
from icewright.work.launch.spark_submit import FOLDERS_KEPT, SparkSubmitLauncher, spark_home
from icewright.work.launch.submission import SETTINGS_FILE, SparkHome, Submission, properties, submission
from tests.builders.specs import settings_of
from tests.cases import each_case

CANARY = "canary-7f3a"
HOME = SparkHome("/opt/spark", "/opt/venv/bin/python")
STORED = Path(__file__).parent / "submissions"
LAKE = CatalogEntry(
    "lake",
    CatalogKind.REST,
    "https://catalog.example",
    "",
    {"credential": f"me:{CANARY}", "s3.secret-access-key": CANARY},
)
ENVIRON = {"PATH": "/bin", "SPARK_SUBMIT_OPTS": "-javaagent:x", "THE_TOKEN": CANARY, "AWS_SECRET_ACCESS_KEY": CANARY}


def given_settings(**changes: Any) -> OptimizerSettings:
    return settings_of(
        **{
            "token": CANARY,
            "catalogs": (LAKE,),
            "spark_conf": {"spark.executor.cores": "2", "spark.yarn.queue": "upkeep"},
            "tasks_max": 1,
            **changes,
        }
    )


CASES: dict[str, dict[str, Any]] = {
    "standalone": {"master": "spark://head:7077,other:7077"},
    "yarn_client": {"master": "yarn"},
    "yarn_cluster": {
        "master": "yarn",
        "deploy_mode": DeployMode.CLUSTER,
        "archive": "/opt/icewright-packages.zip",
        "executor_python": "/usr/bin/python3.11",
    },
    "kubernetes": {
        "master": "k8s://https://kubernetes.example:6443",
        "deploy_mode": DeployMode.CLUSTER,
        "spark_conf": {"spark.kubernetes.namespace": "lake", "spark.kubernetes.container.image": "icewright:1"},
    },
}


def submitted(case: str) -> Submission:
    secret = "icewright-settings" if case == "kubernetes" else None
    return submission(given_settings(**CASES[case]), HOME, "/state/applications/1", ENVIRON, secret=secret)


def told(found: Submission) -> str:
    """All that is written and run, but for the settings themselves, as a person can read it."""
    files = {name: text for name, text in found.files.items() if name != SETTINGS_FILE}
    parts = [
        ("argv", "\n".join(found.argv) + "\n"),
        ("environment", f"{dict(found.environ)}\n"),
        *sorted(files.items()),
    ]
    return "\n".join(f"--- {name}\n{text}" for name, text in parts)


@each_case("case", CASES)
def test_t4_what_is_submitted_is_this_and_nothing_else(case: str) -> None:
    found, stored = told(submitted(case)), STORED / f"{case}.txt"
    if os.environ.get("ICEWRIGHT_WRITE_STORIES"):
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(found)
    assert found == stored.read_text()


@each_case("case", CASES)
def test_t5_secrets_are_in_the_settings_alone(case: str) -> None:
    found = submitted(case)
    assert CANARY not in told(found)
    assert (SETTINGS_FILE in found.files) == (case != "kubernetes")
    if SETTINGS_FILE in found.files:
        assert loads(OptimizerSettings, found.files[SETTINGS_FILE].encode()) == given_settings(**CASES[case])


@given(text=st.text(max_size=30))
def test_t4_whatever_is_chosen_the_command_has_the_same_words(text: str) -> None:
    plain = submission(given_settings(**CASES["standalone"]), HOME, "/f", {})
    for changes in (
        {"spark_conf": {"spark.executor.cores": text}},
        {"spark_conf": {"spark.a.b": text}, "spark_conf_keys": ("spark.a.b",)},
        {"spark_conf": {text: "1"}},
        {"jars": (text,)},
        {"packages": (text,)},
        {"driver_memory": text},
        {"resource_group": text},
    ):
        try:
            found = submission(given_settings(**{**CASES["standalone"], **changes}), HOME, "/f", {})
        except InvalidConfiguration:
            continue
        assert found.argv == plain.argv
        assert read_back(found.files["spark.conf"]).keys() - {"spark.a.b", "spark.jars"} <= (
            read_back(plain.files["spark.conf"]).keys()
        )


@given(conf=st.dictionaries(st.text(min_size=1, max_size=12), st.text(max_size=20), max_size=5))
def test_t4_properties_read_back_as_they_were(conf: dict[str, str]) -> None:
    encodable = {key: value for key, value in conf.items() if not any("\ud800" <= c <= "\udfff" for c in key + value)}
    assert read_back(properties(encodable)) == encodable


def read_back(text: str) -> dict[str, str]:
    """As ``java.util.Properties.load`` reads a file (its documentation, from "Properties are processed")."""
    found: dict[str, str] = {}
    assert text.isascii()
    for line in text.splitlines():
        letters, at, key = line, 0, None
        taken: list[str] = []
        while at < len(letters):
            letter = letters[at]
            if letter == "\\":
                if letters[at + 1] == "u":
                    taken.append(chr(int(letters[at + 2 : at + 6], 16)))
                    at += 6
                    continue
                taken.append(letters[at + 1])
                at += 2
                continue
            if key is None and letter in "=: ":
                assert letter == "="
                key, taken = _whole(taken), []
            else:
                assert key is not None or letter not in "#!"
                taken.append(letter)
            at += 1
        assert key is not None
        found[key] = _whole(taken)
    return found


def _whole(units: list[str]) -> str:
    return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@pytest.mark.parametrize("master", ["local[2]", "spark://head:7077"])
def test_a_driver_in_the_cluster_needs_one_that_runs_drivers(master: str) -> None:
    with pytest.raises(InvalidConfiguration, match="deploy_mode"):
        submission(given_settings(master=master, deploy_mode=DeployMode.CLUSTER), HOME, "/f", {})


def test_a_driver_in_kubernetes_needs_a_secret() -> None:
    with pytest.raises(InvalidConfiguration, match="kubernetes_secret"):
        submission(given_settings(**CASES["kubernetes"]), HOME, "/f", {})


@each_case("document", [driver_pod(), executor_pod(), settings_secret("icewright-settings", "{}")])
def test_kubernetes_understands_what_it_is_given(document: str) -> None:
    data = json.loads(document)
    for container in data.get("spec", {}).get("containers", ()):
        assert "image" not in container  # Spark says it
    kubernetes_validate.validate(data, kubernetes_validate.latest_version(), strict=True)


RECORD = """\
#!{python} -S
import json, os, sys
said = {{"argv": open("/proc/self/cmdline").read().split("\\0")[2:-1], "environ": dict(os.environ), "files": {{}}}}
folder = os.path.dirname(sys.argv[2])
for name in os.listdir(folder):
    status = os.stat(folder + "/" + name)
    said["files"][name] = oct(status.st_mode & 0o777)
said["folder"] = oct(os.stat(folder).st_mode & 0o777)
with open({folder!r} + "/said", "a") as file:
    file.write(json.dumps(said) + "\\n")
print("Connected to Spark cluster with app ID app-20261122101112-0007")
print("\\t tracking URL: http://head:8088/proxy/one/")
"""


def recording(folder: Path) -> SparkHome:
    submit = folder / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.write_text(RECORD.format(python=sys.executable, folder=str(folder)))
    submit.chmod(0o700)
    return SparkHome(spark_home(str(submit.parent.parent)), sys.executable)


def test_t4_t5_one_program_is_run_once_with_these_words_and_private_files(tmp_path: Path) -> None:
    launcher = SparkSubmitLauncher(recording(tmp_path), tmp_path / "applications", {**os.environ, **ENVIRON})
    application = launcher.start(given_settings(**CASES["standalone"]))
    assert application.wait() == 0
    (said,) = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    folder = str(application.folder)
    assert said["argv"] == [
        f"{tmp_path}/spark/bin/spark-submit",
        "--properties-file",
        f"{folder}/spark.conf",
        f"{folder}/application.py",
        f"{folder}/settings.json",
        "optimizer-1",
    ]
    assert CANARY not in str(said)
    assert "SPARK_SUBMIT_OPTS" not in said["environ"]
    assert set(said["files"].values()) == {"0o600"}
    assert said["folder"] == "0o700"
    assert not (application.folder / SETTINGS_FILE).exists()
    assert CANARY not in "".join(path.read_text() for path in application.folder.iterdir())
    trace = application.trace()
    assert (trace.log, trace.cluster_id) == (application.folder / "log.txt", "app-20261122101112-0007")
    assert trace.url == "http://head:8088/proxy/one/"


def test_folders_of_old_applications_go(tmp_path: Path) -> None:
    applications = tmp_path / "applications"
    for number in range(FOLDERS_KEPT + 5):
        (applications / f"application-0{number:03}").mkdir(parents=True)
    launcher = SparkSubmitLauncher(recording(tmp_path), applications, os.environ)
    launcher.start(given_settings(**CASES["standalone"])).wait()
    assert len(list(applications.iterdir())) == FOLDERS_KEPT + 1


def test_a_spark_that_is_not_there_is_said_clearly(tmp_path: Path) -> None:
    assert Path(spark_home(None), "bin", "spark-submit").is_file()
    for wrong in (str(tmp_path), "spark"):
        with pytest.raises(InvalidConfiguration, match="no bin/spark-submit"):
            spark_home(wrong)
