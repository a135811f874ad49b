"""Whether the inputs of a group are there as the manifests describe them, asked once Spark could not rewrite it.

What Spark says then is Java's, of any kind and depth; the files themselves tell whether it was them.
"""

from __future__ import annotations

from icewright.model.actions.actions import FileGroup
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.errors import FileChanged, FileUnreadable


def damaged_input(table: SparkTable, group: FileGroup) -> FileChanged | FileUnreadable | None:
    """What is wrong with the first of a group's files, deletes among them, that is not there in its full length.

    None when all are. What a storage says that does not answer passes through.
    """
    io = table.java.io()
    sizes = {file.path: file.size_bytes for file in group.files}
    sizes |= {delete.path: delete.size_bytes for delete in group.delete_files}
    for path, size_bytes in sizes.items():
        file = io.newInputFile(path)
        if not file.exists():
            return FileUnreadable(f"{path} is missing")
        found = int(file.getLength())
        if found != size_bytes:
            return FileChanged(f"{path} has {found} bytes, its manifest says {size_bytes}")
    return None
