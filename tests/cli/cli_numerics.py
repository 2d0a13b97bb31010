"""`flashbound numerics`: errors that NumPy confirms, sweeps, files, refusals, interruption."""

import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import numpy

from attend import attention
from command import FLASHBOUND, CommandTest

SMALL = ["numerics", "--seqlen", "24", "--head-dim", "8"]

METRICS = {"max_abs_error", "rmse", "max_ulp_error", "bias", "bias_sign_test_p", "elements"}


class Rows(CommandTest):
    def rows(self, *words):
        return json.loads(self.succeed("numerics", *words, "--format", "json"))["rows"]

    def test_a_row_has_every_metric_and_its_histogram(self):
        (row,) = self.rows(*SMALL[1:])
        self.assertEqual(row["status"], "ok")
        self.assertEqual((row["recipe"], row["distribution"]), ("flash2-bf16", "normal"))
        self.assertEqual((row["reference"], row["reference_inputs"]), ("exact", "rounded"))
        self.assertEqual((row["seed"], row["undecided"], row["reason"]), (1, 0, None))
        for name in METRICS:
            self.assertIsNotNone(row[name], name)
        self.assertGreater(row["bound_max"], row["max_abs_error"])
        self.assertEqual(row["elements"], 24 * 8)
        counts = {entry["bin"]: entry["count"] for entry in row["ulp_histogram"]}
        self.assertEqual(sum(counts.values()), row["elements"])
        self.assertIn("(0.5, 1]", counts)
        self.assertEqual(row["lse"]["elements"], 24)
        self.assertEqual(row["lse"]["max_abs_error"], row["lse_max_abs_error"])

    def test_rows_are_the_product_of_what_is_swept(self):
        words = "--seqlen 8:32:x2 --recipe fp32,all-m6e5 --seed 1,2 --algorithm flash1,flash2"
        rows = self.rows(*words.split(), "--head-dim", "4")
        seen = [(r["seqlen_q"], r["seed"], r["recipe"], r["algorithm"]) for r in rows]
        self.assertEqual(
            seen,
            [
                (n, seed, recipe, algorithm)
                for n in (8, 16, 32)
                for seed in (1, 2)
                for recipe in ("fp32", "all-m6e5")
                for algorithm in ("flash1", "flash2")
            ],
        )

    def test_a_swept_row_is_the_row_of_its_own_call(self):
        swept = self.rows("--seqlen", "8,24", "--head-dim", "8", "--recipe", "fp32,all-bf16")
        alone = [
            self.rows("--seqlen", n, "--head-dim", "8", "--recipe", recipe)[0]
            for n in ("8", "24")
            for recipe in ("fp32", "all-bf16")
        ]
        self.assertEqual(swept, alone)

    def test_errors_are_those_that_attention_in_numpy_finds(self):
        (q, k, v), words = self.save_inputs((2, 4, 9, 4), (2, 2, 13, 4), (2, 2, 13, 3), "<f8")
        recipe = '{"base": "fp32", "name": "f", "inputs": "fp32"}'
        self.write("f.json", recipe)
        words += ["--mask", "causal", "--reference-inputs", "unrounded", "--recipe", "f.json"]
        (row,) = self.rows(*words)
        arrays = (x.astype("<f4") for x in (q, k, v))
        rounded, _ = attention(*arrays, visible=lambda i, j: j <= i + 4)
        right, _ = attention(q, k, v, visible=lambda i, j: j <= i + 4)
        # Rounding the inputs is about as much as all the roundings that follow.
        self.assertGreater(row["rmse"], 1e-9)
        self.assertLess(row["rmse"], 10 * numpy.sqrt(((rounded - right) ** 2).mean()))
        self.assertIsNone(row["distribution"])
        self.assertEqual(row["elements"], right.size)
        self.assertEqual(row["recipe"], "f")
        self.assertEqual(row["recipe_fields"]["inputs"], "fp32")

    def test_an_error_can_be_foreseen_to_the_last_bit(self):
        # One key: O is its value, which is exact in the format of the inputs and stored in another.
        numbers = numpy.array([1.0, 1 + 2**-10, 3.0, 1 + 2**-7]).reshape(1, 1, 1, 4)
        self.save("v.npy", numbers)
        for name in "qk":
            self.save(f"{name}.npy", numpy.zeros((1, 1, 1, 4)))
        recipe = {"base": "fp32", "name": "f", "stored": "bf16", "row_sum": "sequential"}
        recipe["scores_product"] = recipe["values_product"] = {"order": "sequential"}
        self.write("f.json", json.dumps(recipe))
        (row,) = self.rows("--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--recipe", "f.json")
        self.assertEqual(row["max_abs_error"], 2**-10)
        self.assertEqual(row["bias"], -(2**-12))
        self.assertEqual(row["magnitude_bias"], -(2**-12))
        self.assertEqual(row["rmse"], 2**-11)
        self.assertEqual(row["max_ulp_error"], 2**-3)
        counts = [entry["count"] for entry in row["ulp_histogram"]]
        self.assertEqual(counts[:3], [3, 1, 0])

    def test_both_references_agree_within_the_bound(self):
        exact, fp64 = (
            self.rows(*SMALL[1:], "--recipe", "fp32", "--reference", kind)[0]
            for kind in ("exact", "fp64")
        )
        self.assertAlmostEqual(exact["rmse"], fp64["rmse"], delta=1e-14)
        for row in (exact, fp64):
            self.assertGreater(row["bound_max"], row["max_abs_error"])
            self.assertLessEqual(row["ratio_to_bound"], 1)
            self.assertIsNone(row["overflows"])

    def test_an_infeasible_point_is_a_row_with_its_reason(self):
        words = ["--seqlen", "8", "--head-dim", "3,4", "--recipe", "flash3-fp8"]
        infeasible, feasible = self.rows(*words)
        self.assertEqual((infeasible["status"], feasible["status"]), ("infeasible", "ok"))
        self.assertRegex(infeasible["reason"], "head_dim = 3: must be a power of two")
        for name in METRICS:
            self.assertIsNone(infeasible[name])
            self.assertIsNotNone(feasible[name])
        words = ["--seqlen", "8", "--distribution", "attention-sink", "--softmax-scale", "0"]
        self.assertRegex(self.rows(*words)[0]["reason"], "softmax_scale = 0")

    def test_a_table_shows_what_differs_and_says_what_errors_are(self):
        lines = self.succeed(*SMALL, "--block-q", "8,16").splitlines()
        self.assertEqual(len(lines), 4)
        self.assertRegex(lines[0], "^algorithm +recipe +distribution +block_q +max_abs_error")
        self.assertNotIn("block_kv", lines[0])
        self.assertIn("exact attention on rounded inputs", lines[-1])

    def test_csv_holds_the_values_of_json(self):
        words = [*SMALL[1:], "--recipe", "fp32,all-bf16"]
        text = self.succeed("numerics", *words, "--format", "csv")
        for cells, row in zip(csv.DictReader(io.StringIO(text)), self.rows(*words)):
            self.assertEqual(float(cells["rmse"]), row["rmse"])
            self.assertEqual(cells["recipe"], row["recipe"])


