"""Configuration is read strictly, and each value knows where it came from."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.config.model import ClusterConfig, Config
from icewright.config.setting import Kind
from icewright.config.settings import SECTIONS
from icewright.configuration.load import load_config
from icewright.configuration.show import shown
from icewright.core.errors import InvalidConfiguration, NotFound
from icewright.model.policy.policy import PolicyRule
from icewright.model.work.retention import DAY_MS, RETENTION, SETTING_OF, RowKind
from tests.cases import each_case

LAKE = """
[[catalogs]]
name = "lake"
type = "sql"
uri = "sqlite:////lake/catalog.db"
warehouse = "/lake/warehouse"
"""
EXPOSED = '[server]\nhost = "0.0.0.0"\npublic_url = "https://lake.example"\n'
PROXIED = 'trusted_proxies = ["10.1.0.0/16"]\n'


def load(tmp_path: Path, text: str | None = LAKE, /, **environ: str) -> Config:
    """The configuration of a working directory with this icewright.toml."""
    if text is not None:
        (tmp_path / "icewright.toml").write_text(text)
    return load_config(None, {"HOME": str(tmp_path / "home"), **environ}, tmp_path)


def refusal(tmp_path: Path, text: str, /, **environ: str) -> InvalidConfiguration:
    with pytest.raises(InvalidConfiguration) as caught:
        load(tmp_path, text, **environ)
    return caught.value


def test_nothing_at_all_gives_the_defaults_and_no_catalogs(tmp_path: Path) -> None:
    config = load(tmp_path, None)
    assert config.catalogs == ()
    assert config.path is None
    assert (config.server.host, config.server.port) == ("127.0.0.1", 7077)
    assert config.server.state_dir == tmp_path / "home/.local/state/icewright"
    assert config.server.store_url == f"sqlite:///{tmp_path}/home/.local/state/icewright/icewright.db"
    assert config.optimizer.master == "local[*]"
    assert set(config.origins.values()) == {"default"}
    assert len(config.origins) == sum(map(len, SECTIONS.values()))


def test_a_catalog_is_read_and_named(tmp_path: Path) -> None:
    config = load(tmp_path)
    entry = config.catalog("lake")
    assert (entry.uri, entry.warehouse) == ("sqlite:////lake/catalog.db", "/lake/warehouse")
    assert config.rules == ()
    with pytest.raises(NotFound, match="no catalog 'pond'") as caught:
        config.catalog("pond")
    assert caught.value.hint == "known: lake"


def test_files_are_looked_for_in_order(tmp_path: Path) -> None:
    def write(name: str, port: int) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"[server]\nport = {port}\n")
        return file

    environ = {"HOME": str(tmp_path / "home")}
    user = write("home/.config/icewright/icewright.toml", 4)
    assert load_config(None, environ, tmp_path).path == user
    here = write("icewright.toml", 3)
    assert load_config(None, environ, tmp_path).path == here
    write("named.toml", 2)
    assert load_config(None, {**environ, "ICEWRIGHT_CONFIG": "named.toml"}, tmp_path).server.port == 2
    flag = write("flag.toml", 1)
    assert load_config(flag, {**environ, "ICEWRIGHT_CONFIG": "named.toml"}, tmp_path).server.port == 1


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"--config: there is no file .*gone\.toml"):
        load_config(Path("gone.toml"), {}, tmp_path)
    with pytest.raises(InvalidConfiguration, match=r"\$ICEWRIGHT_CONFIG: there is no file"):
        load_config(None, {"ICEWRIGHT_CONFIG": "gone.toml"}, tmp_path)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        LAKE + "[server]\nport = 1\n",
        ICEWRIGHT_SERVER__PORT="2",
        ICEWRIGHT_OPTIMIZER__JARS="/a.jar, /b.jar",
        ICEWRIGHT_OPTIMIZER__PACKAGES='["a:b:1"]',
        ICEWRIGHT_OPTIMIZER__SPARK_CONF='{"spark.ui.enabled": false}',
        ICEWRIGHT_CATALOGS__LAKE__WAREHOUSE="/elsewhere",
        ICEWRIGHT_CATALOGS__LAKE__PROPERTIES__S3__ACCESS_KEY_ID="env:KEY",
        ICEWRIGHT_CATALOGS__LAKE__MODE="approve",
    )
    assert config.server.port == 2
    assert config.origins["server.port"] == "environment ICEWRIGHT_SERVER__PORT"
    assert config.optimizer.jars == ("/a.jar", "/b.jar")
    assert config.optimizer.packages == ("a:b:1",)
    assert config.optimizer.spark_conf == {"spark.ui.enabled": "false"}
    assert config.catalogs[0].warehouse == "/elsewhere"
    assert config.catalogs[0].properties == {"s3.access-key-id": "env:KEY"}
    assert config.rules == (PolicyRule("lake", (), {"icewright.mode": "approve"}),)
    assert config.origins["catalogs.lake.uri"] == str(tmp_path / "icewright.toml")


def test_other_names_of_storages_are_declared(tmp_path: Path) -> None:
    config = load(tmp_path, LAKE + '[catalogs.aliases]\n"hdfs://a:8020" = "hdfs://b"\n')
    assert config.catalogs[0].aliases == {"hdfs://a:8020": "hdfs://b"}
    shown_as = {one.key: one.value for one in shown(config)}
    assert shown_as["catalogs.lake.aliases.hdfs://a:8020"] == "hdfs://b"
    with pytest.raises(InvalidConfiguration, match="is an alias itself"):
        load(tmp_path, LAKE + '[catalogs.aliases]\n"hdfs://a" = "hdfs://b"\n"hdfs://b" = "hdfs://c"\n')


def test_the_environment_alone_can_name_a_catalog(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        None,
        ICEWRIGHT_CATALOGS__POND__TYPE="sql",
        ICEWRIGHT_CATALOGS__POND__URI="sqlite:////pond.db",
        ICEWRIGHT_CATALOGS__POND__WAREHOUSE="file:///pond",
    )
    assert [entry.name for entry in config.catalogs] == ["pond"]


def test_names_made_up_by_container_platforms_are_not_ours(tmp_path: Path) -> None:
    assert load(tmp_path, LAKE, ICEWRIGHT_PORT="tcp://10.0.0.1:7077", ICEWRIGHT_SERVICE_HOST="x").server.port == 7077


def test_the_history_is_kept_where_a_catalog_is_named(tmp_path: Path) -> None:
    assert load(tmp_path, LAKE).history.name is None
    assert load(tmp_path, LAKE + '[history]\ntable = "x.y"').history.name is None
    named = load(tmp_path, LAKE + '[history]\ncatalog = "lake"').history.name
    assert str(named) == "lake.icewright.tasks"


def test_mode_and_policy_become_rules(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        LAKE
        + """mode = "observe"
