"""The corpus: one translation a source, nothing held out in training, every form seen, always the same."""

import re
from collections import Counter
from hashlib import sha256

import pytest

from regard.demo import english, french, turkish, verbs
from regard.demo.drawing import Dice
from regard.demo.grammar import DIRECTIONS, LECTURE_SENTENCES, Corpus, Pair, corpus, references, words
from regard.demo.nouns import ALL, NAMED
from regard.demo.patterns import PATTERNS, animal_because


@pytest.fixture(scope="module")
def default() -> Corpus:
    return corpus()


def everything(parts: Corpus) -> list[Pair]:
    return [*parts.train, *parts.valid, *parts.test]


def combinations(pair: Pair) -> list[str]:
    return pair.combination.split(" + ")


def test_counts_and_balance(default: Corpus) -> None:
    assert (len(default.train), len(default.valid), len(default.test)) == (90_000, 600, 1_200)
    assert Counter(pair.direction for pair in default.train) == dict.fromkeys(DIRECTIONS, 30_000)
    assert Counter(pair.direction for pair in default.test) == dict.fromkeys(DIRECTIONS, 400)
    for part in (default.train, default.test):
        patterns = Counter(pair.pattern for pair in part)
        for name, (share, _) in PATTERNS.items():
            assert patterns[name] / len(part) == pytest.approx(share, abs=0.003)
    assert sum(share for share, _ in PATTERNS.values()) == pytest.approx(1)


def test_one_translation_a_source(default: Corpus) -> None:
    """A source says one thing: he and she are never guessed, "de souris" is never one mouse or many."""
    pairs = everything(default)
    assert len({(pair.direction, pair.source) for pair in pairs}) == len(pairs)
    # The two directions of French must agree, too: no English sentence of theirs has two French ones or the reverse.
    for here, there in (("en-fr", "fr-en"), ("fr-en", "en-fr")):
        told = {pair.source: pair.target for pair in pairs if pair.direction == here}
        for pair in pairs:
            if pair.direction == there and pair.target in told:
                assert told[pair.target] == pair.source


def test_one_translation_a_meaning() -> None:
    """The same over many more draws than a corpus: whatever is said alike in the source is said alike in the target."""
    english_to_french: dict[str, str] = {}
    french_to_english: dict[str, str] = {}
    english_to_turkish: dict[str, str] = {}
    dice = Dice("meanings")
    for _, draw in PATTERNS.values():
        for _ in range(3_000):
            meaning = draw(dice).meaning
            en, fr, tr = english.sentence(meaning), french.sentence(meaning), turkish.sentence(meaning)
            assert english_to_french.setdefault(en, fr) == fr
            assert french_to_english.setdefault(fr, en) == en
            assert english_to_turkish.setdefault(en, tr) == tr


def test_held_out_combinations_are_never_trained(default: Corpus) -> None:
    trained = {key for pair in default.train for key in combinations(pair)}
    validated = {key for pair in default.valid for key in combinations(pair)}
    tested = [combinations(pair) for pair in default.test]
    assert all(any(key not in trained for key in keys) for keys in tested)
    assert all(any(key not in trained for key in combinations(pair)) for pair in default.valid)
    single = {keys[0] for keys in tested if len(keys) == 1}
    assert not single & trained
    assert not single & validated
    assert not {pair.combination for pair in default.valid if " + " not in pair.combination} & trained


def test_no_training_pair_says_a_held_out_combination(default: Corpus) -> None:
    """Held-out keys stay held out under another seed and size: they are divided by name, not by draw."""
    held_out = {key for pair in default.test for key in combinations(pair) if " + " not in pair.combination}
    other = corpus(size=9_000, valid=90, test=180, seed=7)
    assert not held_out & {key for pair in other.train for key in combinations(pair)}


def test_every_held_out_form_is_trained(default: Corpus) -> None:
    for direction in DIRECTIONS:
        source = {word for pair in default.train if pair.direction == direction for word in words(pair.source)}
        target = {word for pair in default.train if pair.direction == direction for word in words(pair.target)}
        for pair in (*default.valid, *default.test, *LECTURE_SENTENCES):
            if pair.direction == direction:
                assert source.issuperset(words(pair.source)), pair
                assert target.issuperset(words(pair.target)), pair


def test_same_corpus_on_every_machine(default: Corpus) -> None:
    small = corpus(size=600, valid=12, test=24, seed=3)
    assert small == corpus(size=600, valid=12, test=24, seed=3)
    assert small != corpus(size=600, valid=12, test=24, seed=4)
    text = "\n".join(f"{pair.source}\t{pair.target}" for pair in everything(default))
    # Another digest is another corpus: scores that were published with this one are then no longer comparable.
    assert sha256(text.encode()).hexdigest()[:16] == "e1f2a286d27347b6"


