"""Shares of a campaign stand in order, no seed is in two, and each says what it judged."""

from __future__ import annotations

import re

import pytest
from shares import joined, share


def test_a_share_says_which_source_and_versions_it_judged() -> None:
    one = share(5, 2, 1.6)
    assert (one["seed"], one["count"], one["seconds"]) == (5, 2, 2)
    assert re.fullmatch("[0-9a-f]{16}", one["source"])
    assert set(one["versions"]) == {"dsfc", "torch", "python"}


def test_shares_are_joined_by_seed() -> None:
    runs = [[share(5, 2, 0)], [share(0, 5, 0), share(9, 1, 0)], [share(7, 2, 0)]]
    assert [one["seed"] for one in joined(*runs)] == [0, 5, 7, 9]


@pytest.mark.parametrize(("seed", "twice"), [(3, 4), (4, 4), (5, 5)])
def test_a_seed_in_two_shares_is_refused(seed: int, twice: int) -> None:
    with pytest.raises(ValueError, match=f"seeds from {twice} are in two shares"):
        joined([share(4, 2, 0)], [share(seed, 2, 0)])
