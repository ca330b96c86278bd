"""Reading corpora: every row in order, and errors that name the file and the line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.config import DataConfig, DataSet
from regard.errors import InputError
from regard.text import lines, read_labelled, read_pairs, read_texts, training_sets
from regard.text.files import chunks

Put = Callable[[str, bytes | str], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a file, gzip if its name ends so."""

    def write(name: str, content: bytes | str) -> Path:
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_parallel_files_give_a_pair_a_line(put: Put, suffix: str) -> None:
    source, target = put(f"a.fr{suffix}", "un\ndeux\n\n quatre \n"), put(f"a.en{suffix}", "one\ntwo\nthree\nfour")
    pairs = list(read_pairs([source, target], tag="<2en>"))
    assert [tuple(pair) for pair in pairs] == [
        ("un", "one", "<2en>", 1), ("deux", "two", "<2en>", 2), ("", "three", "<2en>", 3),
        (" quatre ", "four", "<2en>", 4),
    ]  # fmt: skip


def test_lines_end_at_line_feeds_only(put: Put) -> None:
    """Python's splitlines also cuts at these, which shifted the lines of one file against the other's."""
    odd = "a\u2028b\u2029c\x0bd\x0ce\x1cf\x1dg\x1eh\x85i\rj"
    pairs = list(read_pairs([put("a.fr", f"{odd}\nx\n"), put("a.en", f"y\r\n{odd}\r\n")]))
    assert [(pair.source, pair.target) for pair in pairs] == [(odd, "y"), ("x", odd)]


def test_a_byte_order_mark_is_no_text(put: Put) -> None:
    bom = b"\xef\xbb\xbf"
    assert list(lines(put("a.txt", bom + b"x\n" + bom + b"y"))) == ["x", "\ufeffy"]
    assert [chunk.text for chunk in read_texts([put("b.txt", bom + b"x\ny")])] == ["x\ny"]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")), max_size=8))