class Documentation(CommandTest):
    def test_the_example_of_the_readme_is_what_the_command_prints(self):
        text = (pathlib.Path(__file__).parents[2] / "experiments/README.md").read_text()
        (words, printed) = re.search(
            r"(?ms)^\$ flashbound (numerics [^\n]*)\n(.*?)^```", text
        ).groups()
        self.assertEqual(self.succeed(*words.split()), printed)

    def test_a_sum_in_fp32_explains_the_example(self):
        self.write("r.json", '{"base": "all-bf16", "name": "fp32-sum", "statistics": "fp32"}')
        words = "numerics --seqlen 256,1024 --head-dim 16 --distribution uniform --format json"
        rows = json.loads(self.succeed(*words.split(), "--recipe", "all-bf16,r.json"))["rows"]
        error = {(row["recipe"], row["seqlen_q"]): row["max_abs_error"] for row in rows}
        self.assertGreater(error["all-bf16", 1024], 5 * error["all-bf16", 256])
        self.assertAlmostEqual(error["fp32-sum", 1024], 0.006, places=3)
        (bias,) = (row["lse"]["bias"] for row in rows[2:] if row["recipe"] == "all-bf16")
        self.assertAlmostEqual(bias, -0.54, places=2)


class Threads(CommandTest):
    def test_the_same_bytes_on_one_and_two_threads(self):
        self.write("s.json", '{"base": "all-bf16", "name": "s", "rounding": "stochastic"}')
        words = [*SMALL, "--num-heads", "4", "--recipe", "s.json,flash3-fp8", "--seed", "7,8"]
        seen = {
            self.succeed(*words, "--format", "jsonl", "--threads", threads)
            for threads in ("1", "2", "2", "7")
        }
        self.assertEqual(len(seen), 1)
        (first, *_), (_, second, *_) = (next(iter(seen)).splitlines() for _ in range(2))
        self.assertNotEqual(json.loads(first)["rmse"], json.loads(second)["rmse"])


