"""Each test of this room begins with the same random numbers, whichever ran before."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        yield
