"""Hidden pieces: which are to be told, what is shown instead, whole words, and the same again at the same place."""

from pathlib import Path

import numpy as np
import pytest

from regard.config import DataConfig, TokensConfig
from regard.data import BatchStream, HiddenStore, PairStore, TextStore, TwinStore
from regard.data.hidden import UNTOLD
from regard.errors import InputError
from regard.text import Tokenizer, train_tokenizer
from regard.text.vocabulary import MASK

from .conftest import Corpus, sentences


@pytest.fixture(scope="module", params=["bpe", "word"])
def masking(request: pytest.FixtureRequest) -> Tokenizer:
    return train_tokenizer(sentences(300, 0), TokensConfig(kind=request.param, size=290), [MASK])


@pytest.fixture
def texts(masking: Tokenizer, tmp_path: Path) -> TextStore:
    file = tmp_path / "a.tsv"
    file.write_text("".join(f"{line}\tlabel\n" for line in sentences(200, 3, longest=40)), encoding="utf-8")
    return TextStore.open(DataConfig(train=(str(file),)), masking, folder=tmp_path / "data")


def test_the_mask_has_an_id_of_its_own(masking: Tokenizer, tmp_path: Path) -> None:
    mask = masking.specials.mask
    assert mask is not None
    assert masking.tags == ()
    assert masking.piece(mask) == MASK
    assert mask not in masking.encode(MASK)
    assert masking.decode([mask, *masking.encode("kedi")]) == "kedi"
    assert train_tokenizer(["a b"], TokensConfig(kind="char")).specials.mask is None


def test_rows_are_the_text_and_pieces_are_hidden_by_share(masking: Tokenizer, texts: TextStore) -> None:
    store = HiddenStore(texts, masking, window=20, share=0.15)
    assert sum(store.sets) == len(store) > len(texts.documents)
    batch = store.batch(np.arange(len(store)), np.random.default_rng(1))
    assert store.lengths()[0].tolist() == batch.lengths.tolist()
    assert int(batch.lengths.max()) <= 22
    told = batch.targets != UNTOLD
    right = batch.texts.where(~told, batch.targets)
    ids = [id for row, n in zip(right.tolist(), batch.lengths.tolist(), strict=True) for id in row[1 : n - 1]]
    assert ids == texts.documents.values.tolist()
    count = int(told.sum())
    assert batch.tokens == count
    assert (told.sum(1) >= 1).all()
    assert 0.12 < count / len(ids) < 0.2
    hidden = int((batch.texts[told] == masking.specials.mask).sum())
    same = int((batch.texts[told] == batch.targets[told]).sum())
    assert abs(hidden / count - 0.8) < 0.06
    assert 0.05 < same / count < 0.17
    assert not told[:, 0].any()
    parts = batch.cut(3)
    assert sum(part.tokens for part in parts) == count
    assert [len(part) for part in parts] == [len(p.texts) for p in parts]


def test_whole_words_are_hidden_together(masking: Tokenizer, texts: TextStore) -> None:
    store = HiddenStore(texts, masking, window=60, share=0.3, whole_words=True)
    batch = store.batch(np.arange(40), np.random.default_rng(1))
    for shown, targets, length in zip(batch.texts, batch.targets, batch.lengths.tolist(), strict=True):
        told = (targets != UNTOLD)[1 : length - 1].tolist()
        ids = shown.where(targets == UNTOLD, targets)[1 : length - 1].tolist()
        words = masking.words(ids)
        for word in set(words):
            assert len({told[place] for place in range(len(words)) if words[place] == word}) == 1


def test_a_place_hides_the_same_pieces_and_another_epoch_others(masking: Tokenizer, texts: TextStore) -> None:
    store = HiddenStore(texts, masking, window=20, share=0.15)
    assert store.batch(np.arange(5)).targets.tolist() == store.batch(np.arange(5)).targets.tolist()

    def first(epochs: int) -> list[dict[int, list[int]]]:
        seen: list[dict[int, list[int]]] = [{} for _ in range(epochs)]
        with BatchStream(store, tokens_per_batch=400, seed=3) as stream:
            for update in stream:
                epoch = update.after.epoch - (update.after.batch == 0)
                for part in update.parts:
                    seen[epoch].update(zip(part.index.tolist(), part.targets.tolist(), strict=True))
                if update.after.epoch == epochs:
                    return seen
        return seen

    one, other = first(2), first(2)
    assert one == other
    assert set(one[0]) == set(one[1]) == set(range(len(store)))
    assert any(one[0][row] != one[1][row] for row in one[0])


def test_without_a_mask_it_is_refused(tokenizer: Tokenizer, texts: TextStore) -> None:
    with pytest.raises(InputError, match="no mask"):
        HiddenStore(texts, tokenizer, window=20, share=0.15)


def test_twins_are_both_sides_between_begin_and_end(tokenizer: Tokenizer, corpus: Corpus, tmp_path: Path) -> None:
    pairs = [("kedi", "the house"), ("su yol", "water"), ("ev", "day and day")]
    config = DataConfig(train=corpus(pairs=pairs))
    store = TwinStore(PairStore.open(config, tokenizer, folder=tmp_path / "data"), tokenizer)
    batch = store.batch(np.array([2, 0]))
    begin, end = tokenizer.specials.begin, tokenizer.specials.end
    for side, ids, lengths in ((0, batch.left, batch.left_lengths), (1, batch.right, batch.right_lengths)):
        for row, pair in enumerate((pairs[2], pairs[0])):
            assert ids[row, : lengths[row]].tolist() == [begin, *tokenizer.encode(pair[side]), end]
            assert store.lengths()[side][(2, 0)[row]] == lengths[row]
    assert (batch.tokens, [len(part) for part in batch.cut(2)]) == (2, [1, 1])
