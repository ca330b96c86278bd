"""Whole searches: transformers' `generate` finds what ours finds, greedily and with beams, wherever the two define the
same; docs/decoding.md tells where they do not. The kernel's searches are held to it too.
"""

import pytest
import torch
from transformers import GenerationConfig

from regard.config import DecodingConfig
from regard.decoding import PlainModel, Request, Search, search, step_model

from .alike import ids, real
from .carry import load
from .peers import VOCABULARY, marian_pair

LENGTHS = torch.tensor([11, 6, 1, 9, 7, 3])
LIMIT, END = 24, 2
STOPPING = {"full": True, "likely": False, "safe": "never"}
"""Our names to their `early_stopping`."""


@pytest.fixture(scope="module", params=["random", "trained"])
def pair(request):
    """Their Marian and ours: random with a bias to the end, or taught for a moment to say sources backwards."""
    torch.manual_seed(0)
    theirs, ours, table = marian_pair()
    source = ids(VOCABULARY, LENGTHS)
    source[torch.arange(len(LENGTHS)), LENGTHS - 1] = END
    if request.param == "random":
        with torch.no_grad():
            theirs.final_logits_bias[0, END] += 2.5
    else:
        teach(theirs)
    load(ours, table, theirs)
    return theirs, ours, source


def teach(theirs):
    """A minute's work in a second: rows of 3 to 8 pieces, said backwards."""
    optimizer = torch.optim.Adam(theirs.parameters(), lr=5e-3)
    for _ in range(150):
        length = int(torch.randint(3, 9, ()))
        rows = torch.randint(3, VOCABULARY, (32, length))
        end = torch.full((32, 1), END)
        loss = theirs(input_ids=torch.cat([rows, end], 1), labels=torch.cat([rows.flip(1), end], 1)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 3


def their_answers(theirs, source, *, beam, **options):
    """Ids and scores of all answers of each row, without what begins and fills up."""
    theirs.generation_config = GenerationConfig(
        do_sample=False, num_beams=beam, num_return_sequences=beam, max_new_tokens=LIMIT, pad_token_id=0,
        decoder_start_token_id=0, eos_token_id=END, return_dict_in_generate=True, output_scores=True, **options,
    )  # fmt: skip
    made = theirs.generate(source, attention_mask=real(LENGTHS).long())
    scores = made.sequences_scores.tolist() if beam > 1 else [0.0] * len(LENGTHS)
    rows = [row[1 : row.index(END, 1) + 1 if END in row[1:] else None] for row in made.sequences.tolist()]
    found = list(zip(rows, scores, strict=True))
    return [found[row * beam : (row + 1) * beam] for row in range(len(LENGTHS))]


def our_answers(ours, source, *, forbidden=(), least=0, fast=False, **options):
    requests = [
        Request(source=tuple(row[:length].tolist()), read=(0,), limit=LIMIT, least=least)
        for row, length in zip(source, LENGTHS.tolist(), strict=True)
    ]
    chosen = DecodingConfig(guard=False, **options)
    wanted = Search(end=END, options=chosen, nbest=chosen.beam, forbidden=forbidden)
    found = search(step_model(ours) if fast else PlainModel(ours), requests, wanted)
    return [each.answers for each in found]


def same(found, expected):
    """Answers are the same where all of a row's ended; theirs ranks those that are cut as if they had, ours behind."""
    compared = 0
    for answers, right in zip(found, expected, strict=True):
        if all(answer.ended for answer in answers) and all(row[-1] == END for row, _ in right):
            assert [[*answer.ids, END] for answer in answers] == [row for row, _ in right]
            assert [answer.score for answer in answers] == pytest.approx([score for _, score in right], abs=1e-4)
            compared += 1
    return compared


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("stopping", STOPPING)
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@torch.no_grad()
def test_a_beam(pair, penalty, stopping, fast):
    theirs, ours, source = pair
    compared = 0
    for beam in (2, 4):
        right = their_answers(theirs, source, beam=beam, length_penalty=penalty, early_stopping=STOPPING[stopping])
        found = our_answers(ours, source, beam=beam, length_penalty=penalty, stopping=stopping, fast=fast)
        compared += same(found, right)
    assert compared >= 6


@pytest.mark.parametrize(
    ("mine", "its"),
    [
        ({}, {}),
        ({"no_repeat_ngram": 2}, {"no_repeat_ngram_size": 2}),
        ({"repetition_penalty": 1.6}, {"repetition_penalty": 1.6}),
        ({"least": 9}, {"min_new_tokens": 9}),
        ({"forbidden": ((5,), (7, 8), (11,))}, {"bad_words_ids": [[5], [7, 8], [11]]}),
    ],
    ids=str,
)
@torch.no_grad()
def test_a_greedy_search(pair, mine, its):
    """What is forbidden and penalised too: their processors and ours do the same to the scores of one row."""
    theirs, ours, source = pair
    right = their_answers(theirs, source, beam=1, **its)
    found = our_answers(ours, source, beam=1, **mine)
    for (answer,), ((row, _),) in zip(found, right, strict=True):
        assert [*answer.ids, *([END] if answer.ended else [])] == row


@pytest.mark.parametrize(
    ("mine", "its"),
    [
        ({"no_repeat_ngram": 2}, {"no_repeat_ngram_size": 2}),
        ({"least": 5}, {"min_new_tokens": 5}),
        ({"forbidden": ((5,), (7, 8), (11,))}, {"bad_words_ids": [[5], [7, 8], [11]]}),
    ],
    ids=str,
)
@torch.no_grad()
def test_a_beam_under_what_is_forbidden(pair, mine, its):
    theirs, ours, source = pair
    right = their_answers(theirs, source, beam=3, length_penalty=1.0, early_stopping=True, **its)
    found = our_answers(ours, source, beam=3, length_penalty=1.0, stopping="full", **mine)
    assert same(found, right) >= 1
