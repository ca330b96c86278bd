"""Masks: drawn by hand for each kind, put together with &, and refused where they do not fit."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import InputError
from regard.nn import attention, attention_formula, causal, dilated, full, global_sliding, matrix, padding, sliding

EVERY = settings(derandomize=True, deadline=None, max_examples=40)


def drawn(picture):
    """A picture of a mask, x where a query (a row) sees a key; rows of a batch are divided by an empty line."""
    batch = [text.split() for text in picture.strip("\n").split("\n\n")]
    return torch.tensor([[[sign == "x" for sign in line] for line in text] for text in batch])


PICTURES = [
    (full(), 2, 3, "xxx\nxxx"),
    (causal(), 4, 4, "x...\nxx..\nxxx.\nxxxx"),
    (causal(), 2, 4, "x...\nxx.."),
    (causal(), 4, 2, "x.\nxx\nxx\nxx"),
    (padding([1, 3, 0]), 2, 3, "x..\nx..\n\nxxx\nxxx\n\n...\n..."),
    (padding(torch.tensor([[True, False, True]])), 2, 3, "x.x\nx.x"),
    (sliding(1), 5, 5, "xx...\nxxx..\n.xxx.\n..xxx\n...xx"),
    (sliding(2), 3, 6, "xxx...\nxxxx..\nxxxxx."),
    (dilated(1, 2), 6, 6, "x.x...\n.x.x..\nx.x.x.\n.x.x.x\n..x.x.\n...x.x"),
    (dilated(2, 3), 8, 8, "x..x..x.\n.x..x..x\n..x..x..\nx..x..x.\n.x..x..x\n..x..x..\nx..x..x.\n.x..x..x"),
    (global_sliding(1, (0,)), 5, 5, "xxxxx\nxxx..\nxxxx.\nx.xxx\nx..xx"),
    (global_sliding(1, (3, 1, 3)), 5, 5, "xx.x.\nxxxxx\n.xxx.\nxxxxx\n.x.xx"),
    (global_sliding(1, ()), 3, 3, "xx.\nxxx\n.xx"),
    (matrix(drawn("x.x\n.x.")[0]), 2, 3, "x.x\n.x."),
    (matrix(drawn("x.\n.x\n\n.x\nx.")), 2, 2, "x.\n.x\n\n.x\nx."),
    (causal() & sliding(1), 4, 4, "x...\nxx..\n.xx.\n..xx"),
    (causal() & dilated(1, 2), 4, 4, "x...\n.x..\nx.x.\n.x.x"),
    (causal() & global_sliding(1, (0, 2)), 5, 5, "x....\nxx...\nxxx..\nx.xx.\nx.xxx"),
    (causal() & padding([2, 3]), 3, 3, "x..\nxx.\nxx.\n\nx..\nxx.\nxxx"),
]


@pytest.mark.parametrize(("mask", "queries", "keys", "picture"), PICTURES)
def test_drawn_by_hand(mask, queries, keys, picture):
    assert torch.equal(mask.matrix(queries, keys), drawn(picture))


@st.composite
def masks(draw, rows=2, size=9):
    """Any simple mask that fits `rows` rows of `size` tokens."""
    numbers = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    near, positions = st.integers(1, 4), st.lists(st.integers(0, size - 1), max_size=3)
    match draw(st.sampled_from(["full", "causal", "lengths", "holes", "sliding", "dilated", "global", "graph"])):
        case "full":
            return full()
        case "causal":
            return causal()
        case "lengths":
            return padding(torch.randint(0, size + 1, (rows,), generator=numbers))
        case "holes":
            return padding(torch.rand(rows, size, generator=numbers) < 0.7)
        case "sliding":
            return sliding(draw(near))
        case "dilated":
            return dilated(draw(near), draw(near))
        case "global":
            return global_sliding(draw(near), draw(positions))
        case _:
            return matrix(torch.rand(rows, size, size, generator=numbers) < 0.5)


@EVERY
@given(st.lists(masks(), min_size=1, max_size=4))
def test_and_is_the_elementwise_and(parts):
    together, expected = full(), torch.ones(1, 9, 9, dtype=torch.bool)
    for part in parts:
        together = together & part
        expected = expected & part.matrix(9)
    assert torch.equal(together.matrix(9).expand(2, 9, 9), expected.expand(2, 9, 9))
    assert not any(isinstance(part, type(full())) for part in together.parts) or together == full()


@EVERY
@given(masks(), masks(), st.data())
def test_any_positions_are_entries_of_the_whole(one, other, data):
    """A step with a cache asks for a few queries and keys, of each row other ones; the whole square has the answers."""
    mask, places = one & other, st.lists(st.integers(0, 8), min_size=2, max_size=2)
    queries = torch.tensor([data.draw(places), data.draw(places)])
    keys = torch.tensor([data.draw(places), data.draw(places)])
    whole = mask.matrix(9).expand(2, 9, 9)
    for row, seen in enumerate(mask.draw(queries, keys).expand(2, 2, 2)):
        assert torch.equal(seen, whole[row][queries[row]][:, keys[row]])


@EVERY
@given(masks(), masks())
def test_what_a_mask_says_of_itself_is_true(one, other):
    mask = one & other
    whole = mask.matrix(9)
    if not whole.any(-1).all():
        assert mask.may_blind
    if mask.shift_invariant:
        assert torch.equal(mask.draw(torch.arange(5)[None], torch.arange(7)[None]),
                           mask.draw(torch.arange(5)[None] + 3, torch.arange(7)[None] + 3))  # fmt: skip


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sliding(0), "window = 0: must be 1 or more"),
        (lambda: dilated(2, 0), "dilation = 0: must be 1 or more"),
        (lambda: dilated(-1, 2), "window = -1: must be 1 or more"),
        (lambda: global_sliding(0, (1,)), "window = 0: must be 1 or more"),
        (lambda: global_sliding(1, (2, -1)), r"global positions \[-1, 2\]: must be 0 or more"),
        (lambda: padding(torch.ones(2, 3)), r"padding of shape \(2, 3\) and torch.float32: must be lengths \(B\)"),
        (lambda: padding(torch.ones(2, dtype=torch.bool)), r"padding of shape \(2,\) and torch.bool"),
        (lambda: matrix(torch.ones(2, 3)), r"mask of shape \(2, 3\) and torch.float32: must be boolean"),
        (lambda: matrix(torch.ones(3, dtype=torch.bool)), r"mask of shape \(3,\)"),
    ],
)
def test_what_is_no_mask_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


def booleans(*shape):
    return torch.ones(shape, dtype=torch.bool)


@pytest.mark.parametrize("attend", [attention, attention_formula])
@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (matrix(booleans(3, 5)), r"mask of shape \(3, 5\): it has 3 queries, but 4 are attended"),
        (matrix(booleans(4, 3)), r"mask of shape \(4, 3\): it has 3 keys, but 5 are attended"),
        (matrix(booleans(3, 4, 5)), r"mask of shape \(3, 4, 5\): the batch has 2 rows"),
        (padding([1, 2, 3]), r"padding of shape \(3,\): the batch has 2 rows"),
        (padding(booleans(3, 5)), r"padding of shape \(3, 5\): the batch has 2 rows"),
        (padding(booleans(2, 3)), r"padding of shape \(2, 3\): it has 3 keys, but 5 are attended"),
        (causal() & padding([1, 2, 3]), r"padding of shape \(3,\): the batch has 2 rows"),
    ],
)
def test_a_mask_of_another_shape_is_refused(attend, mask, said):
    """A boolean padding narrower than the keys used to hide the keys beyond it without a word."""
    with pytest.raises(InputError, match=said):
        attend(torch.randn(2, 2, 4, 3), torch.randn(2, 2, 5, 3), torch.randn(2, 2, 5, 3), mask)
