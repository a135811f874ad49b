"""Where logs were read to."""

from tests.contracts.stores import Stores


def test_a_position_is_kept_until_it_moves(stores: Stores) -> None:
    assert stores.cursors().position("hive:lake") is None
    stores.cursors().move("hive:lake", 2**40)
    stores.cursors().move("hive:other", 1)
    assert stores.cursors().position("hive:lake") == 2**40
    stores.cursors().move("hive:lake", 3)
    assert (stores.cursors().position("hive:lake"), stores.cursors().position("hive:other")) == (3, 1)
