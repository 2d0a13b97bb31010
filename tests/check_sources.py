#!/usr/bin/env python3
"""Checks that every source is listed in the CMakeLists.txt of its folder or of one above.

Lists are explicit, so a forgotten line would mean a test that never runs or a header that is
never installed. Prints each unlisted file and exits 1 if there is one.
"""

import pathlib
import re
import sys

FOLDERS = ("core", "sim", "cpu", "cuda", "experiments", "tests")
SUFFIXES = {".cpp", ".hpp", ".cu"}
# Headers of tests are included by the tests beside them and belong to no file set.
UNLISTED = re.compile(r"^tests/.*\.hpp$")


def is_listed(path, root):
    folder = path.parent
    while folder != root:
        lists = folder / "CMakeLists.txt"
        if lists.exists():
            name = path.relative_to(folder).as_posix()
            # A CUDA test is named without its suffix.
            words = re.split(r"[\s()]+", lists.read_text(encoding="utf-8"))
            return name in words or name.removesuffix(".cu") in words
        folder = folder.parent
    return False


def unlisted(root):
    """Yields every source below root that no CMakeLists.txt names, in a fixed order."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and not UNLISTED.match(name) and not is_listed(path, root):
                yield name


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = list(unlisted(root.resolve()))
    for name in found:
        print(f"{name}: not listed in a CMakeLists.txt")
    if not found:
        print("every source is listed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
