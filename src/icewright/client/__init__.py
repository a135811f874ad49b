"""The Python client: tables, plans and tasks of a server as objects, for programs and notebooks.

``from icewright import connect`` is the way in; nothing of this is imported before that is called.
"""

from icewright.client.lake import Lake, connect
from icewright.client.tables import Plan, Table
from icewright.client.tasks import StillGoing, Task
from icewright.client.views import Health, TablePolicy, WhyAnswer

__all__ = ["Health", "Lake", "Plan", "StillGoing", "Table", "TablePolicy", "Task", "WhyAnswer", "connect"]
