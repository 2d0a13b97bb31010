"""check_includes.py catches what it is there to catch."""

import pathlib
import tempfile
import unittest

from tests.check_includes import violations


class CheckIncludes(unittest.TestCase):
    def violations_in(self, sources):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in sources.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(violations(root))

    def test_the_arrow_is_accepted(self):
        found = self.violations_in(
            {
                "core/units.hpp": '#include <string>\n#include "core/int128.hpp"\n',
                "sim/lru.cpp": '#include "sim/lru.hpp"\n#include "core/units.hpp"\n',
                "experiments/main.cpp": '#include <fstream>\n#include "sim/lru.hpp"\n',
                "tests/cross/counts.cpp": '#include "experiments/verify.hpp"\n',
            }
        )
        self.assertEqual(found, [])

    def test_an_include_against_the_arrow_is_named_with_its_line(self):
        found = self.violations_in(
            {"core/units.cpp": '#include <string>\n#include "sim/lru.hpp"\n'}
        )
        self.assertEqual(found, ['core/units.cpp:2: "sim/lru.hpp": core may not include sim'])

    def test_siblings_never_include_each_other(self):
        siblings = ("sim", "cpu", "cuda")
        for one in siblings:
            for other in siblings:
                found = self.violations_in({f"{one}/a.cpp": f'#include "{other}/b.hpp"\n'})
                self.assertEqual(len(found), one != other, (one, other))

    def test_nothing_includes_the_tests(self):
        for folder in ("core", "sim", "cpu", "cuda", "experiments", "python"):
            found = self.violations_in({f"{folder}/a.cu": '# include "tests/oracle.hpp"\n'})
            self.assertEqual(len(found), 1, folder)

    def test_core_has_no_files_clock_or_threads(self):
        for header in ("fstream", "thread", "chrono", "iostream"):
            found = self.violations_in({"core/programs/a.cpp": f"#include <{header}>\n"})
            self.assertEqual(len(found), 1, header)
            self.assertIn("core/programs/a.cpp:1:", found[0])

    def test_project_includes_start_at_the_root(self):
        self.assertEqual(len(self.violations_in({"core/a.cpp": '#include "units.hpp"\n'})), 1)
        self.assertEqual(len(self.violations_in({"core/a.cpp": '#include "../sim/lru.hpp"\n'})), 1)
        self.assertEqual(len(self.violations_in({"core/a.cpp": "#include <sim/lru.hpp>\n"})), 1)


if __name__ == "__main__":
    unittest.main()
