"""Data: the recipe's text as ids on the disk, made once, and batches of it in an order that can be resumed exactly."""

from regard.data.batch import Batch, LabelledBatch, PairBatch, TextBatch, fill, labelled_batch, pair_batch, text_batch
from regard.data.documents import TextStore
from regard.data.hidden import HiddenBatch, HiddenStore
from regard.data.labelled import LabelledStore, joined_texts
from regard.data.packing import PackedStore, hold_out, whole_spans
from regard.data.pairs import PairStore
from regard.data.plan import Plan, epoch_rows, plan_epoch
from regard.data.ragged import Ragged
from regard.data.reading import labelled_texts, text_pairs
from regard.data.stream import BatchStream, Position, Share, Update
from regard.data.twins import TwinBatch, TwinStore

__all__ = [
    "Batch", "BatchStream", "HiddenBatch", "HiddenStore", "LabelledBatch", "LabelledStore", "PackedStore",
    "PairBatch", "PairStore", "Plan", "Position", "Ragged", "Share", "TextBatch", "TextStore", "TwinBatch",
    "TwinStore", "Update", "epoch_rows", "fill", "hold_out", "joined_texts", "labelled_batch", "labelled_texts",
    "pair_batch", "plan_epoch", "text_batch", "text_pairs", "whole_spans",
]  # fmt: skip