def test_lengths_and_characters(default: Corpus) -> None:
    for pair in everything(default):
        for text in (pair.source, pair.target):
            assert 1 <= len(text.split()) <= 14, text
            assert re.fullmatch(r"[A-ZİÖÜÇŞÂÉÎ][a-zçğıöşüâàéèêëîïôœûù' -]+\.", text), text
            assert "  " not in text


def test_words_are_frequent(default: Corpus) -> None:
    """No English word, its forms taken together, comes in fewer than 40 training pairs of a direction."""
    for direction in DIRECTIONS:
        side = "target" if direction == "fr-en" else "source"
        counts = Counter(
            word
            for pair in default.train
            if pair.direction == direction
            for word in set(words(getattr(pair, side).lower()))
        )
        for noun in ALL:
            assert sum(counts[form] for form in {noun.english, noun.english_plural}) >= 40, noun.english
        for adjective in verbs.ADJECTIVES:
            assert counts[adjective.english] >= 40, adjective.english
        for verb in (
            *verbs.ACTIONS,
            *verbs.GIFTS,
            *verbs.MOTIONS,
            verbs.CROSS,
            verbs.EXPLORE,
            verbs.CLIMB,
            verbs.AVOID,
        ):
            forms = {verb.english.split()[0], verb.english_past.split()[0]}
            assert sum(counts[form] for form in forms) >= 40, verb.english


def test_far_more_pairs_than_are_used() -> None:
    """260,000 draws alone find over 140,000 different sentences; longer drawing found 1,160,000 (300,000 a pattern)."""
    dice = Dice("many")
    found = {english.sentence(draw(dice).meaning) for _, draw in PATTERNS.values() for _ in range(20_000)}
    assert len(found) > 140_000


def test_because_sentences_need_their_antecedent() -> None:
    """Subject and place are the antecedent equally often, and so in each of the four pairs of genders."""
    dice = Dice("because")
    kinds: Counter[tuple[bool, bool, bool]] = Counter()
    for _ in range(4_000):
        meaning = animal_because(dice).meaning
        subject, place = meaning.action.subject.noun, meaning.action.objects[0].noun  # type: ignore[union-attr]
        kinds[meaning.of_object, subject.feminine, place.feminine] += 1  # type: ignore[union-attr]
    assert len(kinds) == 8
    assert min(kinds.values()) > 350


def test_lecture_sentences_are_there_and_held_out(default: Corpus) -> None:
    told = {(pair.direction, pair.source): pair.target for pair in LECTURE_SENTENCES}
    tired, wide = (f"The animal didn't cross the street because it was too {how}." for how in ("tired", "wide"))
    il = "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."
    elle = "L'animal n'a pas traversé la rue parce qu'elle était trop large."
    assert told["en-fr", "I am a student."] == "Je suis étudiant."
    assert told["fr-en", "Je suis étudiant."] == "I am a student."
    assert told["en-tr", "The cat ate the mouse."] == "Kedi fareyi yedi."
    assert (told["en-fr", tired], told["en-fr", wide]) == (il, elle)
    assert (told["fr-en", il], told["fr-en", elle]) == (tired, wide)
    assert told["en-tr", tired] == "Hayvan caddeyi geçmedi çünkü hayvan çok yorgundu."
    assert told["en-tr", wide] == "Hayvan caddeyi geçmedi çünkü cadde çok genişti."
    trained = {key for pair in (*default.train, *default.valid) for key in combinations(pair)}
    assert not trained & {"animal street tired", "animal street wide", "cat eat mouse"}
    assert not {(pair.direction, pair.source) for pair in everything(default)} & told.keys()


def test_references_name_the_antecedent() -> None:
    found = references(count=200, seed=5)
    assert found == references(count=200, seed=5)
    assert len({reference.sentence for reference in found}) == 200
    about_place = 0
    trained = {key for pair in corpus(size=9_000, valid=90, test=180).train for key in combinations(pair)}
    for reference in found:
        tokens = words(reference.sentence)
        assert reference.pronoun == "it"
        assert tokens.count("it") == tokens.count(reference.antecedent) == tokens.count(reference.other) == 1
        about_place += NAMED[reference.antecedent].is_a("land", "thing")
        adjective = tokens[-2]
        animal, place = sorted((reference.antecedent, reference.other), key=tokens.index)
        assert NAMED[animal].is_a("animal")
        assert f"{animal} {place} {adjective}" not in trained
    assert about_place == 100


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="valid: -1"):
        corpus(size=100, valid=-1)
    with pytest.raises(ValueError, match="profession"):
        corpus(size=130_000)
    with pytest.raises(ValueError, match="count"):
        references(count=1_000_000, seed=1)


def test_words_splits_elisions() -> None:
    assert words("L'animal n'a pas vu ma grand-mère.") == [
        "L'",
        "animal",
        "n'",
        "a",
        "pas",
        "vu",
        "ma",
        "grand-mère",
        ".",
    ]
    assert words("It isn't red.") == ["It", "isn'", "t", "red", "."]
