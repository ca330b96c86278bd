"""Text: reading corpora, leaving rows out, and cutting text into pieces. Special ids live only here."""

from regard.text.corpus import LabelledText, TextPair, read_labelled, read_pairs, read_texts, training_sets
from regard.text.files import Chunk, lines, lines_of
from regard.text.filters import FilterReport, PairFilter, length_fault
from regard.text.huggingface import HuggingFaceTokenizer, read_huggingface_tokenizer
from regard.text.llama2c import read_llama2c_tokenizer
from regard.text.subwords import SubwordTokenizer
from regard.text.tokenizer import Ids, Specials, Tokenizer
from regard.text.training import load_tokenizer, train_tokenizer
from regard.text.vocabulary import ByteTokenizer, CharTokenizer, WordTokenizer

__all__ = [
    "ByteTokenizer", "CharTokenizer", "Chunk", "FilterReport", "HuggingFaceTokenizer", "Ids", "LabelledText",
    "PairFilter", "Specials", "SubwordTokenizer", "TextPair", "Tokenizer", "WordTokenizer", "length_fault", "lines",
    "lines_of", "load_tokenizer", "read_huggingface_tokenizer", "read_labelled", "read_llama2c_tokenizer",
    "read_pairs", "read_texts", "train_tokenizer", "training_sets",
]  # fmt: skip
