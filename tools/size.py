"""Prints how much there is in each room, and which files and functions are longer than a head holds.

Lines of code are those with more on them than a comment or a docstring. Beyond the hard limits it leaves with 1.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES, FILE_LIMIT = 400, 500
FUNCTION_LINES, FUNCTION_LIMIT = 80, 100
KINDS = (".py", ".js", ".mjs", ".css", ".html", ".md")
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
          tokenize.ENDMARKER}  # fmt: skip


def rooms() -> Iterator[tuple[str, list[Path]]]:
    """Each room's name and files: the folders of the package, its loose files, and what stands beside it."""
    package = ROOT / "src" / "regard"
    for folder in sorted(path for path in package.iterdir() if path.is_dir()):
        yield f"src/{folder.name}", _files(folder)
    yield "src", [path for path in sorted(package.iterdir()) if path.suffix in KINDS]
    for name in ("tests", "tools", "benchmarks", "docs"):
        yield name, _files(ROOT / name)


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.suffix in KINDS and "vendor" not in path.parts]


def code_lines(path: Path) -> int:
    """Lines of code; of what is not Python, lines that are not empty."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return sum(bool(line.strip()) for line in text.splitlines())
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):  # a docstring, or the line below a field
                lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function of a Python file with its lines, docstring included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1


def main() -> int:
    """Print the table and what is too long."""
    every: list[Path] = []
    print(f"{'room':18} files  lines   code")
    for name, paths in rooms():
        if paths:
            lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
            print(f"{name:18} {len(paths):5} {lines:6} {sum(map(code_lines, paths)):6}")
            every += paths
    code = [path for path in every if path.suffix != ".md"]
    long_files = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in code}
    long_functions = dict(item for path in code if path.suffix == ".py" for item in functions(path))
    failed = False
    for sizes, good, limit in ((long_files, FILE_LINES, FILE_LIMIT), (long_functions, FUNCTION_LINES, FUNCTION_LIMIT)):
        for where, size in sorted(sizes.items(), key=lambda item: -item[1]):
            if size > good:
                print(f"{where}: {size} lines, better {good}{f', at most {limit}' if size > limit else ''}")
                failed |= size > limit
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