def test_lines_are_what_stands_between_line_feeds(tmp_path_factory: pytest.TempPathFactory, rows: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.gz"
    text = "".join(f"{row}\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()))
    assert list(lines(path)) == [row.removesuffix("\r") for row in text.removeprefix("\ufeff").split("\n")[:-1]]


@pytest.mark.parametrize("swap", [False, True])
def test_unequal_line_counts_name_both(put: Put, swap: bool) -> None:
    files = [put("a.fr", "1\n2\n"), put("a.en", "1\n2\n3\n4\n5\n")]
    rows = read_pairs(files[::-1] if swap else files)
    assert [next(rows).line, next(rows).line] == [1, 2]
    with pytest.raises(InputError, match=r"a\.fr ends after line 2, but .*a\.en has 5 lines"):
        next(rows)


@pytest.mark.parametrize(("left", "right"), [("", ""), ("", "a\n"), ("a\n", "")])
def test_empty_files_are_errors(put: Put, left: str, right: str) -> None:
    files = [put("a.fr", left), put("a.en", right)]
    with pytest.raises(InputError, match=r"a\.(fr|en): is empty"):
        list(read_pairs(files))
    for name in ("e.tsv", "e.jsonl", "e.txt.gz"):
        path = put(name, "")
        with pytest.raises(InputError, match=f"{name}: is empty"):
            list(read_texts([path]) if "txt" in name else read_pairs([path]))


def test_bytes_that_are_no_utf8_are_named(put: Put) -> None:
    good = put("a.en", "1\n2\n3\n")
    for name in ("a.fr", "b.fr.gz"):
        with pytest.raises(InputError, match=rf"{name}, line 2: not UTF-8 \(byte 0xE9 at place 4\)"):
            list(read_pairs([put(name, "un\nété\ntrois\n".encode().replace(b"\xc3\xa9t\xc3", b"abc\xe9")), good]))
    with pytest.raises(InputError, match=r"line 1: not UTF-8 but UTF-16"):
        list(lines(put("c.fr", "été\n".encode("utf-16"))))
    with pytest.raises(InputError, match=r"d\.fr, line 1: not text but gzip; its name must end in \.gz"):
        list(lines(put("d.fr", gzip.compress(b"abc\n"))))
    with pytest.raises(InputError, match=r"e\.txt, line 3: not UTF-8"):
        list(read_texts([put("e.txt", b"a\nb\n\xff\n")]))
    with pytest.raises(InputError, match=r"f\.txt, line 2: not UTF-8"):
        list(read_texts([put("f.txt", b"a\nb\xc3")]))


def test_files_that_cannot_be_read_are_named(put: Put, tmp_path: Path) -> None:
    good = put("a.en", "1\n")
    for read in (read_labelled, read_texts, lambda files: read_pairs([*files, good])):
        with pytest.raises(InputError, match=r"none\.tsv: no such file"):
            read([tmp_path / "none.tsv"])
        with pytest.raises(InputError, match=f"{tmp_path.name}: is a folder"):
            read([tmp_path])


def test_a_gzip_file_that_is_cut_off_is_an_error(put: Put, tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"line {i * 7919 % 1000}\n" for i in range(50_000)).encode())
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cut\.txt\.gz: gzip file cut off or damaged after line \d+ .*end-of-stream"):
        list(lines(cut))
    with pytest.raises(InputError, match=r"cut\.txt\.gz: gzip file cut off or damaged"):
        list(read_texts([cut]))
    none = tmp_path / "none.tsv.gz"
    none.write_bytes(b"text\ttext\n")
    with pytest.raises(InputError, match=r"none\.tsv\.gz: gzip file .* after line 0 \(Not a gzipped file"):
        list(read_pairs([none]))
    broken = tmp_path / "broken.gz"
    broken.write_bytes(whole[:2000] + bytes(2000) + whole[4000:])
    with pytest.raises(InputError, match="damaged after line"):
        list(lines(broken))


def test_tsv_columns(put: Put) -> None:
    path = put("a.tsv.gz", "tr\tev\thouse\t<2en>\r\n\tsu\twater\t<2en>\n")
    pairs = list(read_pairs([path], source_field="2", target_field="3", tag_field="4"))
    assert [tuple(pair) for pair in pairs] == [("ev", "house", "<2en>", 1), ("su", "water", "<2en>", 2)]
    assert [pair.tag for pair in read_pairs([path, path], tag="<x>")] == ["<x>"] * 4
    with pytest.raises(InputError, match=r"a\.tsv\.gz, line 2: the tag is empty"):
        list(read_pairs([path], tag_field="1"))
    with pytest.raises(InputError, match=r"b\.tsv, line 2: 1 column, so no column 2 for the target"):
        list(read_pairs([put("b.tsv", "a\tb\nonly\n")]))
    for wrong in ("0", "-1", "fr"):
        with pytest.raises(InputError, match=rf"data.source_field = '{wrong}': a .tsv's columns are numbered"):
            list(read_pairs([path], source_field=wrong))


def test_jsonl_keys(put: Put) -> None:
    rows = [{"source": "ev\n", "target": "house"}, {"target": "\u2028", "source": "👩‍👩‍👧", "more": [1]}]
    path = put("a.jsonl", "\n".join(map(json.dumps, rows)))
    assert [(pair.source, pair.target) for pair in read_pairs([path])] == [("ev\n", "house"), ("👩‍👩‍👧", "\u2028")]
    swapped = read_pairs([path], source_field="2", target_field="1")
    assert [pair.source for pair in swapped] == ["house", "\u2028"]
    nested = put("b.jsonl.gz", '{"translation": {"fr": "un", "en": "one"}, "a.b": "x"}\n')
    read = read_pairs([nested], source_field="translation.fr", target_field="translation.en", tag_field="a.b")
    assert [tuple(pair) for pair in read] == [("un", "one", "x", 1)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"source": "a", "english": "b"}', "no key 'target' for the target: there is english, source"),
        ('{"source": "a", "targt": "b"}', "no key 'target' for the target: did you mean 'targt'"),
        ('{"source": 5, "target": "b"}', "the source is no text: 5"),
        ('{"source": "a", "target": null}', "the target is no text: null"),
        ("{", "not JSON: Expecting property name"),
        ("", "not JSON: the line is blank"),
        ('["a", "b"]', "not a JSON object"),
        ("[" * 100_000, "not JSON that can be read: nested too deep"),
        ('{"source": "a\\ud83d", "target": "b"}', r"character 2 is U\+D83D, half of a surrogate pair"),
        ('{"source": "a", "target": ["b", {"c": "\\uDC00"}]}', r"character 1 is U\+DC00"),
    ],
)
def test_wrong_jsonl_names_the_line(put: Put, row: str, message: str) -> None:
    path = put("a.jsonl", '{"source": "\\ud83d\\udc69", "target": "b"}\n' + row + "\n")
    with pytest.raises(InputError, match=rf"a\.jsonl, line 2: ({message})"):
        list(read_pairs([path]))


