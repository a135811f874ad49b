"""Packages of the JVM are asked for once: each question has Java look through all of its jars."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j import protocol
from py4j.java_gateway import JavaClass, JVMView

from icewright_spark.session.session import JavaPackages

CLASS = "org.apache.iceberg.Table"


class Jvm:
    """What py4j talks to: a JVM with one class."""

    gateway_property, converters = SimpleNamespace(pool=None), ()

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send_command(self, command: str) -> str:
        _, _, name, *_ = command.splitlines()
        self.asked.append(name)
        return f"{protocol.SUCCESS_CLASS}{name}" if name == CLASS else str(protocol.SUCCESS_PACKAGE)


def test_each_package_and_class_is_asked_for_once() -> None:
    jvm = Jvm()
    packages = JavaPackages(JVMView(jvm, "default", id="rj"))
    first, second = packages.org.apache.iceberg.Table, packages.org.apache.iceberg.Table
    assert isinstance(first, JavaClass)
    assert first._fqn == CLASS
    assert second is first
    iceberg = packages.org.apache.iceberg
    assert iceberg._fqn == "org.apache.iceberg"
    with pytest.raises(TypeError, match="not callable"):
        iceberg.NoSuchClass()
    assert jvm.asked == ["org", "org.apache", "org.apache.iceberg", CLASS, "org.apache.iceberg.NoSuchClass"]
