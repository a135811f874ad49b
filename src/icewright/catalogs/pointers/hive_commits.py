"""How the pointer to a table's metadata is moved in a Hive Metastore, which leaves writing the file to its clients.

Apart from SQL catalogs: the classes of the metastore take a second of CPU to load.
"""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    CheckLockRequest,
    EnvironmentContext,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NoSuchObjectException,
    UnlockRequest,
)

from icewright.catalogs.pointers.hive_pointers import HivePointers
from icewright.core.errors import Conflict, NotFound
from icewright.model.iceberg.names import TableName

_LOCATION: Final = "metadata_location"
_PREVIOUS: Final = "previous_metadata_location"
_LOCK_TIMEOUT_S: Final = 60
_LOCK_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0)


class HiveCommits(HivePointers):
    """Pointers of a Hive Metastore that can be moved, under the lock that all of Iceberg's clients take."""

    def move(self, name: TableName, before: str, after: str, changes: Mapping[str, str | None]) -> bool:
        """Move the pointer and the copy of the properties beside it, unless somebody else did since."""
        with self.client() as client, _locked(client, name):
            table = self._table(client, name)
            parameters = dict(table.parameters or {})
            if parameters.get(_LOCATION) != before:
                return False
            parameters |= {_LOCATION: after, _PREVIOUS: before}
            parameters |= {key: text for key, text in changes.items() if text is not None}
            for key, text in changes.items():
                if text is None:
                    parameters.pop(key, None)
            table.parameters = parameters
            # The metastores of today check the expectation themselves, for clients that go without locks.
            context = EnvironmentContext(
                properties={
                    "DO_NOT_UPDATE_STATS": "true",
                    "expected_parameter_key": _LOCATION,
                    "expected_parameter_value": before,
                }
            )
            client.alter_table_with_environment_context(name.namespace[0], name.name, table, context)
            return True

    def _table(self, client: Client, name: TableName) -> Any:
        try:
            return client.get_table(name.namespace[0], name.name)
        except NoSuchObjectException as error:
            raise NotFound(f"no table {name} in catalog {self._name}") from error


@contextmanager
def _locked(client: Client, name: TableName) -> Iterator[None]:
    component = LockComponent(
        level=LockLevel.TABLE,
        type=LockType.EXCLUSIVE,
        dbname=name.namespace[0],
        tablename=name.name,
        isTransactional=True,
    )
    request = LockRequest(component=[component], user=getpass.getuser(), hostname=socket.gethostname())
    lock = client.lock(request)
    try:
        state, waited_s, pauses = lock.state, 0.0, iter(_LOCK_PAUSES_S)
        while state == LockState.WAITING and waited_s < _LOCK_TIMEOUT_S:
            pause_s = next(pauses, _LOCK_PAUSES_S[-1])
            time.sleep(pause_s)
            waited_s += pause_s
            state = client.check_lock(CheckLockRequest(lockid=lock.lockid)).state
        if state != LockState.ACQUIRED:
            problem = f"the metastore gives out no lock of table {name}: another commit is going on"
            raise Conflict(problem, hint="try again in a moment")
        yield
    finally:
        client.unlock(UnlockRequest(lockid=lock.lockid))
