"""How the values of options are read: texts, paths and defaults without pydantic, whose import takes 0.1 s of CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer.core
from typer._coercion import RuntimeParam, build_runtime_param
from typer._param_types import coerce_cli_path

if TYPE_CHECKING:
    from typer._coercion import TypeDescriptor


@dataclass(frozen=True)
class _Quick(RuntimeParam):
    """As typer reads a value, by the functions that it gives to pydantic where pydantic itself does nothing."""

    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is param.default and type(value) is self.annotation:
            return value
        if self.parameter_info.parser is None:
            if self.annotation is str and isinstance(value, str):
                return value
            if self.annotation is Path and isinstance(value, str | Path):
                return coerce_cli_path(Path(value), self.parameter_info, path_type=Path, param=param, ctx=ctx)
        return build_runtime_param(self.descriptor)._coerce_value(value, param, ctx)  # noqa: SLF001 - as typer calls it


def read_quickly() -> None:
    """Have typer read the values of all commands of this process so."""
    typer.core.build_runtime_param = _built  # type: ignore[attr-defined] # typer has no other way


def _built(descriptor: TypeDescriptor) -> RuntimeParam:
    if descriptor.is_file:
        return build_runtime_param(descriptor)
    return _Quick(descriptor.parameter_info, descriptor.annotation, descriptor)
