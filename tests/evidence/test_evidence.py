"""Recorded evidence still belongs to its sources, and says what a pass says."""

import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "experiments" / "evidence"
sys.path.insert(0, str(EVIDENCE))

from source_hash import significant, source_hash  # noqa: E402


class Evidence(unittest.TestCase):
    def test_every_file_is_fresh_or_a_named_skip(self):
        """Stale evidence is skipped by name; fresh evidence must report no mismatch."""
        files = sorted(EVIDENCE.glob("*/*.json"))
        self.assertTrue(files)
        for path in files:
            with self.subTest(path.name):
                document = json.loads(path.read_text())
                if source_hash(document["sources"]) != document["sources_sha256"]:
                    self.skipTest(f"{path.relative_to(ROOT)} is older than its sources")
                self.assertEqual(document["result"]["mismatches"], 0)
                self.assertEqual(document["compute_sanitizer"]["errors"], 0)

    def test_comments_do_not_count_and_strings_do(self):
        self.assertEqual(significant("int a; // note\n"), significant("int a;"))
        self.assertEqual(significant("/* x */ int a;"), significant("int  a;"))
        self.assertNotEqual(significant('f("//a")'), significant('f("//b")'))


if __name__ == "__main__":
    unittest.main()
