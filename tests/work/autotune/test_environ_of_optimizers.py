"""What the optimizers that the server starts get of its environment: nothing that is a secret of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from icewright.configuration.load import load_config
from icewright.work.autotune.wiring import build_autotune, environ_of_optimizers
from icewright.work.launch.resident import ResidentLauncher
from tests.builders.served import Served
from tests.builders.specs import settings_of

CONFIGURED = """
[server]
store_url = "postgresql://icewright@db/icewright"
store_password = "env:OF_STORE"
[oidc]
issuer = "https://login.example.org"
client_id = "icewright"
client_secret = "env:OF_LOGINS"
[oidc.roles]
"groups=data-eng" = "viewer"
[queries.kafka]
brokers = "kafka:9092"
topic = "queries"
"properties.sasl.password" = "env:OF_KAFKA"
[notifications]
allowed_networks = ["fd00::/8"]
[receivers.sales]
kind = "webhook"
url = "https://hooks.example.org/icewright"
secret = "env:OF_HOOKS"
[optimizer]
master = "local[1]"
[autotune]
mode = "act"
[[catalogs]]
name = "lake"
type = "rest"
uri = "https://catalog.example.org"
properties = { token = "env:OF_CATALOG" }
"""
KEPT = {"PATH": "/bin", "JAVA_HOME": "/java", "AWS_SECRET_ACCESS_KEY": "of the catalogs", "OF_CATALOG": "of Spark"}
OWN = ("OF_STORE", "OF_LOGINS", "OF_KAFKA", "OF_HOOKS", "PGPASSWORD", "ICEWRIGHT_SERVER__STORE_PASSWORD")
ENVIRON = {**KEPT, **dict.fromkeys(OWN, "env:OF_STORE")}
SAYS = "import json, os, sys; sys.stdin.read(); open(sys.argv[1], 'w').write(json.dumps(dict(os.environ)))"


def test_secrets_of_the_server_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "icewright.toml").write_text(CONFIGURED)
    config = load_config(None, ENVIRON, tmp_path)
    assert environ_of_optimizers(config, ENVIRON) == KEPT
    control = Served().control
    stores = (control.tasks, control.tables, control.backlogs, control.group_views, control.autotune)
    own = build_autotune(config, ENVIRON, *stores)._own
    assert own is not None
    assert isinstance(own._launcher, ResidentLauncher)
    assert own._launcher._environ == KEPT


def test_a_process_gets_the_environment_that_is_left(tmp_path: Path) -> None:
    said = tmp_path / "environ"
    assert ResidentLauncher((sys.executable, "-c", SAYS, str(said)), {"PATH": "/bin"}).start(settings_of()).wait() == 0
    assert set(json.loads(said.read_text())) <= {"PATH", "LC_CTYPE"}  # the latter is of Python's own making
