"""Fetching from a server on this machine: resumed, checked, refused, and divided always alike."""

import gzip
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

import regard.data.fetch
from regard.cli import main
from regard.data.fetch import NOTED, DataSource, Division, Remote, divide, fetch_file, fetch_set, known_sets
from regard.errors import InputError, WorkError
from regard.text import lines

TEXT = "".join(f"sentence number {number}\n" for number in range(5000)).encode()
PACKED = gzip.compress(TEXT, mtime=0)


class Shop:
    """What the server holds, how often it breaks off, and what it was asked."""

    def __init__(self):
        self.files, self.breaks, self.asked, self.ranges, self.errors = {}, [], [], True, []


@pytest.fixture
def shop(monkeypatch):
    monkeypatch.setattr(regard.data.fetch, "WAIT", 0.0)
    held = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            wanted = self.headers.get("Range")
            held.asked.append((self.path, wanted))
            if held.errors:
                return self.send_error(held.errors.pop(0))
            content = held.files.get(self.path)
            if content is None:
                return self.send_error(404)
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and held.ranges else 0
            if start >= len(content):
                return self.send_error(416)
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = start + held.breaks.pop(0) if held.breaks else None
            self.wfile.write(content[start:end])

        def log_message(self, *given):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    held.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield held
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sha(content, kind="sha256"):
    return f"{kind}:{hashlib.new(kind.removeprefix('text-'), content).hexdigest()}"


RIGHT = [sha(PACKED), sha(PACKED, "md5"), f"text-{sha(TEXT)}"]


def get(shop, folder, *sums, name="a.gz"):
    told = []
    fetch_file(Remote(path="a.gz", name=name, sums=sums), f"{shop.url}/a.gz", folder, told.append)
    return told


@pytest.mark.parametrize("right", RIGHT)
def test_a_file_is_fetched_and_checked(right, shop, tmp_path):
    shop.files["/a.gz"] = PACKED
    assert get(shop, tmp_path, "md5:another", right) == [f"{tmp_path / 'a.gz'}: {len(PACKED):,} bytes, checked"]
    assert (tmp_path / "a.gz").read_bytes() == PACKED
    assert get(shop, tmp_path, right) == [f"{tmp_path / 'a.gz'}: is there"]
    assert len(shop.asked) == 1


def test_the_same_text_packed_otherwise_is_right_by_its_text(shop, tmp_path):
    shop.files["/a.gz"] = gzip.compress(TEXT, 1, mtime=5)
    get(shop, tmp_path, RIGHT[2])
    assert list(lines(tmp_path / "a.gz"))[4999] == "sentence number 4999"


def test_a_connection_that_breaks_is_gone_on_with(shop, tmp_path):
    shop.files["/a.gz"] = PACKED
    shop.breaks = [1000, 2000]
    told = get(shop, tmp_path, RIGHT[0])
    assert [wanted for _, wanted in shop.asked] == [None, "bytes=1000-", "bytes=3000-"]
    assert sum("trying again" in line for line in told) == 2
    assert (tmp_path / "a.gz").read_bytes() == PACKED


def test_another_start_goes_on_too_and_a_server_without_ranges_begins_anew(shop, tmp_path):
    shop.files["/a.gz"] = PACKED
    (tmp_path / ".a.gz.part").write_bytes(PACKED[:777])
    get(shop, tmp_path, RIGHT[0])
    assert shop.asked == [("/a.gz", "bytes=777-")]
    shop.ranges = False
    (tmp_path / ".b.gz.part").write_bytes(PACKED[:777])
    get(shop, tmp_path, RIGHT[0], name="b.gz")
    assert (tmp_path / "b.gz").read_bytes() == PACKED


@pytest.mark.parametrize("begun", [b"of another file", PACKED + b"longer"])
def test_what_was_begun_of_another_file_is_thrown_away(begun, shop, tmp_path):
    shop.files["/a.gz"] = PACKED
    (tmp_path / ".a.gz.part").write_bytes(begun)
    get(shop, tmp_path, RIGHT[0])
    assert (tmp_path / "a.gz").read_bytes() == PACKED


@pytest.mark.parametrize("right", RIGHT)
@pytest.mark.parametrize("came", [b"<html>not found</html>", PACKED[:-3], PACKED[:2000] + b"x" + PACKED[2001:], b""])
def test_a_wrong_file_is_refused(came, right, shop, tmp_path):
    shop.files["/a.gz"] = came or b"\n"
    with pytest.raises(WorkError, match=r"not the file that was expected \(.*, should be .*\); nothing of it was kept"):
        get(shop, tmp_path, right)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_that_is_there_is_refused_and_stays(shop, tmp_path):
    (tmp_path / "a.gz").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"is not the file that it should be \(sha256 .*, should be .*; move it away"):
        get(shop, tmp_path, RIGHT[0])
    assert (tmp_path / "a.gz").read_bytes() == b"mine"
    assert not shop.asked


