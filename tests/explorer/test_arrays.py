"""Arrays come out of a file as they went in, to the digits that it keeps."""

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.explorer.arrays import Array, Pack, fixed, from_planes, planes, unpacked, whole_numbers


def test_a_file_gives_every_array_back():
    torch.manual_seed(1)
    arrays = {
        "weights": fixed(torch.rand(3, 5, 7).softmax(-1), ("head", "row", "key")),
        "vectors": fixed(torch.randn(5, 9) * 3, ("row", "value"), decimals=3),
        "large": fixed(torch.randn(5, 9) * 300, ("row", "value"), decimals=3),
        "nothing": fixed(torch.zeros(0, 2), ("row", "point")),
    }
    pack = Pack()
    table = {name: pack.add(array) for name, array in arrays.items()}
    data = unpacked(pack.text())
    assert [entry["dtype"] for entry in table.values()] == ["f4", "i2", "i4", "f4"]
    assert all(entry["offset"] % 8 == 0 for entry in table.values())
    for name, entry in table.items():
        found, put = from_planes(data, entry), arrays[name].values()
        assert found.shape == put.shape
        if name == "weights":
            assert np.array_equal(found, put)
        else:  # the text of the number is that of the value
            assert [f"{x:.3f}" for x in found.flat] == [f"{x + 0.0:.3f}".replace("-0.000", "0.000") for x in put.flat]


def test_the_same_bytes_stand_once():
    pack = Pack()
    vector = torch.randn(4, 6)
    first = pack.add(fixed(vector, ("row", "value")))
    assert pack.add(fixed(vector.clone(), ("row", "value")))["offset"] == first["offset"]
    assert pack.add(fixed(vector + 1, ("row", "value")))["offset"] > first["offset"]


def test_planes_are_bytes_by_their_weight():
    assert planes(np.array([0x0102, 0x0304], dtype="<i2")) == bytes([2, 4, 1, 3])


def test_whole_numbers():
    values = np.array([0.0005, -0.0015, 32.767], dtype=np.float64)
    found, dtype, decimals = whole_numbers(values, 3)
    assert (found.tolist(), dtype, decimals) == ([0, -2, 32767], "i2", 3)
    assert whole_numbers(np.array([32.768]), 3)[1] == "i4"
    assert whole_numbers(np.array([3e6]), 3)[2] == 2
    with pytest.raises(ValueError, match="finite"):
        whole_numbers(np.array([-np.inf]), 3)


def test_parts():
    array = fixed(torch.arange(24.0).view(2, 3, 4), ("head", "row", "key"))
    assert array.values(heads=[1], rows=[2, 0]).tolist() == [[[20, 21, 22, 23], [12, 13, 14, 15]]]
    entry, _ = array.part(heads=[1], rows=[0, 1, 2]).packed()
    assert (entry["shape"], entry["heads"], "rows" in entry) == ([1, 3, 4], [1], False)
    with pytest.raises(InputError, match="row 3: there are rows 0 to 2"):
        array.values(rows=[3])
    vectors = fixed(torch.zeros(3, 4), ("row", "value"))
    with pytest.raises(InputError, match=r"heads=0: this array has none"):
        vectors.values(heads=[0])
    assert vectors.part(heads=[0]) is vectors
    assert isinstance(vectors, Array)
