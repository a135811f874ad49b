"""What submits one application to Spark, as data: its command, its environment and its files. No I/O happens here.

Nothing that anybody chose stands on the command line: it names a program, three files of our own and nothing else. All
settings are in the files; the token and the credentials of catalogs are in one of them that Spark hands to the driver
and to nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from icewright.core.codec import dumps
from icewright.core.errors import InvalidConfiguration
from icewright.model.work.optimizers import DeployMode, OptimizerSettings
from icewright.model.work.spark_conf import spark_settings, submitted_settings
from icewright.work.launch.pods import driver_pod, executor_pod

CONF_FILE: Final = "spark.conf"
SETTINGS_FILE: Final = "settings.json"
APPLICATION_FILE: Final = "application.py"
DRIVER_POD_FILE: Final = "driver-pod.json"
EXECUTOR_POD_FILE: Final = "executor-pod.json"
SECRET_PATH: Final = "/etc/icewright"  # noqa: S105 - where a Secret is mounted
APPLICATION_IN_IMAGE: Final = "local:///opt/icewright/application.py"

APPLICATION: Final = '''\
"""Started by spark-submit: carries out one task, or one batch of small ones."""
import sys

from icewright_spark.optimizer.application import main

sys.exit(main(sys.argv[1:]))
'''

_PASSED_ON: Final = frozenset(
    {
        "AWS_CA_BUNDLE", "AWS_CONFIG_FILE", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_REGION",
        "AWS_ROLE_ARN", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
        "HADOOP_CONF_DIR", "HOME", "JAVA_HOME", "KRB5CCNAME", "KRB5_CONFIG", "KUBECONFIG", "LANG", "LC_ALL", "LOGNAME",
        "PATH", "PYTHONPATH", "SPARK_LOCAL_IP", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "USER",
        "YARN_CONF_DIR",
    }
)  # fmt: skip
"""What an application inherits of the environment: names of places, and no secret."""


@dataclass(frozen=True, slots=True)
class SparkHome:
    """Where ``spark-submit`` is, as the administrator says, and the Python that drivers run on this machine."""

    path: str
    python: str


@dataclass(frozen=True, slots=True)
class Submission:
    """``argv`` is the whole command. ``files`` are written, for their owner's eyes, before it is run."""

    argv: tuple[str, ...]
    environ: Mapping[str, str] = field(repr=False)
    files: Mapping[str, str] = field(repr=False)


def submission(
    settings: OptimizerSettings,
    home: SparkHome,
    folder: str,
    environ: Mapping[str, str],
    *,
    secret: str | None = None,
) -> Submission:
    """How an application with these settings is submitted, with its files in ``folder``.

    ``secret`` is the name of the Kubernetes Secret whose key ``settings.json`` has the optimizer's settings.
    Raises :class:`InvalidConfiguration` for settings that may not be used.
    """
    in_cluster = settings.deploy_mode is DeployMode.CLUSTER
    on_kubernetes = settings.master.startswith("k8s://")
    conf = submitted_settings(spark_settings(settings))
    files: dict[str, str] = {}
    application, told = f"{folder}/{APPLICATION_FILE}", f"{folder}/{SETTINGS_FILE}"
    if on_kubernetes:
        conf |= {
            "spark.kubernetes.driver.podTemplateFile": f"{folder}/{DRIVER_POD_FILE}",
            "spark.kubernetes.executor.podTemplateFile": f"{folder}/{EXECUTOR_POD_FILE}",
        }
        files |= {DRIVER_POD_FILE: driver_pod(), EXECUTOR_POD_FILE: executor_pod()}
    if not in_cluster:
        conf["spark.pyspark.driver.python"] = home.python
    conf["spark.pyspark.python"] = settings.executor_python or ("python3" if in_cluster else home.python)
    if in_cluster and on_kubernetes:
        if secret is None:
            raise InvalidConfiguration(
                "optimizer.kubernetes_secret is missing",
                hint="it names the Secret with the settings of drivers; `icewright optimizer secret` writes one",
            )
        conf[f"spark.kubernetes.driver.secrets.{secret}"] = SECRET_PATH
        application, told = APPLICATION_IN_IMAGE, f"{SECRET_PATH}/{SETTINGS_FILE}"
    else:
        files |= {SETTINGS_FILE: dumps(settings), APPLICATION_FILE: APPLICATION}
        if in_cluster:
            conf["spark.yarn.dist.files"], told = told, SETTINGS_FILE
    files[CONF_FILE] = properties(conf)
    argv = (
        f"{home.path}/bin/spark-submit",
        "--properties-file",
        f"{folder}/{CONF_FILE}",
        application,
        told,
        settings.optimizer_id,
    )
    kept = {name: value for name, value in environ.items() if name in _PASSED_ON}
    return Submission(argv, {**kept, "SPARK_HOME": home.path}, files)


def properties(conf: Mapping[str, str]) -> str:
    """A file of Java properties, as ``java.util.Properties`` reads it, sorted by key; all of it ASCII."""
    return "".join(f"{_escaped(key, is_key=True)}={_escaped(value)}\n" for key, value in sorted(conf.items()))


def _escaped(text: str, *, is_key: bool = False) -> str:
    return "".join(_character(letter, first=not number, is_key=is_key) for number, letter in enumerate(text))


def _character(letter: str, *, first: bool, is_key: bool) -> str:
    if letter == "\\" or (is_key and letter in "=: #!") or (first and letter in " #!"):
        return f"\\{letter}"
    if " " <= letter <= "~":
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
