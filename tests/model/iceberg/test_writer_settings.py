"""Settings come from table properties with Iceberg's defaults; what would be lost or makes no sense is refused."""

from __future__ import annotations

import pytest

from icewright.core.errors import InvalidConfiguration, Unsupported
from icewright.model.iceberg.writer_settings import WriterSettings, writer_settings
from tests.cases import each_case


def test_defaults_are_icebergs() -> None:
    assert writer_settings({}) == WriterSettings(
        codec="zstd",
        compression_level=3,
        row_group_size_bytes=134_217_728,
        page_size_bytes=1_048_576,
        page_row_limit=20_000,
        dictionary_size_bytes=2_097_152,
    )


def test_every_property_is_read() -> None:
    properties = {
        "write.parquet.compression-codec": "GZIP",
        "write.parquet.compression-level": "9",
        "write.parquet.row-group-size-bytes": "1",
        "write.parquet.page-size-bytes": "2",
        "write.parquet.page-row-limit": "3",
        "write.parquet.dict-size-bytes": "4",
        "write.parquet.dict-encoding-enabled.column.uid": "False",
        "write.parquet.dict-encoding-enabled.column.city": "true",
        "write.format.default": "PARQUET",
        "write.parquet.bloom-filter-enabled.column.a": "false",
        "owner": "somebody",
    }
    assert writer_settings(properties) == WriterSettings("gzip", 9, 1, 2, 3, 4, frozenset({"uid"}))


@each_case(("codec", "level"), [("gzip", 6), ("brotli", 1), ("snappy", None), ("uncompressed", None), ("none", None)])
def test_levels_of_other_codecs_are_parquet_javas(codec: str, level: int | None) -> None:
    settings = writer_settings({"write.parquet.compression-codec": codec})
    assert settings.compression_level == level


def test_a_level_for_a_codec_without_levels_is_no_matter() -> None:
    properties = {"write.parquet.compression-codec": "snappy", "write.parquet.compression-level": "7"}
    assert writer_settings(properties).compression_level is None


@each_case(
    ("key", "value"),
    [
        ("write.parquet.compression-codec", "lz4"),
        ("write.parquet.compression-codec", "lzo"),
        ("write.format.default", "orc"),
        ("write.parquet.bloom-filter-enabled.column.a", " TRUE"),
        ("encryption.key-id", "k"),
        ("encryption.data-key-length", "16"),
    ],
)
def test_what_would_be_lost_is_refused(key: str, value: str) -> None:
    with pytest.raises(Unsupported):
        writer_settings({key: value})


@each_case(
    ("key", "value"),
    [
        ("write.parquet.row-group-size-bytes", "128MB"),
        ("write.parquet.row-group-size-bytes", "0"),
        ("write.parquet.page-row-limit", "-1"),
        ("write.parquet.compression-level", "23"),
        ("write.parquet.compression-level", "high"),
    ],
)
def test_what_is_no_setting_is_refused(key: str, value: str) -> None:
    with pytest.raises(InvalidConfiguration, match=key):
        writer_settings({key: value})