[catalogs.policy]
write.target-file-size-bytes = 1000
[[policies]]
catalog = "lake"
namespace = "sales.`a.b`"
mode = "auto"
[policies.properties]
"icewright.rewrite-data-files.min-input-files" = 3
""",
    )
    assert config.rules == (
        PolicyRule("lake", (), {"icewright.mode": "observe", "write.target-file-size-bytes": "1000"}),
        PolicyRule(
            "lake", ("sales", "a.b"), {"icewright.mode": "auto", "icewright.rewrite-data-files.min-input-files": "3"}
        ),
    )
    file = str(tmp_path / "icewright.toml")
    assert config.origins["catalogs.lake.policy.icewright.mode"] == file
    assert config.origins["policies.lake.sales.`a.b`.icewright.mode"] == file


def test_a_relative_state_directory_lies_beside_the_file(tmp_path: Path) -> None:
    assert load(tmp_path, '[server]\nstate_dir = "state"\n').server.state_dir == tmp_path / "state"
    assert load(tmp_path, '[server]\nstate_dir = "~/s"\n').server.state_dir == tmp_path / "home/s"


@each_case("host", ["0.0.0.0", "::", "192.0.2.1", "10.0.0.1"])  # noqa: S104 - it is what is tested
def test_a_server_may_be_found_by_others_by_tls_and_under_a_name(tmp_path: Path, host: str) -> None:
    exposed = EXPOSED.replace("0.0.0.0", host)  # noqa: S104 - see above
    behind = load(tmp_path, exposed + PROXIED).server
    assert behind.is_exposed
    assert (behind.public_url, behind.trusted_proxies) == ("https://lake.example", ("10.1.0.0/16",))
    own = load(tmp_path, exposed + 'tls_certificate = "tls/c.pem"\ntls_key = "/k.pem"').server
    assert (own.tls_certificate, own.tls_key) == (tmp_path / "tls/c.pem", Path("/k.pem"))


@each_case("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_a_server_of_this_machine_needs_nothing_of_that(tmp_path: Path, host: str) -> None:
    assert not load(tmp_path, f'[server]\nhost = "{host}"').server.is_exposed


@each_case(
    ("text", "said", "hint"),
    [
        ("[servr]", "unknown key servr", "known here: catalogs, policies, groups, server, optimizer"),
        ("[server]\nprot = 1", "unknown key server.prot", "known here: host, port"),
        ("server = 3", "server: expected a table", "[server]"),
        ('[server]\nport = "7077"', "server.port: expected an integer, found '7077'", "0 (any free port) to 65535"),
        ("[server]\nport = true", "server.port: expected an integer", ""),
        ("[server]\nport = 65536", "server.port: '65536' is not allowed", "0 (any free port) to 65535"),
        ('[server]\nhost = "example.com"', "server.host: 'example.com' is not allowed", "0.0.0.0 or ::"),
        ('[server]\nhost = "0.0.0.0"', "server.public_url is missing, which server.host 0.0.0.0 needs", "public_url ="),
        ('[server]\nhost = "192.0.2.1"', "server.public_url is missing", "public_url ="),
        (EXPOSED, "server.host 0.0.0.0 would answer other machines in the clear", "trusted_proxies"),
        (EXPOSED.replace("https", "http") + PROXIED, "'http://lake.example' is not allowed", "https://host"),
        (EXPOSED.replace("https://lake.example", "http://127.0.0.1") + PROXIED, "is not by TLS", "https"),
        (EXPOSED.replace("example", "example/x") + PROXIED, "'https://lake.example/x' is not allowed", "https://host"),
        (EXPOSED.replace("example", "example/") + PROXIED, "'https://lake.example/' is not allowed", "without a slash"),
        (EXPOSED + 'tls_key = "k.pem"', "server.tls_certificate is missing", "both, or neither"),
        (EXPOSED + 'tls_certificate = "c.pem"', "server.tls_key is missing", "both, or neither"),
        ('[server]\ntls_certificate = "c.pem"\ntls_key = "k.pem"', "public_url is missing, which TLS needs", ""),
        ('[server]\ntrusted_proxies = ["127.0.0.1"]', "server.public_url is missing", "public_url ="),
        (EXPOSED + 'trusted_proxies = ["0.0.0.0/0"]', "server.trusted_proxies", "but not everybody"),
        (EXPOSED + 'trusted_proxies = ["::/0"]', "server.trusted_proxies", "but not everybody"),
        (EXPOSED + 'trusted_proxies = ["proxy.example"]', "server.trusted_proxies", "addresses and networks"),
        ('[server]\nstore_url = "mysql://u:hunter2@h/d"', "'mysql://u:***@h/d' is not allowed", "postgresql://"),
        ("[server]\nprocesses = 0", "server.processes: '0' is not allowed", "1 to 64"),
        ("[server]\nparallel_looks = 9", "server.parallel_looks: '9' is not allowed", "1 to 8"),
        ('[server]\nstore_url = "postgresql://u:hunter2@h/d"', "a password does not belong here", "store_password"),
        ('[server]\nstore_url = "postgresql://h/d?password=hunter2"', "a password does not belong", "store_password"),
        ('[server]\nstore_password = "hunter2"', "the password itself does not belong here", "env:NAME"),
        ('[server]\ntoken = "hunter2"', "the token itself does not belong here", "env:NAME"),
        ('[server]\npeer_url = "https://10.0.0.7:7077/api"', "is not allowed", "https://host:port"),
        ('[server]\npeer_url = "10.0.0.7:7077"', "is not allowed", "https://host:port"),
        ('[server]\nallowed_hosts = ["*"]', "is not allowed", "no patterns"),
        ('[server]\nallowed_hosts = ["https://lake.example.com"]', "is not allowed", "icewright.example.com:8443"),
        ('[server]\nallowed_hosts = [""]', "is not allowed", "names or addresses"),
        ("[server]\nkeep_tasks_days = 7", "server.keep_tasks_days: '7' is not allowed", "8 to 36500"),
        ("[optimizer]\nslots = 0", "optimizer.slots: '0' is not allowed", "1 or more"),
        ('[optimizer]\nmemory = "lots"', "optimizer.memory: 'lots' is not allowed", "2g"),
        ('[optimizer]\njars = "a.jar"', "optimizer.jars: expected an array of strings", ""),
        ("[optimizer]\nspark_conf = 3", "optimizer.spark_conf: expected a table of strings", ""),
        ("[optimizer.spark_conf]\nx = [1]", "optimizer.spark_conf.x: expected a string", ""),
        ('[optimizer]\nserver_token = "hunter2"', "the token itself does not belong here", "env:NAME"),
        ("catalogs = 3", "catalogs: expected an array of tables", "[[catalogs]]"),
        ("[[catalogs]]\ntype = 'sql'", "catalogs[0].name: missing", "letters"),
        ("[[catalogs]]\nname = 'a.b'", "catalogs[0].name: 'a.b'", "letters"),
        (LAKE + LAKE, "catalogs[1].name: there are two catalogs 'lake'", ""),
        ("[[catalogs]]\nname = 'x'\ntype = 'sql'", "catalogs.x.uri is missing", "sqlite"),
        (LAKE.replace('"sql"', '"glue"'), "catalogs.lake.type: 'glue' is not allowed", "allowed: sql, rest, hive"),
        (LAKE.replace('"/lake/w', '"lake/w'), "'lake/warehouse' is neither a URI nor an absolute path", ""),
        (LAKE.replace("sqlite:////", "sqlite:///"), "is not a SQLite file", "sqlite:////absolute/path"),
        (LAKE + 'mode = "on"', "catalogs.lake.mode: 'on' is not allowed", "observe, approve, auto"),
        (LAKE + 'mode = "auto"\npolicy = {"icewright.mode" = "auto"}', "say the same thing", ""),
        (LAKE + 'policy = {"icewright.mood" = "auto"}', "perhaps icewright.mode is meant", ""),
        (LAKE + 'policy = {"write.target-file-size-bytes" = "5 MB"}', "'5 MB' is not a whole number of bytes", ""),
        (LAKE + "[[policies]]\ncatalog = 'pond'", "policies[0].catalog: there is no catalog 'pond'", "known: lake"),
        (LAKE + "[[policies]]\ncatalog = 'lake'", "policies[0].namespace: expected a name", "namespace = "),
        (LAKE + "[[policies]]\ncatalog='lake'\nnamespace='a..b'", "policies[0].namespace: empty part", ""),
        (LAKE + "[[policies]]\ncatalog='lake'\nnamespace='a'\nmode=1", "policies[0].mode: 1 is not allowed", "observe"),
        (
            LAKE + "[[policies]]\ncatalog='lake'\nnamespace='a'\nproperties={'icewright.mode'='on'}",
            "policies.lake.a.icewright.mode: 'on' is not observe, approve or auto",
            "",
        ),
        (LAKE + "[[policies]]\ncatalog='lake'\nnamespace='a'\nx=1", "policies[0]: unknown key x", "mode"),
        (
            LAKE + "[[policies]]\ncatalog='lake'\nnamespace='a'\n" * 2,
            "policies[1]: there are two policies for namespace lake.a",
            "",
        ),
        ("[server", "not TOML", ""),
        (LAKE + '[history]\ncatalog = "pond"', "history.catalog: there is no catalog 'pond'", "known: lake"),
        (
            LAKE + '[history]\ncatalog = "lake"\ntable = "tasks"',
            "history.table: not a full table name",
            "icewright.tasks",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_file_and_what_is_allowed(
    tmp_path: Path, text: str, said: str, hint: str
) -> None:
    error = refusal(tmp_path, text)
    assert error.message.startswith(str(tmp_path / "icewright.toml"))
    assert said in error.message
    assert hint in error.hint
    assert "hunter2" not in error.message + error.hint


@each_case(
    ("variable", "value", "said"),
    [
        ("ICEWRIGHT_SERVER__PROT", "1", "unknown key server.prot"),
        ("ICEWRIGHT_SERVER__PORT", "x", "expected an integer, found 'x'"),
        ("ICEWRIGHT_SERVER__PORT__X", "1", "unknown key server.port"),
        ("ICEWRIGHT_SERVER__HOST", "", "server.host: expected a string"),
        ("ICEWRIGHT_OTHER__PORT", "1", "no such section"),
        ("ICEWRIGHT_POLICIES__A", "1", "no such section"),
        ("ICEWRIGHT_CATALOGS__LAKE", "1", "no such section"),
        ("ICEWRIGHT_CATALOGS__LAKE__COLOUR", "red", "unknown key catalogs.lake.colour"),
        ("ICEWRIGHT_CATALOGS__POND__MODE", "auto", "catalogs.pond.type is missing"),
        ("ICEWRIGHT_CATALOGS__A.B__MODE", "auto", "not a catalog name"),
        ("ICEWRIGHT_OPTIMIZER__SPARK_CONF", "[", "expected a table of strings"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, value: str, said: str) -> None:
    error = refusal(tmp_path, LAKE, **{variable: value})
    assert f"environment {variable}" in error.message
    assert said in error.message


def test_a_uri_that_is_a_reference_waits_until_it_is_resolved(tmp_path: Path) -> None:
    assert load(tmp_path, LAKE.replace("sqlite:////lake/catalog.db", "env:LAKE_URI")).catalogs[0].uri == "env:LAKE_URI"


@given(st.text(max_size=200))
def test_any_file_is_either_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    file = folder / "any.toml"
    file.write_text(text, encoding="utf-8", newline="")
    with suppress(InvalidConfiguration):
        load_config(file, {"HOME": str(folder)}, folder)


@each_case(
    ("section", "key", "number"),
    [
        (section, setting.key, next(n for n in (setting.default + 1, setting.default + 400) if setting.accepts(n)))
        for section in ("server", "optimizer")
        for setting in SECTIONS[section]
        if setting.kind is Kind.INTEGER and setting.key not in SETTING_OF.values()  # those are below
    ],
)
def test_each_number_that_is_set_is_what_counts(tmp_path: Path, section: str, key: str, number: int) -> None:
    config = load(tmp_path, f"[{section}]\n{key} = {number}\n")
    assert getattr(getattr(config, section), key) == number


def test_each_span_of_what_is_kept_is_its_own(tmp_path: Path) -> None:
    numbers = {key: 100 + number for number, key in enumerate(SETTING_OF.values())}
    said = "".join(f"{key} = {number}\n" for key, number in numbers.items())
    keep = load(tmp_path, f"[server]\n{said}").server.retention
    spans = {SETTING_OF[kind]: keep.spans_ms.get(kind, 0) // DAY_MS for kind in SETTING_OF}
    assert {**spans, "keep_plans": keep.plans} == numbers
    assert load(tmp_path, "").server.retention == RETENTION


@each_case(
    ("key", "wrong"),
    [
        *((SETTING_OF[kind], 0) for kind in SETTING_OF if kind is not RowKind.AUDIT),
        *((key, 36_501) for key in SETTING_OF.values()),
        ("keep_audit_days", 89),
        ("keep_findings_days", 1),
        ("keep_plans", 4),
    ],
)
def test_what_is_kept_too_short_or_for_ever_is_refused(tmp_path: Path, key: str, wrong: int) -> None:
    with pytest.raises(InvalidConfiguration, match=f"server.{key}"):
        load(tmp_path, f"[server]\n{key} = {wrong}\n")


def test_a_server_is_not_dead_before_its_second_heartbeat_is_late(tmp_path: Path) -> None:
    assert (load(tmp_path).cluster.heartbeat_ms, load(tmp_path).cluster.dead_ms) == (30_000, 90_000)
    found = load(tmp_path, LAKE + "\n[cluster]\nheartbeat_ms = 1000\ndead_ms = 2000\n").cluster
    assert (found.heartbeat_ms, found.dead_ms) == (1_000, 2_000)
    error = refusal(tmp_path, LAKE + "\n[cluster]\nheartbeat_ms = 1001\ndead_ms = 2000\n")
    assert "less than twice cluster.heartbeat_ms" in error.message
    assert "cluster.heartbeat_ms" in refusal(tmp_path, LAKE + "\n[cluster]\nheartbeat_ms = 499\n").message


ON_POSTGRESQL = '\n[server]\nstore_url = "postgresql://db.example.com/icewright"\n'
ZOOKEEPER = 'coordinator = "zookeeper"\nzookeeper_hosts = ["zk-1.example.com:2181", "[::1]:2181"]\n'


def test_servers_that_hear_of_each_other_by_zookeeper(tmp_path: Path) -> None:
    assert load(tmp_path).cluster.coordinator == "store"
    credentials = (
        'zookeeper_user = "icewright"\nzookeeper_password = "env:ZK"\nzookeeper_scheme = "sasl"\n'
        'zookeeper_ca = "ca.pem"\nzookeeper_certificate = "/own.pem"\nzookeeper_key = "/own.key"\n'
    )
    found = load(tmp_path, f"{LAKE}{ON_POSTGRESQL}\n[cluster]\n{ZOOKEEPER}{credentials}").cluster
    assert found == ClusterConfig(
        coordinator="zookeeper",
        zookeeper_hosts=("zk-1.example.com:2181", "[::1]:2181"),
        zookeeper_user="icewright",
        zookeeper_password="env:ZK",  # noqa: S106 - a reference
        zookeeper_scheme="sasl",
        zookeeper_ca=tmp_path / "ca.pem",
        zookeeper_certificate=Path("/own.pem"),
        zookeeper_key=Path("/own.key"),
    )


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('coordinator = "etcd"', "cluster.coordinator: 'etcd' is not allowed"),
        ('coordinator = "zookeeper"', "cluster.zookeeper_hosts is missing"),
        (f'{ZOOKEEPER}zookeeper_user = "a"', "cluster.zookeeper_password is missing"),
        (f'{ZOOKEEPER}zookeeper_password = "env:A"', "cluster.zookeeper_user is missing"),
        (f'{ZOOKEEPER}zookeeper_user = "a"\nzookeeper_password = "b"', "the password itself does not belong here"),
        (f'{ZOOKEEPER}zookeeper_user = "a:b"\nzookeeper_password = "env:A"', "cluster.zookeeper_user: 'a:b'"),
        (f'{ZOOKEEPER}zookeeper_ca = "a"\nzookeeper_key = "b"', "cluster.zookeeper_certificate is missing"),
        (f'{ZOOKEEPER}zookeeper_certificate = "a"\nzookeeper_key = "b"', "cluster.zookeeper_ca is missing"),
        (f"{ZOOKEEPER}zookeeper_session_ms = 1999", "cluster.zookeeper_session_ms: '1999' is not allowed"),
        *(
            (f'coordinator = "zookeeper"\nzookeeper_hosts = ["{host}"]', "cluster.zookeeper_hosts: ")
            for host in ("zk-1", "zk-1:0", "zk-1:65536", "zk-1:2181/root", "zk 1:2181", "zk-1:2181,zk-2:2181", ":2181")
        ),
        *(
            (f'{ZOOKEEPER}zookeeper_root = "{root}"', "cluster.zookeeper_root: ")
            for root in ("/", "icewright", "/a/", "/a//b", "/a/../b", "/./a", "/zookeeper", "/zookeeper/a", "/a b")
        ),
    ],
)
def test_what_does_not_fit_zookeeper_is_told(tmp_path: Path, section: str, said: str) -> None:
    assert said in refusal(tmp_path, f"{LAKE}{ON_POSTGRESQL}\n[cluster]\n{section}\n").message


def test_a_store_on_sqlite_needs_no_zookeeper(tmp_path: Path) -> None:
    assert "a store on SQLite has one server" in refusal(tmp_path, f"{LAKE}\n[cluster]\n{ZOOKEEPER}").message
