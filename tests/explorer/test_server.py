"""The live explorer answers its page with the trace's numbers, and nobody else."""

import http.client
import json
import socket

import numpy as np
import pytest

from regard.errors import InputError
from regard.explorer.document import HEADERS, page_files
from regard.explorer.live import listening
from regard.explorer.looks import Question

from .serving import Client, served

TEXT, TARGET = "the animal didn't cross the street", "je suis étudiant"


@pytest.fixture(scope="module")
def client(run, other):
    asks = [Question(text=TEXT, tag="<2fr>", beam=3), Question(text=TEXT, target=TARGET)]
    with served([run, other], asks, {"view": "matrix"}) as address:
        yield Client(address)


@pytest.fixture
def item(client):
    return client.json("/api/look", {"text": TEXT, "target": TARGET})[1]


def test_the_page_begins_with_what_was_asked(client):
    status, headers, data = client.ask("/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    payload = json.loads(data.decode().split('id="regard-payload">')[1].split("</script>")[0])
    assert payload["live"] is True
    assert payload["state"] == {"view": "matrix"}
    assert [run["name"] for run in payload["runs"]] == ["tiny", "other"]
    assert payload["asks"] == [
        {"text": TEXT, "target": None, "tag": "<2fr>", "beam": 3},
        {"text": TEXT, "target": TARGET, "tag": None, "beam": None},
    ]


def test_every_part_of_the_page_is_given_as_it_is(client):
    for name, text in page_files().items():
        status, headers, data = client.ask(f"/page/{name}")
        assert (status, data.decode()) == (200, text)
        assert headers["content-type"].startswith("text/javascript" if name.endswith(".js") else "text/css")
    for name in ("jsconfig.json", "nothing.js", "..%2fserver.py", "%2e%2e/server.py"):
        assert client.ask(f"/page/{name}")[0] == 404


def test_arrays_are_the_traces(client, run, item):
    trace, _, _ = run.trace(TEXT, TARGET, kinds=("weights", "scores"))
    for name in ("encoder.self.1.weights", "decoder.self.0.weights", "decoder.cross.1.scores"):
        wanted = trace[name][0].numpy()
        _, _, data = client.ask(f"/api/array/{item['id']}/{name}")
        np.testing.assert_allclose(np.frombuffer(data, "<f4").reshape(item["arrays"][name]["shape"]), wanted, atol=1e-6)
        _, _, data = client.ask(f"/api/array/{item['id']}/{name}?heads=3,0&rows=2")
        np.testing.assert_allclose(np.frombuffer(data, "<f4").reshape(2, 1, -1), wanted[[3, 0]][:, [2]], atol=1e-6)


def test_sections_come_with_their_arrays(client, item):
    assert set(item["sections"]) == {"measures"}
    status, told = client.json(f"/api/section/{item['id']}/displacement")
    assert status == 200
    assert set(told["arrays"]) == {
        f"displacement.{stack}.{what}" for stack in ("encoder", "decoder") for what in ("points", "lengths", "cosines")
    }
    assert client.ask(f"/api/array/{item['id']}/displacement.encoder.lengths")[0] == 200


def test_decoding_on_keeps_what_was_given(client, run):
    item = client.json("/api/look", {"text": TEXT, "beam": 2})[1]
    prefix = run.tokenizer.encode("je")
    status, other = client.json("/api/decode", {"item": item["id"], "prefix": prefix, "beam": 3})
    told = other["sections"]["decoding"]
    assert status == 200
    assert other["sides"]["target"]["ids"][: len(prefix) + 1] == [run.tokenizer.specials.begin, *prefix]
    assert (told["beam"], told["prefix"]) == (3, len(prefix))
    nodes = {node["id"]: node for node in told["tree"]["nodes"]}
    path = [nodes[id]["token"] for id in told["tree"]["best"]]
    best = told["answers"][0]
    specials = run.tokenizer.specials
    assert path == [specials.begin, *best["ids"], *([specials.end] if best["ended"] else [])]
    for node in nodes.values():
        above = nodes.get(node["parent"])
        assert node["step"] == (0 if above is None else above["step"] + 1)
        if above and node["step"] > len(prefix):
            assert node["total"] == pytest.approx(above["total"] + node["logp"], abs=1e-5)
        if above:
            assert above["state"] == "kept"


def test_the_other_requests(client, item, run):
    off = [["encoder.self", 1, 0]]
    status, told = client.json("/api/ablate", {"item": item["id"], "heads_off": off})
    assert (status, told["heads_off"]) == (200, off)
    whole = sum(run.score([(TEXT, TARGET)])[0])
    assert told["logp"][0] == pytest.approx(whole, abs=1e-4)
    assert told["change"] == told["logp"][1] - told["logp"][0]
    status, told = client.json("/api/map", {"items": [item["id"]]})
    assert (status, len(told["sections"]["map"]["texts"])) == (200, 1)
    status, told = client.json("/api/history", {"item": item["id"], "part": "encoder.self", "layer": 0, "head": 1})
    assert (status, told["sections"]["history"]) == (200, None)  # this run has no checkpoints


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/api/look", {"text": TEXT, "tag": "<2xx>"}, 400, "<2xx>"),
        ("/api/look", {"text": TEXT, "run": 7}, 400, "run 7: there are runs 0 to 1"),
        ("/api/look", {"text": TEXT, "wieghts": "best"}, 400, "wieghts"),
        ("/api/look", {"text": 5}, 400, "text"),
        ("/api/look", b"{", 400, "JSON"),
        ("/api/look", {"text": TEXT, "heads_off": [["encoder.self", 9, 9]]}, 400, "encoder.self has 2 layers"),
        ("/api/look", {"text": "x" * 2**20}, 413, "1,048,576 bytes"),
        ("/api/look", {"text": "street " * 5000}, 400, "the explorer takes"),
        ("/api/decode", {"item": "k99999"}, 404, "k99999"),
        ("/api/section/k99999/decoding", None, 404, "k99999"),
        ("/api/array/r0/nothing", None, 400, "nothing"),
        ("/api/nothing", None, 404, "Not Found"),
        ("/docs", None, 404, "Not Found"),
        ("/openapi.json", None, 404, "Not Found"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(client, path, body, status, says):
    found, told = client.json(path, body)
    assert found == status
    assert says in told["error"]
    assert "\n" not in told["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:80"}, 403),  # a name that was made to lead here
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": None}, 400),  # no HTTP
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),  # what a form can send
        ({"Content_Type": None}, 415),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
    ],
)
def test_only_the_page_itself_is_answered(client, headers, status):
    assert client.ask("/api/look", {"text": TEXT, "target": ""}, **headers)[0] == status
    name, port = client.host.split(":")
    assert name == "127.0.0.1"
    headers = {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}
    assert client.ask("/api/look", {"text": TEXT, "target": ""}, **headers)[0] == 200


def test_a_body_without_length_is_refused(client):
    connection = http.client.HTTPConnection(client.host, timeout=60)
    connection.request("POST", "/api/look", iter([b'{"text": "a"}']), {"Content-Type": "application/json"})
    assert connection.getresponse().status == 413
    connection.close()


def test_every_answer_has_the_headers(client):
    for path, body in (("/", None), ("/page/main.js", None), ("/nothing", None), ("/api/look", {"text": 5})):
        _, headers, _ = client.ask(path, body)
        assert HEADERS.items() <= {name.title(): value for name, value in headers.items()}.items() | set(
            (name, headers[name.lower()]) for name in HEADERS
        )
    assert client.ask("/", None, Host="evil.example")[1]["content-security-policy"]


def test_a_port_that_is_taken_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"--port {port}: .*; without --port a free one is taken"):
            listening(port)
    with pytest.raises(InputError, match="must be 0 to 65535"):
        listening(70000)
