"""The port of the book of submitters: who starts an application for each task that waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from icewright.model.work.optimizers import SeenSubmitter, Submitter

SUBMITTERS_KEPT_MS: Final = 24 * 3_600_000
"""How long a submitter is remembered that does not ask any more."""
SUBMITTERS_MAX: Final = 1_000
"""So many are remembered: whoever may work names itself as it likes, and under as many names."""


class Submitters(Protocol):
    """Who asked what waits, the same for all servers of a store. Every method is one transaction.

    What stands here gives nobody any right; it is there to be told. Raises
    :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def note(self, submitter: Submitter) -> None:
        """One asked just now, as it says.

        Those that did not for ``SUBMITTERS_KEPT_MS`` are forgotten, and where there are more than ``SUBMITTERS_MAX``,
        those that asked longest ago.
        """

    def noted(self) -> Sequence[SeenSubmitter]:
        """All of them, by their ids."""
