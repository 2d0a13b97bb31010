#!/usr/bin/env python3
"""Checks that folders include each other in one direction only.

core <- sim | cpu | cuda <- experiments <- python | tests, where sim, cpu and cuda never include
each other, and core has no files, clock or threads of its own. Prints file:line for each
violation and exits 1 if there is one.
"""

import pathlib
import re
import sys

MAY_INCLUDE = {
    "core": {"core"},
    "sim": {"core", "sim"},
    "cpu": {"core", "cpu"},
    "cuda": {"core", "cuda"},
    "experiments": {"core", "sim", "cpu", "cuda", "experiments"},
    "python": {"core", "sim", "cpu", "cuda", "experiments", "python"},
    "tests": {"core", "sim", "cpu", "cuda", "experiments", "tests"},
}
NOT_IN_CORE = {"chrono", "filesystem", "fstream", "future", "iostream", "thread"}
NOT_IN_CORE |= {"cuda.h", "cuda_runtime.h", "cuda_runtime_api.h"}

SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
# Written as other projects write it: it uses the installed package.
EXEMPT = pathlib.PurePath("tests/consumer/project")

QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
ANGLED = re.compile(r"^\s*#\s*include\s*<([^>]+)>")


def violations_of_line(folder, line):
    """Yields what is wrong with one line of a source in that folder."""
    if match := QUOTED.match(line):
        target = match[1].split("/")[0]
        if "/" not in match[1] or target not in MAY_INCLUDE:
            yield f'"{match[1]}": project includes start at a top-level folder'
        elif target not in MAY_INCLUDE[folder]:
            yield f'"{match[1]}": {folder} may not include {target}'
    elif match := ANGLED.match(line):
        if folder == "core" and match[1] in NOT_IN_CORE:
            yield f"<{match[1]}>: core has no files, clock, threads or GPU of its own"
        elif match[1].split("/")[0] in MAY_INCLUDE:
            yield f"<{match[1]}>: write project includes with quotes"


def violations(root):
    """Yields 'file:line: what is wrong' for every source below root, in a fixed order."""
    for folder in MAY_INCLUDE:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root)
            if path.suffix not in SUFFIXES or EXEMPT in name.parents:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                for what in violations_of_line(folder, line):
                    yield f"{name}:{number}: {what}"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = list(violations(root.resolve()))
    print("\n".join(found) or "includes follow the arrow")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
