#!/usr/bin/env python3
"""Prints the hash of the sources that evidence depends on: comments and white space do not count.

usage: source_hash.py FILE...   (paths from the root of the repository)
"""

import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def significant(text):
    """The text without comments and without white space; string literals stay as they are."""
    kept = COMMENTS.sub(lambda m: m.group() if m.group().startswith('"') else "", text)
    return "".join(kept.split())


def source_hash(paths):
    """SHA-256 over the names and significant text of `paths`, in sorted order."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.encode() + b"\0")
        digest.update(significant((ROOT / path).read_text()).encode() + b"\0")
    return digest.hexdigest()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(source_hash(sys.argv[1:]))
