"""The Spark ``CALL`` that comes nearest to an action: for people who know Iceberg's procedures, never run by us.

Nearest only: a procedure picks its files itself and proves nothing, while an action names each file.

Names are input from strangers, so everything is rendered by two escaping functions: identifiers in backticks, and
string literals as Spark's default parser reads them (``spark.sql.parser.escapedStringLiterals=false``).
"""

from __future__ import annotations

import unicodedata

from icewright.actions.rewrite_data_files.layouts.layouts import paths_of
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.names import TableName, identifier
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import MigrateSpec, Policy

_BMP_MAX = 0xFFFF
_ESCAPES = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Characters that a terminal or an editor would act on or hide: controls, format characters (among them the
# bidirectional overrides), unpaired surrogates, and the separators of lines and paragraphs.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def nearest_call(metadata: TableMetadata, policy: Policy, action: RewriteDataFiles) -> str:
    """One SQL statement on one line of printable characters.

    Its sort orders name columns alone: of a transform it names the column, which orders rows as well.
    """
    options = {"target-file-size-bytes": str(action.target_file_size_bytes), "use-starting-sequence-number": "true"}
    if any(group.delete_files for group in action.groups):
        # Iceberg's default for the latter is never.
        options["delete-ratio-threshold"] = str(policy.delete_ratio_threshold)
        options["delete-file-threshold"] = str(policy.delete_file_threshold)
    moved = [group for group in action.groups if group.output_spec_id is not None]
    if moved:
        options["output-spec-id"] = str(moved[0].output_spec_id)
    if action.level is Level.LEVEL_2 or (moved and policy.migrate_spec is MigrateSpec.ALL):
        options["rewrite-all"] = "true"
    else:
        options["min-input-files"] = str(policy.min_input_files)
    arguments = ["strategy => 'binpack'" if action.layout is None else "strategy => 'sort'"]
    if action.layout is not None and action.layout.sort_order_id is None:
        arguments.append(f"sort_order => {literal(_order(metadata, action.layout))}")  # else it takes the table's own
    arguments.append(f"options => {_map(options)}")
    return procedure_call(metadata.name, "rewrite_data_files", *arguments)


def procedure_call(name: TableName, procedure: str, *arguments: str) -> str:
    """The call of one of Iceberg's procedures on a table, with these ``arguments`` behind the table's own."""
    table = literal(".".join(identifier(part) for part in name.path))
    return f"CALL {identifier(name.catalog)}.system.{procedure}({', '.join((f'table => {table}', *arguments))})"


def _order(metadata: TableMetadata, layout: Layout) -> str:
    names = [".".join(identifier(part) for part in path) for path in paths_of(metadata, layout)]
    if layout.curve is not Curve.SORT:
        return f"{layout.curve}({', '.join(names)})"
    fields = zip(names, layout.fields, strict=True)
    return ", ".join(f"{name} {f.direction.upper()} {f.null_order.replace('-', ' ').upper()}" for name, f in fields)


def literal(text: str) -> str:
    r"""``text`` as a Spark string literal: ``'`` and ``\`` escaped, and what does not print as ``\uXXXX``."""
    return "'" + "".join(_escape(character) for character in text) + "'"


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if unicodedata.category(character) in _HIDDEN:
        code = ord(character)
        return f"\\u{code:04x}" if code <= _BMP_MAX else f"\\U{code:08x}"
    return character


def _map(options: dict[str, str]) -> str:
    return f"map({', '.join(literal(text) for pair in options.items() for text in pair)})"