class Outputs(CommandTest):
    def test_an_output_is_kept_unless_forced(self):
        self.write("x.csv", "precious")
        words = [*SMALL, "--format", "csv", "--output", "x.csv"]
        self.refuses(words, 2, "output = x.csv.*--force")
        self.succeed(*words, "--force")
        self.assertIn("flash2-bf16", (self.folder / "x.csv").read_text())

    def test_an_output_never_replaces_an_input(self):
        self.write("r.json", '{"base": "all-bf16", "name": "r"}')
        words = [*SMALL, "--recipe", "fp32,r.json", "--format", "json", "--force"]
        self.refuses([*words, "--output", "./r.json"], 2, "output = ./r.json: must be a file of")

    def test_an_interrupted_run_keeps_its_finished_rows(self):
        words = "numerics --seqlen 16,2048 --num-heads 64 --recipe all-bf16 --threads 1".split()
        words += ["--reference", "fp64", "--format", "json", "--output", "x.json"]
        with subprocess.Popen([FLASHBOUND, *words], cwd=self.folder) as command:
            while not any(name.startswith("x.json.part") for name in os.listdir(self.folder)):
                time.sleep(0.01)
            time.sleep(2)
            command.send_signal(signal.SIGINT)
            self.assertEqual(command.wait(timeout=120), 130)
        rows = json.loads((self.folder / "x.json").read_text())["rows"]
        self.assertEqual([row["seqlen_q"] for row in rows], [16])
        self.assertEqual(os.listdir(self.folder), ["x.json"])


class Claims(CommandTest):
    def test_claims_are_recomputed_one_by_one(self):
        listed = json.loads(self.succeed("list", "--format", "json"))["rows"]
        ids = [row["name"] for row in listed if row["kind"] == "claim"]
        for one in ids[:1]:
            (row,) = json.loads(self.succeed("numerics", "--claim", one, "--format", "json"))[
                "rows"
            ]
            self.assertEqual(row["claim"], one)
            self.assertIn(
                row["verdict"], ("confirmed", "refuted", "qualified", "not measurable here")
            )
            for name in ("source", "statement", "argument"):
                self.assertTrue(row[name], name)
            self.assertEqual(sorted(row["table"]), ["columns", "rows"])
            text = self.succeed("numerics", "--claim", one)
            self.assertTrue(text.startswith(f"id: {one}\n"))
            self.assertIn(f"\nverdict: {row['verdict']}\n", text)
            table = self.succeed("numerics", "--claim", one, "--format", "csv")
            self.assertEqual(next(csv.reader(io.StringIO(table))), row["table"]["columns"])


