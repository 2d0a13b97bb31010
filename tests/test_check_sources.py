"""check_sources.py catches a source that no CMakeLists.txt names."""

import pathlib
import tempfile
import unittest

from tests.check_sources import unlisted


class CheckSources(unittest.TestCase):
    def test_only_the_forgotten_file_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "core/programs").mkdir(parents=True)
            (root / "tests/core").mkdir(parents=True)
            (root / "core/CMakeLists.txt").write_text("sources(\n  units.cpp\n  programs/a.cpp)\n")
            (root / "tests/core/CMakeLists.txt").write_text("tests(units_test.cpp)\n")
            for name in (
                "core/units.cpp",
                "core/programs/a.cpp",
                "core/programs/units.cpp",
                "tests/core/units_test.cpp",
                "tests/core/oracle.hpp",
            ):
                (root / name).touch()
            self.assertEqual(list(unlisted(root)), ["core/programs/units.cpp"])


if __name__ == "__main__":
    unittest.main()
