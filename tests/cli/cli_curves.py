"""curve, envelope and tile, against count and against caches written here."""

import csv
import io
import json
import unittest
import xml.dom.minidom

from command import CommandTest


def flash2_lines(n, d, block, size=2, line=64):
    """Lines that flash2 touches, one head, no mask, lse left out: (line, is a write)."""
    per_row = d * size // line
    matrix = n * per_row

    def tile(tensor, i):
        begin = tensor * matrix + i * block * per_row
        end = tensor * matrix + min((i + 1) * block, n) * per_row
        return range(begin, end)

    blocks = -(-n // block)
    for i in range(blocks):
        yield from ((x, False) for x in tile(0, i))
        for j in range(blocks):
            yield from ((x, False) for x in tile(1, j))
            yield from ((x, False) for x in tile(2, j))
        yield from ((x, True) for x in tile(3, i))


def lru(trace, lines):
    """Reads from HBM and writes to it, in lines."""
    cache, reads, writes = {}, 0, 0  # dictionaries keep their order
    for x, write in trace:
        dirty = cache.pop(x, None)
        if dirty is None and not write:
            reads += 1
        if dirty is None and len(cache) == lines:
            victim = next(iter(cache))
            writes += cache.pop(victim)
        cache[x] = bool(dirty) or write
    return reads, writes + sum(cache.values())


class Curves(CommandTest):
    def rows(self, *words):
        return json.loads(self.succeed(*words, "--format", "json"))["rows"]

    def test_lru_at_any_capacity_is_that_of_a_list(self):
        words = "curve --algorithm flash2 --seqlen 200 --head-dim 32 --block-q 16 --block-kv 16"
        capacities = [0, 1, 2, 31, 200, 400, 431, 432, 433, 900]
        for granularity in ("tile", "line"):
            rows = self.rows(
                *words.split(), "--leave-out", "lse", "--granularity", granularity,
                "--cache", ",".join(str(64 * c) for c in capacities),
            )  # fmt: skip
            self.assertEqual([row["cache_bytes"] for row in rows], [64 * c for c in capacities])
            for row, lines in zip(rows[1:], capacities[1:]):
                reads, writes = lru(flash2_lines(200, 32, 16), lines)
                self.assertEqual(row["hbm_read_bytes"], 64 * reads, lines)
                self.assertEqual(row["hbm_write_bytes"], 64 * writes, lines)
                self.assertEqual(row["sram_bytes"], row["cache_bytes"] + row["sram_peak_bytes"])
                self.assertGreaterEqual(row["hbm_bytes"], row["lower_bound_bytes"])

    def test_without_a_cache_a_curve_begins_at_the_count(self):
        shape = "--seqlen 256 --head-dim 64 --num-heads-q 4 --num-heads-kv 2 --mask causal".split()
        for algorithm in ("flash1", "flash2", "standard-tiled", "rabe-staats"):
            words = ["--algorithm", algorithm, *shape]
            counted = self.rows("count", *words)[0]
            curve = self.rows("curve", *words, "--policy", "lru,opt", "--points", "all")
            first = [row for row in curve if row["cache_bytes"] == 0]
            self.assertEqual(len(first), 2)
            for row in first:
                self.assertEqual(row["hbm_read_bytes"], counted["hbm_read_bytes"])
                self.assertEqual(row["hbm_write_bytes"], counted["hbm_write_bytes"])
                for tensor, moved in row["tensors"].items():
                    self.assertEqual(moved["read_bytes"], counted["tensors"][tensor]["read_bytes"])

    def test_opt_is_never_above_lru_and_both_end_at_the_distinct_lines(self):
        words = "curve --algorithm flash1 --seqlen 128 --head-dim 32 --block-q 16 --block-kv 32"
        rows = self.rows(*words.split(), "--policy", "lru,opt", "--points", "all")
        by_policy = {"lru": {}, "opt": {}}
        for row in rows:
            by_policy[row["policy"]][row["cache_bytes"]] = row["hbm_read_bytes"]
        for capacity in by_policy["lru"].keys() & by_policy["opt"].keys():
            self.assertLessEqual(by_policy["opt"][capacity], by_policy["lru"][capacity])
        distinct = 2 * 128 * 32 * 4 + 4 * 128 * 2  # q, k, v, o of fp16; two fp32 statistics
        for policy in by_policy.values():
            self.assertEqual(policy[max(policy)], distinct)

    def test_a_set_of_all_ways_is_a_fully_associative_cache(self):
        words = "curve --seqlen 128 --head-dim 32 --policy lru,opt --cache 4KiB,16KiB".split()
        whole = self.rows(*words, "--granularity", "line")
        for size, lines in (("4KiB", 64), ("16KiB", 256)):
            one_set = self.rows(*words[:-1], size, "--ways", lines)
            self.assertEqual({row["method"] for row in one_set}, {"cache-simulation"})
            for row in one_set:
                same = [
                    other
                    for other in whole
                    if (other["policy"], other["cache_bytes"]) == (row["policy"], 64 * lines)
                ]
                self.assertEqual(row["hbm_bytes"], same[0]["hbm_bytes"])

    def test_the_best_tile_is_the_least_of_all_counts(self):
        n, d, sram = 24, 8, 900
        best = {}
        counts = self.succeed(
            "sweep", "--seqlen", n, "--head-dim", d, "--algorithm", "flash1,flash2,small-cache",
            "--block-q", "1:24:+1", "--block-kv", "1:24:+1", "--method", "closed-form",
            "--sram", sram, "--format", "jsonl",
        )  # fmt: skip
        for row in map(json.loads, counts.splitlines()):
            if row["status"] == "ok":
                algorithm = row["algorithm"]
                best[algorithm] = min(best.get(algorithm, row["hbm_bytes"]), row["hbm_bytes"])
        self.assertEqual(len(best), 3)
        rows = self.rows(
            "tile", "--seqlen", n, "--head-dim", d, "--sram", sram,
            "--algorithm", "flash1,flash2,small-cache",
        )  # fmt: skip
        self.assertEqual({row["algorithm"]: row["hbm_bytes"] for row in rows}, best)
        self.assertEqual([row["hbm_bytes"] for row in rows], sorted(best.values()))

    def test_what_does_not_fit_says_what_it_needs(self):
        rows = self.rows("tile", "--seqlen", 64, "--sram", 300, "--algorithm", "flash2,standard")
        self.assertEqual({row["status"] for row in rows}, {"infeasible"})
        needs = [int(row["reason"].split()[1]) for row in rows]
        for row, least in zip(rows, needs):
            fits = self.rows(
                "tile", "--seqlen", 64, "--sram", least, "--algorithm", row["algorithm"]
            )
            self.assertEqual(fits[0]["status"], "ok")

    def test_the_envelope_is_the_least_tile_at_every_step(self):
        shape = ["--seqlen", 100, "--head-dim", 16]
        rows = self.rows("envelope", *shape, "--points", "all")
        self.assertEqual(rows, sorted(rows, key=lambda row: row["sram_bytes"]))
        moved = [row["hbm_bytes"] for row in rows]
        self.assertEqual(moved, sorted(set(moved), reverse=True))
        for row in rows[:: max(1, len(rows) // 12)]:
            at = self.rows("tile", *shape, "--sram", row["sram_bytes"])[0]
            self.assertEqual(at["hbm_bytes"], row["hbm_bytes"])
            self.assertGreaterEqual(row["hbm_bytes"], row["lower_bound_bytes"])
            below = [r for r in self.rows("tile", *shape, "--sram", row["sram_bytes"] - 1)]
            if below[0]["status"] == "ok":
                self.assertGreater(below[0]["hbm_bytes"], row["hbm_bytes"])

    def test_published_expressions_stand_beside_the_steps_without_constants(self):
        n, d = 1024, 32
        for row in self.rows("envelope", "--seqlen", n, "--head-dim", d, "--points", 9):
            words = row["sram_bytes"] // 2
            values = {p["name"]: p["elements_without_constant"] for p in row["published"]}
            self.assertAlmostEqual(values["exact-large-cache"], n * n * d * d / words)
            self.assertAlmostEqual(values["exact-small-cache"], n * n * d / words**0.5)

    def test_the_footer_names_takeovers_and_the_knee(self):
        text = self.succeed("envelope", "--seqlen", 4096, "--head-dim", 64, "--points", 4)
        for part in ("least from", "flash2 moves less than small-cache for good", "helps nothing"):
            self.assertIn(part, text)

    def test_a_part_of_the_traffic_has_no_bound(self):
        words = "curve --seqlen 64 --points 2 --leave-out".split()
        for left, bounded in (("lse", True), ("k,v", False)):
            for row in self.rows(*words, left):
                self.assertEqual(row["leave_out"], left)
                self.assertEqual(row["ratio_to_lower_bound"] is not None, bounded)
        self.assertEqual(
            len(self.rows("curve", "--seqlen", 256, "--algorithm", "flash1", "--points", 2)), 4
        )

    def test_formats_agree(self):
        words = "curve --seqlen 128 --policy scratchpad,lru --points 8".split()
        rows = self.rows(*words)
        table = list(csv.DictReader(io.StringIO(self.succeed(*words, "--format", "csv"))))
        self.assertEqual(len(table), len(rows))
        for a, b in zip(table, rows):
            self.assertEqual(a["hbm_bytes"], str(b["hbm_bytes"]))

    def test_charts_are_well_formed_and_stand_in_the_page(self):
        words = "--seqlen 512 --head-dim 32 --report page.html --plot chart.svg".split()
        for verb in (["envelope"], ["curve", "--policy", "lru,opt"]):
            self.succeed(*verb, *words, "--force")
            chart = (self.folder / "chart.svg").read_text()
            xml.dom.minidom.parseString(chart)
            self.assertIn("(bytes)", chart)
            self.assertIn(chart, (self.folder / "page.html").read_text())

    def test_bad_input_is_one_line(self):
        self.save("cells.npy", [[1, 0], [1, 1]])
        curve = ["curve", "--seqlen", "64"]
        for words, pattern in (
            ([*curve, "--policy", "mru"], "policy = mru"),
            ([*curve, "--policy", "plru"], "cache: is required"),
            ([*curve, "--policy", "plru", "--cache", "96KiB"], "ways: is required"),
            ([*curve, "--ways", "4"], "cache: is required"),
            ([*curve, "--cache", "100"], "cache = 100: must be a multiple"),
            ([*curve, "--cache", "0", "--policy", "fifo"], "cache = 0"),
            ([*curve, "--cache", "12KiB", "--ways", "5"], "capacity = 12288"),
            ([*curve, "--cache", "12KiB", "--ways", "12", "--policy", "plru"], "power of two"),
            ([*curve, "--line-size", "48"], "line-size = 48"),
            ([*curve, "--line-size", "0"], "line-size = 0"),
            ([*curve, "--layout", "tiled"], "layout = tiled"),
            ([*curve, "--granularity", "byte"], "granularity = byte"),
            ([*curve, "--leave-out", "x"], "leave-out = x: must be of q, k, v, o, lse"),
            ([*curve, "--points", "1"], "points = 1"),
            ([*curve, "--points", "some"], "points = some"),
            ([*curve, "--algorithm", "forward"], "one algorithm"),
            ([*curve, "--policy", "scratchpad", "--cache", "1KiB"], "cache = 1KiB"),
            (
                [*curve, "--algorithm", "small-cache", "--granularity", "tile"],
                "granularity = tile",
            ),
            (["curve", "--seqlen", "16777216", "--policy", "opt"], "accesses|units|lines"),
            (["tile", "--seqlen", "64"], "sram: is required"),
            (
                ["tile", "--seqlen", "64", "--sram", "1KiB", "--block-mask", "cells.npy"],
                "block-mask-q: is required",
            ),
            (["tile", "--seqlen", "64", "--sram", "0"], "sram = 0"),
            (["tile", "--seqlen", "64", "--sram", "1KiB", "--algorithm", "all"], "one pass"),
            (["envelope", "--seqlen", "0"], "seqlen"),
        ):
            self.refuses(words, 2, pattern)


if __name__ == "__main__":
    unittest.main()
