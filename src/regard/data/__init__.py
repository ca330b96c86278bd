"""Data: the recipe's text as ids on the disk, made once, and batches of it in an order that can be resumed exactly."""

from regard.data.batch import Batch, LabelledBatch, PairBatch, fill, labelled_batch, pair_batch
from regard.data.documents import TextStore
from regard.data.labelled import LabelledStore
from regard.data.pairs import PairStore
from regard.data.plan import Plan, epoch_rows, plan_epoch
from regard.data.ragged import Ragged
from regard.data.reading import labelled_texts, text_pairs
from regard.data.stream import BatchStream, Position, Share, Update

__all__ = [
    "Batch", "BatchStream", "LabelledBatch", "LabelledStore", "PairBatch", "PairStore", "Plan", "Position", "Ragged",
    "Share", "TextStore", "Update", "epoch_rows", "fill", "labelled_batch", "labelled_texts", "pair_batch",
    "plan_epoch", "text_pairs",
]  # fmt: skip
