"""The page's modules become one, or are refused with the reason."""

import re

import pytest

from regard.explorer.bundle import bundled

MAIN = 'import { a,\n  b } from "./one.js";\nimport { c } from "./two.js"; // why\nexport const main = a + b + c;\n'
ONE = "/**\n * What it is.\n * @returns {number}\n */\nexport const a = 1;\nexport function b() {}\n"
TWO = 'import { a } from "./one.js";\n// a line\nexport let c = a;\nexport class D {}\nexport async function e() {}\n'


def test_what_is_needed_stands_before():
    code = bundled({"main.js": MAIN, "one.js": ONE, "two.js": TWO, "unused.js": "export const z = 1;"}, "main.js")
    assert re.findall(r"^(?:const|let|class|function|async function) (\w+)", code, re.MULTILINE) == [
        "a", "b", "c", "D", "e", "main"
    ]  # fmt: skip
    assert "import" not in code
    assert "export" not in code
    assert "returns" not in code
    assert "a line" not in code


@pytest.mark.parametrize(
    ("main", "one", "said"),
    [
        ('import { a as b } from "./one.js";', "export const a = 1;", "'a as b'"),
        ('import x from "./one.js";', "export const a = 1;", "a form of import"),
        ('import * as x from "./one.js";', "export const a = 1;", "a form of import"),
        ('import "./one.js";', "export const a = 1;", "a form of import"),
        ('import { a } from "./none.js";', "", "no such module; main.js needs it"),
        ('import { b } from "./one.js";', "export const a = 1;", "imports 'b' from one.js"),
        ('import { a } from "./one.js";\nconst a = 2;', "export const a = 1;", "declares 'a', as one.js does"),
        ('import { a } from "./one.js";', 'import { m } from "./main.js";\nconst a = 1;', "in a circle"),
        ('import { a } from "./one.js";', "const a = 1;\nexport { a };", "a form of import or export"),
        ('import { a } from "./one.js";', "export default function a() {}", "a form of import or export"),
        ('import { a } from "./one.js";', "export const { a } = x;", "one name at a time"),
        ('import { a } from "./one.js";', 'export const a = "</script>";', "</script"),
    ],
)  # fmt: skip
def test_what_cannot_be_bundled(main, one, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        bundled({"main.js": main, "one.js": one}, "main.js")
