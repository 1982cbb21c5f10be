"""Compile Python sources to bytecode that is the same on every run.

    python precompile.py ROOT [--sourceless] < FILES

The image's own interpreter runs this. FILES are paths below ROOT, one a line; the bytecode names
them as the container will see them. Two things make it reproducible: one process compiles its list
in the given order (`marshal` writes references by how often an object is in use), and the
interpreter is started with a fixed hash seed. Bytecode is never checked against its source: the
image is not edited.
"""

import argparse
import py_compile
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--sourceless", action="store_true")
    arguments = parser.parse_args()
    for line in sys.stdin:
        name = line.rstrip("\n")
        try:
            compile_one(arguments.root, name, sourceless=arguments.sourceless)
        except py_compile.PyCompileError as error:
            sys.stderr.write(f"{name} does not compile: {error.exc_value}\n")
            return 1
    return 0


def compile_one(root: Path, name: str, *, sourceless: bool) -> None:
    source = root / name
    py_compile.compile(
        str(source),
        cfile=str(source.with_suffix(".pyc")) if sourceless else None,
        dfile=f"/{name}",
        doraise=True,
        optimize=0,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    if sourceless:
        source.unlink()


if __name__ == "__main__":
    sys.exit(main())
