"""``[groups.NAME]`` of the configuration file."""

from pathlib import Path

import pytest

from icewright.config.load import load_config
from icewright.domain.errors import InvalidConfiguration, InvalidResourceGroup
from icewright.domain.resource_groups import ResourceGroup, TenantCaps
from icewright.domain.windows import Window

WRITTEN = """
[groups.etl]
tasks = 8
cores = 32
memory = "128g"
applications = 4
optimizers = 1
large_share = 0.25
windows = [
  { cron = "0 22 * * *", time_zone = "Europe/Berlin", duration = "PT8H" },
  { cron = "0 12 * * 6", duration = "PT1H" },
]

[groups.etl.tenants.sales]
cores = 8
memory = 1073741824
tasks = 2

[groups.default]
"""


def read(folder: Path, text: str) -> tuple[ResourceGroup, ...]:
    file = folder / "icewright.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, {"HOME": str(folder)}, folder).groups


def test_groups_are_read_with_all_their_caps(tmp_path: Path) -> None:
    windows = (Window("0 22 * * *", "Europe/Berlin", 8 * 3_600_000), Window("0 12 * * 6", "UTC", 3_600_000))
    etl = ResourceGroup("etl", 32, 128 << 30, 4, 1, windows, 0.25, (TenantCaps("sales", 8, 1 << 30, 2),), 8)
    assert read(tmp_path, WRITTEN) == (ResourceGroup("default"), etl)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("groups = 3", "groups: expected a table for each"),
        ("[groups]\netl = 3", "groups: expected a table for each"),
        ("[groups.server]", "'server' is no name of a resource group"),
        ("[groups.etl]\ncors = 3", "unknown key cors"),
        ("[groups.etl]\ncores = 0", "cores: write a whole number, at least 1"),
        ("[groups.etl]\ncores = -1", "cores: write a whole number"),
        ("[groups.etl]\ncores = 1.5", "cores: write a whole number"),
        ("[groups.etl]\ncores = true", "cores: write a whole number"),
        ('[groups.etl]\nmemory = "12q"', "memory: write bytes"),
        ("[groups.etl]\nlarge_share = 1.0", "large_share: must be more than 0 and less than 1"),
        ("[groups.etl]\nlarge_share = 'x'", "large_share: write a number"),
        ("[groups.etl]\nwindows = 3", "windows: expected a list"),
        ("[groups.etl]\nwindows = [3]", "windows: expected a table"),
        ("[groups.etl]\nwindows = [{ cron = '0 22 * *', duration = 'PT1H' }]", "windows: it takes minute"),
        ("[groups.etl]\nwindows = [{ cron = '0 22 * * *' }]", "duration: write an ISO-8601 duration"),
        ("[groups.etl]\nwindows = [{ cron = '0 22 * * *', duration = 'PT1H', time_zone = 'X' }]", "names are as"),
        ("[groups.etl]\nwindows = [{ cron = '0 22 * * *', length = 'PT1H' }]", "windows: unknown key length"),
        ("[groups.etl]\ntenants = 3", "tenants: expected a table"),
        ("[groups.etl.tenants.sales]\nslots = 3", "tenants.sales: unknown key slots"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"icewright\.toml") as raised:
        read(tmp_path, text)
    assert said in raised.value.message
    assert isinstance(raised.value, InvalidResourceGroup) or "expected a table" in said
