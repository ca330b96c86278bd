"""The room's door: what it offers, and what it needs."""

import subprocess
import sys

import regard.text


def test_all_is_there_and_sorted() -> None:
    assert regard.text.__all__ == sorted(regard.text.__all__)
    for name in regard.text.__all__:
        assert getattr(regard.text, name) is not None


def test_the_room_needs_no_torch() -> None:
    program = "import sys; sys.path[:] = sys.argv[1].split(':'); import regard.text; print('torch' in sys.modules)"
    command = [sys.executable, "-c", program, ":".join(sys.path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