def test_files_that_make_no_pairs_are_refused(put: Put) -> None:
    text, table = put("a.fr", "1\n"), put("a.tsv", "1\t2\n")
    for files in ([], [text], [text, text, text], [text, table]):
        with pytest.raises(InputError, match=r"must be two parallel text files, or \.tsv or \.jsonl files"):
            read_pairs(files)
    with pytest.raises(InputError, match=r"data.tag_field = '3': parallel files .* have no columns"):
        read_pairs([text, text], tag_field="3")
    with pytest.raises(InputError, match=r"data.target_field = '3': must be a key"):
        list(read_pairs([put("a.jsonl", "{}\n")], target_field="3"))


def test_labelled_text(put: Put) -> None:
    table = put("a.tsv", "good film\t1\nbad film\t0\n")
    assert [tuple(row)[:3] for row in read_labelled([table])] == [("good film", ("1",), 1), ("bad film", ("0",), 2)]
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": ["x", "y"]}, {"text": "c", "label": True}]
    objects = put("a.jsonl", "\n".join(map(json.dumps, rows)))
    assert [row.labels for row in read_labelled([objects])] == [("1",), ("x", "y"), ("true",)]
    assert [row.text for row in read_labelled([objects], text_field="text", label_field="label")] == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"b\.jsonl, line 1: a label must be text or a whole number: 0\.5"):
        list(read_labelled([put("b.jsonl", '{"text": "a", "label": 0.5}')]))
    with pytest.raises(InputError, match=r"c\.txt: labelled text must be a \.tsv or a \.jsonl"):
        read_labelled([put("c.txt", "x")])


def test_text_files_are_documents(put: Put) -> None:
    text, objects = put("a.txt", "one\r\n\r\ntwo\r"), put("a.jsonl", '{"text": "x\\ny"}\n{"text": ""}\n')
    assert [tuple(chunk) for chunk in read_texts([text, objects])] == [
        ("one\n\ntwo\r", 1, True), ("x\ny", 1, True), ("", 2, True),
    ]  # fmt: skip
    assert [chunk.text for chunk in read_texts([put("b.jsonl", '{"body": "x"}')], text_field="body")] == ["x"]


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.text(st.sampled_from("aé日👩 \n\r\u2028"), max_size=60), st.integers(1, 20))
@example("\r\r\n", 1)
def test_chunks_joined_are_the_text(tmp_path_factory: pytest.TempPathFactory, text: str, size: int) -> None:
    path = tmp_path_factory.mktemp("chunks") / "a.txt"
    path.write_bytes(text.encode())
    parts = list(chunks(path, size))
    assert "".join(part.text for part in parts) == text.replace("\r\n", "\n")
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[0].line == 1
    before = ""
    for part in parts:
        assert part.line == before.count("\n") + 1
        before += part.text
        assert len(part.text.encode()) < 3 * size + 8


def test_chunks_are_cut_behind_line_ends(put: Put) -> None:
    path = put("a.txt", "\n".join(f"line {i}" for i in range(1000)))
    parts = list(chunks(path, 500))
    assert len(parts) > 10
    assert all(part.text.endswith("\n") and 500 <= len(part.text) < 520 for part in parts[:-1])


def test_training_sets_of_a_recipe() -> None:
    more = DataSet(files=("b.tsv",), weight=0.5, tag="<2tr>")
    config = DataConfig(train=("a.fr", "a.en"), tag="<2en>", sets=(more,))
    assert training_sets(config) == (DataSet(files=("a.fr", "a.en"), tag="<2en>"), more)
    assert training_sets(DataConfig(sets=(more,))) == (more,)
    with pytest.raises(InputError, match=r"data.train is not stated"):
        training_sets(DataConfig())
