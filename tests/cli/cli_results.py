"""What the command prints when all is well: help, lists, tables, CSV, JSON, configurations."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import unittest

from command import CommandTest

VERBS = (
    "verify", "count", "tile", "envelope", "curve", "sweep", "merge", "attend", "numerics", "list",
)  # fmt: skip
COUNT = ["count", "--seqlen", "1000", "--mask", "causal"]


class Help(CommandTest):
    def options_of(self, verb):
        return set(re.findall(r"^  --([a-z-]+)", self.succeed(verb, "--help"), re.MULTILINE))

    def test_help_of_the_command_names_verbs_and_exit_codes(self):
        for words in (["--help"], ["-h"], ["help"]):
            text = self.succeed(*words)
            for verb in VERBS:
                self.assertRegex(text, rf"(?m)^  {verb} ")
            for code in ("0 done", "1 a verification failed", "2 usage", "3 the", "130 interr"):
                self.assertIn(code, text)

    def test_help_of_a_verb_shows_usage_an_example_and_exit_codes(self):
        for verb in VERBS:
            for words in ([verb, "--help"], [verb, "-h"], [verb, "--no-such-option", "--help"]):
                text = self.succeed(*words)
                self.assertIn(f"usage: flashbound {verb}", text)
                self.assertRegex(text, rf"(?m)^  flashbound {verb}")
                self.assertIn("Exit codes:", text)

    def test_help_names_exactly_the_options_that_a_verb_takes(self):
        everything = set().union(*(self.options_of(verb) for verb in VERBS))
        self.assertGreater(len(everything), 40)
        for verb in VERBS:
            own = self.options_of(verb)
            for option in sorted(everything):
                done = self.run_command(verb, "--print-config", f"--{option}")
                unknown = f"unknown option --{option} of {verb}" in done.stderr.decode()
                self.assertEqual(unknown, option not in own, (verb, option))

    def test_the_manual_has_every_verb_and_option(self):
        text = self.succeed("--man")
        self.assertTrue(text.startswith(".TH FLASHBOUND 1 "))
        sections = dict(re.findall(r"(?ms)^\.SH (\S+)\n(.*?)(?=^\.SH|\Z)", text))
        self.assertIn("NAME", sections)
        self.assertIn(".B 130", text)
        for verb in VERBS:
            named = re.findall(r"(?m)^\.B \\-\\-(\S+)", sections[verb])
            self.assertEqual({name.replace("\\-", "-") for name in named}, self.options_of(verb))
        requests = set(re.findall(r"(?m)^[.'](\S*)", text))
        self.assertEqual(requests, {"TH", "SH", "B", "I", "PP", "TP", "nf", "fi"})
        self.assertNotRegex(text, r"[^\\]--")

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_has_nothing_to_say_about_the_manual(self):
        page = self.run_command("--man").stdout
        words = ["groff", "-man", "-Tutf8", "-ww"]
        done = subprocess.run(words, input=page, capture_output=True, check=True)
        self.assertEqual(done.stderr, b"")
        self.assertIn(b".npy of cells", done.stdout)

    def test_help_fits_a_screen_and_all_help_is_all_of_it(self):
        everything = self.succeed("--help-all")
        self.assertLessEqual(max(map(len, everything.splitlines())), 100)
        self.assertIn(self.succeed("--help"), everything)
        for verb in VERBS:
            text = self.succeed(verb, "--help")
            self.assertIn(text, everything)
            self.assertLess(text.count("\n"), 66)

    def test_version(self):
        pattern = r"\Aflashbound \d+\.\d+\.\d+ \([0-9a-z]+(, modified)?\)\n\Z"
        for word in ("--version", "-V"):
            self.assertRegex(self.succeed(word), pattern)

    def test_list_names_what_other_verbs_take(self):
        rows = json.loads(self.succeed("list", "--format", "json"))["rows"]
        kinds = {}
        for row in rows:
            kinds.setdefault(row["kind"], []).append(row["name"])
        self.assertLessEqual(
            {"algorithm", "kernel", "format", "problem", "recipe", "distribution"}, set(kinds)
        )
        self.assertEqual(len(kinds["algorithm"]), 13)
        self.assertIn("minilm-layer5", kinds["problem"])
        for name in kinds["algorithm"]:
            self.succeed("count", "--seqlen", "64", "--algorithm", name)
        for name in kinds["recipe"]:
            self.succeed("numerics", "--seqlen", "4", "--head-dim", "4", "--recipe", name)
        for name in kinds["distribution"]:
            self.succeed("numerics", "--seqlen", "4", "--distribution", name)
        for name in kinds["format"]:
            self.succeed("count", "--seqlen", "64", "--dtype", name)


class Formats(CommandTest):
    def rows(self, *words):
        document = json.loads(self.succeed(*words, "--format", "json"))
        return document["rows"], document

    def test_json_describes_its_columns_and_its_run(self):
        rows, document = self.rows(*COUNT)
        self.assertEqual(document["schema_version"], 1)
        names = [column["name"] for column in document["columns"]]
        self.assertEqual(len(names), len(set(names)))
        for column in document["columns"]:
            self.assertEqual(sorted(column), ["doc", "name", "unit"])
            self.assertTrue(column["doc"])
        for row in rows:
            self.assertEqual(list(row)[: len(names)], names)
            self.assertEqual(list(row)[len(names) :], ["tensors"])
        manifest = document["manifest"]
        self.assertEqual(manifest["verb"], "count")
        self.assertEqual(manifest["config"]["seqlen"], "1000")
        self.assertEqual(manifest["run"]["argv"], [*COUNT, "--format", "json"])

    def test_csv_and_json_lines_hold_the_values_of_json(self):
        words = [*COUNT, "--sram", "20kB", "--num-heads", "3"]
        rows, document = self.rows(*words)
        names = [column["name"] for column in document["columns"]]
        lines = self.succeed(*words, "--format", "jsonl").splitlines()
        self.assertEqual([json.loads(line) for line in lines], rows)
        table = list(csv.reader(io.StringIO(self.succeed(*words, "--format", "csv"))))
        self.assertEqual(table[0], names)
        self.assertEqual(len(table), len(rows) + 1)
        for cells, row in zip(table[1:], rows):
            for name, cell in zip(names, cells):
                value = row[name]
                if isinstance(value, (int, float)):
                    self.assertEqual(type(value)(cell), value, name)
                else:
                    self.assertEqual(cell, value or "", name)

    def test_a_table_shows_both_ways_of_counting_in_one_row(self):
        lines = self.succeed(*COUNT).splitlines()
        self.assertEqual(len(lines), 1 + 10 + 1)
        self.assertLessEqual(max(map(len, lines)), 110)
        for line in lines[1:-1]:
            self.assertRegex(line, r"\bok$")
        self.assertEqual(lines[-1], "every row: closed form = count machine")
        one_way = self.succeed(*COUNT, "--method", "machine").splitlines()
        self.assertTrue(one_way[0].endswith("method"))
        self.assertTrue(all(line.endswith("machine") for line in one_way[1:]))

    def test_results_hold_no_control_codes_when_piped(self):
        for words in ([*COUNT], ["list"], ["--help"], ["verify", "--problem", "minilm-layer0"]):
            done = self.run_command(*words, env={"TERM": "xterm-256color", "CLICOLOR_FORCE": "1"})
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertNotRegex(done.stdout, rb"[\x00-\x09\x0b-\x1f\x7f]")

    def test_an_output_file_has_its_manifest_beside_it(self):
        printed = self.succeed(*COUNT, "--format", "csv")
        self.assertEqual(self.succeed(*COUNT, "--format", "csv", "--output", "x.csv"), "")
        self.assertEqual(sorted(map(str, self.files())), ["x.csv", "x.csv.manifest.json"])
        self.assertEqual((self.folder / "x.csv").read_text(), printed)
        manifest = json.loads((self.folder / "x.csv.manifest.json").read_text())
        self.assertEqual(manifest["run"]["options"]["output"], "x.csv")
        self.refuses([*COUNT, "--output", "x.csv"], 2, "output = x.csv.*--force")
        self.succeed(*COUNT[:2], "64", "--format", "csv", "--output", "x.csv", "--force")
        self.assertNotEqual((self.folder / "x.csv").read_text(), printed)

    def test_json_carries_its_manifest_itself(self):
        self.succeed(*COUNT, "--format", "json", "--output", "x.json")
        self.assertEqual(list(map(str, self.files())), ["x.json"])
        self.assertIn("manifest", json.loads((self.folder / "x.json").read_text()))

    def test_a_report_is_one_page_that_loads_nothing(self):
        self.succeed(*COUNT, "--report", "x.html")
        page = (self.folder / "x.html").read_text()
        self.assertRegex(page, r"(?i)\A<!doctype html>")
        self.assertNotRegex(page, r"(?i)(src|href)\s*=\s*[\"']?(http|//)")
        self.assertIn("flash2", page)

    def test_a_pipe_is_written_to_and_stays_a_pipe(self):
        os.mkfifo(self.folder / "pipe")
        reader = os.open(self.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.succeed("list", "--format", "csv", "--output", "pipe")
        self.assertTrue((self.folder / "pipe").is_fifo())
        self.assertIn(b"flash2", os.read(reader, 1 << 16))
        self.assertEqual(self.files(), {})


class Configurations(CommandTest):
    def test_a_printed_configuration_gives_the_same_rows(self):
        self.save("cells.npy", [[1, 0], [1, 1]])
        for words in (
            [*COUNT],
            ["count", "--seqlen", "64"],
            "count --seqlen 64 --num-heads-q 8 --num-heads-kv 2 --sram 192KiB".split(),
            "count --seqlen-q 1 --seqlen-k 4096 --window-left 64 --alibi".split(),
            "count --seqlen 64 --footprint kernel --stages 2 --sink 1 --softcap 30".split(),
            "count --seqlen 100 --block-mask cells.npy --batch 3".split(),
            "count --cu-seqlens-q 0,5,9 --cu-seqlens-kv 0,7,64 --block-q 4".split(),
            "numerics --seqlen 8,16 --recipe fp32,all-bf16 --head-dim 4 --seed 2".split(),
            "list".split(),
        ):
            text = self.succeed(*words, "--print-config")
            self.write("run.conf", text)
            again = [words[0], "--config", "run.conf", "--format", "csv"]
            expected = self.succeed(*words, "--format", "csv")
            self.assertEqual(self.succeed(*again), expected, text)

    def test_a_printed_configuration_prints_itself_again(self):
        self.write("run.conf", self.succeed(*COUNT, "--print-config"))
        again = self.succeed("count", "--config", "run.conf", "--print-config")
        self.assertEqual(
            re.sub("(?m)^# from: .*$", "", again),
            re.sub("(?m)^# from: .*$", "", (self.folder / "run.conf").read_text()),
        )
        self.assertIn("# from: run.conf\nseqlen = 1000\n", again)

    def test_a_printed_configuration_says_where_values_come_from(self):
        self.write("run.conf", "# a comment\n\n seqlen=12\nforce = true\n")
        text = self.succeed("count", "--config", "run.conf", "--batch", "2", "--print-config")
        self.assertIn("# from: run.conf\nseqlen = 12\n", text)
        self.assertIn("# from: command line\nbatch = 2\n", text)
        self.assertRegex(text, "# from: default\n# ?head-dim = 64\n")

    def test_the_command_line_wins_over_a_configuration(self):
        self.write("run.conf", "seqlen = 12\nblock-q = 4\ndtype = fp64\n")
        given = ["count", "--config", "run.conf", "--dtype", "fp32"]
        expected = "count --seqlen 12 --block-q 4 --dtype fp32 --format csv".split()
        self.assertEqual(self.succeed(*given, "--format", "csv"), self.succeed(*expected))


if __name__ == "__main__":
    unittest.main()