def test_what_nobody_knows_the_sum_of_has_to_stay_the_same(shop, tmp_path):
    shop.files["/a.gz"] = PACKED
    assert any(f"must come again: {RIGHT[0]}" in line for line in get(shop, tmp_path))
    assert json.loads((tmp_path / NOTED).read_text()) == {"a.gz": [RIGHT[0]]}
    (tmp_path / "a.gz").unlink()
    get(shop, tmp_path)
    (tmp_path / "a.gz").unlink()
    shop.files["/a.gz"] = b"another"
    with pytest.raises(WorkError, match="not the file that was expected"):
        get(shop, tmp_path)


def test_a_server_that_is_ill_is_asked_again_and_one_that_says_no_is_not(shop, tmp_path):
    shop.files["/a.gz"] = PACKED
    shop.errors = [503, 500]
    get(shop, tmp_path, RIGHT[0])
    assert len(shop.asked) == 3
    with pytest.raises(WorkError, match="404"):
        fetch_file(Remote(path="b", name="b"), f"{shop.url}/b", tmp_path, print)
    assert len(shop.asked) == 4
    shop.errors = [500] * 10
    with pytest.raises(WorkError, match="the same command goes on where it stopped"):
        get(shop, tmp_path, name="c.gz")


def test_a_table_is_divided_always_alike(tmp_path):
    rows = [f"eng\ttur\tsource {number // 2}\ttarget {number}" for number in range(4000)]
    (tmp_path / "t.txt").write_text("\n".join([*rows, rows[0], "eng\ttur\t \tblank"]) + "\n")
    division = Division(source=3, target=4, train="train.tsv.gz", valid="valid.tsv.gz", test="test.tsv.gz")
    found = []
    for _ in range(2):
        divide(tmp_path / "t.txt", division, tmp_path, print)
        found.append([(tmp_path / f"{part}.tsv.gz").read_bytes() for part in ("train", "valid", "test")])
    assert found[0] == found[1]
    parts = [gzip.decompress(part).decode().splitlines() for part in found[0]]
    assert sorted(line for part in parts for line in part) == sorted(row.split("\t", 2)[2] for row in rows)
    sources = [{line.split("\t")[0] for line in part} for part in parts]
    assert not (sources[0] & sources[1] | sources[0] & sources[2] | sources[1] & sources[2])
    assert 60 < len(parts[1]) < 180 < len(parts[2]) < 350


def test_the_command(shop, tmp_path, capsys, monkeypatch):
    """A set of two files from a mirror, twice; REGARD_DATA says where to."""
    remotes = (Remote(path="a.gz", name="train.gz", sums=(RIGHT[2],)), Remote(path="b.txt", name="test.txt"))
    known = {"toy": DataSource(about="toys", licence="none", base="https://example.org/", files=remotes)}
    monkeypatch.setattr(regard.data.fetch, "known_sets", lambda: known)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "sets"))
    shop.files |= {"/m/a.gz": PACKED, "/m/b.txt": b"one\n"}
    for _ in range(2):
        assert main(["data", "get", "toy", "--mirror", f"{shop.url}/m/"]) == 0
        assert capsys.readouterr().out == f"{tmp_path / 'sets' / 'toy'}\n"
    assert len(shop.asked) == 2
    shop.files["/m/b.txt"] = b"two\n"
    (tmp_path / "sets" / "toy" / "test.txt").unlink()
    assert main(["data", "get", "toy", "--mirror", f"{shop.url}/m/"]) == 1
    assert "not the file that was expected" in capsys.readouterr().err
    assert main(["data", "get", "toi"]) == 2
    assert capsys.readouterr().err == "regard: data set 'toi': did you mean 'toy'?\n"
    assert main(["data", "get"]) == 2
    assert main(["data", "list"]) == 0
    assert "toys" in capsys.readouterr().out


def test_the_list_is_whole():
    for name, source in known_sets().items():
        assert source.base.startswith("https://"), name
        assert source.base.endswith("/"), name
        names = [remote.name for remote in source.files]
        assert len(set(names)) == len(names)
        for remote in source.files:
            for one in remote.sums:
                assert re.fullmatch(r"md5:[0-9a-f]{32}|(text-)?sha256:[0-9a-f]{64}", one), (name, remote)
    with pytest.raises(InputError, match="did you mean 'multi30k'"):
        fetch_set("multi3k", None, print)
