"""The room's door."""

import regard.data


def test_all_is_there_and_sorted() -> None:
    assert regard.data.__all__ == sorted(regard.data.__all__)
    for name in regard.data.__all__:
        assert getattr(regard.data, name) is not None