# The words after `numerics --seqlen 8`, what the error must name, and its exit code where not 2.
CASES = {
    "unknown recipe": (["--recipe", "fp31"], "recipe = fp31: must be .*flash2-bf16"),
    "unknown recipe in a list": (["--recipe", "fp32,fp31"], "recipe = fp31"),
    "empty recipe": (["--recipe", ""], "recipe"),
    "empty recipe in a list": (["--recipe", "fp32,"], "recipe = "),
    "format that is none": (["--recipe", "all-fp31"], "recipe = fp31: must be"),
    "missing recipe file": (["--recipe", "none.json"], "none.json", 3),
    "recipe that is a folder": (
        ["--recipe", "folder.json"],
        "recipe = folder.json: must be a file",
    ),
    "recipe that is no JSON": (["--recipe", "bad.json"], "bad.json: recipe = .*JSON"),
    "recipe of an unknown field": (["--recipe", "field.json"], "field.json: .*colour"),
    "recipe that no machine runs": (["--recipe", "order.json"], "order.json: recipe order = any"),
    "unknown distribution": (["--distribution", "gauss"], "distribution = gauss: .*outliers"),
    "unknown algorithm": (["--algorithm", "flash9"], "algorithm = flash9: .*flash2"),
    "all in a list": (["--algorithm", "flash2,all"], "algorithm = all"),
    "negative seed": (["--seed", "-1"], "seed = -1"),
    "seed beyond 63 bits": (["--seed", "9223372036854775808"], "seed = 9223372036854775808"),
    "unknown reference": (["--reference", "fp32"], "reference = fp32: must be exact or fp64"),
    "references in a list": (["--reference", "exact,fp64"], "reference = exact,fp64"),
    "unknown inputs": (["--reference-inputs", "none"], "reference-inputs = none: must be rounded"),
    "no queries in a tile": (["--block-q", "64,0"], "block_q = 0"),
    "range without its factor": (["--block-kv", "1:8"], "block-kv = 1:8: must be LOW:HIGH:x"),
    "range that stands still": (["--block-kv", "1:8:x1"], "block-kv = 1:8:x1"),
    "range that falls": (["--block-kv", "8:1:x2"], "block-kv = 8:1:x2"),
    "range of recipes": (["--recipe", "a:b:x2"], "recipe = a:b:x2"),
    "lists where none are taken": (["--softcap", "1,2"], "softcap = 1,2"),
    "splits that are none": (["--num-splits", "0"], "num_splits = 0"),
    "panel that does not divide": (["--panel", "48"], "panel = 48"),
    "heads not divisible": (["--num-heads-q", "4,6", "--num-heads-kv", "4"], "num_heads_q = 6"),
    "mask that is none": (["--mask", "none,diagonal"], "mask = diagonal"),
    "both forms": (["--seqlen-q", "8"], "seqlen.*seqlen-q"),
    "distribution beside files": (
        ["--distribution", "normal", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy"],
        "distribution: is given beside q",
    ),
    "one file of three": (["--q", "q.npy"], "k: is required by numerics"),
    "missing file": (["--q", "none.npy", "--k", "none.npy", "--v", "none.npy"], "none.npy", 3),
    "lengths that are not the files'": (
        ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy"],
        "seqlen = 8: must be 5",
    ),
    "claim beside a problem": (["--claim", "all"], "seqlen: is given beside claim"),
    "option of another verb": (["--dtype", "fp16"], "unknown option --dtype of numerics"),
    "threads that are too many": (["--threads", "1025"], "threads = 1025"),
    "unknown format": (["--format", "xml"], "format = xml"),
}


class Refusals(CommandTest):
    def setUp(self):
        super().setUp()
        self.save_inputs((1, 2, 5, 4), (1, 2, 5, 4), (1, 2, 5, 3))
        self.write("bad.json", "{")
        self.write("field.json", '{"name": "x", "colour": "red"}')
        self.write("order.json", '{"base": "fp32", "name": "x", "stored": "bf16"}')
        (self.folder / "folder.json").mkdir()

    def test_every_bad_value(self):
        for name, (words, pattern, *code) in CASES.items():
            with self.subTest(name):
                self.refuses(["numerics", "--seqlen", "8", *words], code[0] if code else 2, pattern)

    def test_what_is_missing_or_too_large(self):
        self.refuses(["numerics"], 2, "seqlen")
        self.refuses(["numerics", "--seqlen", "0"], 2, "seqlen_q = 0")
        self.refuses(["numerics", "--seqlen", "4294967296"], 2, "268435456 elements")
        self.refuses(["numerics", "--claim", "NO-1"], 2, "claim = NO-1: must be one of")
        self.refuses(["numerics", "--claim", ""], 2, "claim")
        many = ",".join(map(str, range(1, 300)))
        self.refuses(["numerics", "--seqlen", many, "--block-q", many], 2, "65536 points")

    def test_inputs_must_fit_each_other(self):
        words = ["numerics", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy"]
        self.save("k.npy", numpy.zeros((1, 2, 6, 4), "<f4"))
        self.refuses(words, 2, "v seqlen = 5: must be 6")
        self.save("k.npy", numpy.zeros((1, 2, 5, 4), "<f8"))
        self.refuses(words, 2, "k dtype = float64: must be float32")


if __name__ == "__main__":
    unittest.main()
