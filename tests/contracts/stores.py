"""Every implementation of the store ports, opened for a test; one more database is one more entry here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from icewright.adapters.memory.table_store import MemoryTableStore
from icewright.adapters.memory.task_store import MemoryTaskStore
from icewright.adapters.sql.engine import open_store
from icewright.adapters.sql.table_store import SqlTableStore
from icewright.adapters.sql.task_store import SqlTaskStore
from icewright.ports.clock import Clock
from icewright.ports.store import TableStore, TaskStore


class MemoryStores:
    """Stores that share one process's memory: opening them again gives the same ones."""

    def __init__(self, _directory: Path, clock: Clock) -> None:
        self._tasks = MemoryTaskStore(clock)
        self._tables = MemoryTableStore(clock, self._tasks)

    def tasks(self) -> TaskStore:
        return self._tasks

    def tables(self) -> TableStore:
        return self._tables

    def close(self) -> None:
        pass


class SqliteStores:
    """Stores over one file: each call opens an engine of its own, as another process would."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self.url = f"sqlite:///{directory}/state/icewright.db"
        self._clock = clock
        self._engines = [open_store(self.url)]

    def tasks(self) -> TaskStore:
        self._engines.append(open_store(self.url))
        return SqlTaskStore(self._engines[-1], self._clock)

    def tables(self) -> TableStore:
        self._engines.append(open_store(self.url))
        return SqlTableStore(self._engines[-1], self._clock)

    def close(self) -> None:
        for engine in self._engines:
            engine.dispose()


Stores = MemoryStores | SqliteStores
IMPLEMENTATIONS: dict[str, Callable[[Path, Clock], Stores]] = {"memory": MemoryStores, "sqlite": SqliteStores}


@contextmanager
def opened(implementation: str, directory: Path, clock: Clock) -> Iterator[Stores]:
    stores = IMPLEMENTATIONS[implementation](directory, clock)
    try:
        yield stores
    finally:
        stores.close()
