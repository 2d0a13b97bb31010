"""What count says, against formulas of the papers and against its own record of every event."""

import json
import unittest

from command import CommandTest


def ceil_div(a, b):
    return -(-a // b)


def published_elements(algorithm, n, d, block_q, block_kv):
    """Elements that one head moves on a full square mask, statistics apart.

    standard: Dao et al. 2022, Algorithm 0. flash1: Algorithm 1 there, Q and O once a block of
    keys. flash2: Dao 2023, Algorithm 1, K and V once a block of queries.
    """
    if algorithm == "standard":
        return 4 * n * n + 4 * n * d, 0
    if algorithm == "flash1":
        passes = ceil_div(n, block_kv)
        return 2 * n * d + 3 * n * d * passes, 4 * n * passes
    return 2 * n * d + 2 * n * d * ceil_div(n, block_q), n


class Counts(CommandTest):
    def rows(self, *words):
        return json.loads(self.succeed("count", *words, "--format", "json"))["rows"]

    def check_published(self, n, d, batch, heads, block_q, block_kv, dtype, size):
        words = f"--seqlen {n} --head-dim {d} --batch {batch} --num-heads {heads}".split()
        words += f"--block-q {block_q} --block-kv {block_kv} --dtype {dtype}".split()
        for algorithm in ("standard", "flash1", "flash2"):
            data, statistics = published_elements(algorithm, n, d, block_q, block_kv)
            expected = batch * heads * (size * data + max(size, 4) * statistics)
            rows = self.rows(*words, "--algorithm", algorithm)
            self.assertIn(len(rows), (1, 2))
            for row in rows:
                self.assertEqual(row["hbm_bytes"], expected, algorithm)
                self.assertEqual(row["hbm_bytes"], row["hbm_read_bytes"] + row["hbm_write_bytes"])
                self.assertEqual(row["flops"], 4 * batch * heads * n * n * d)
                self.assertEqual(row["status"], "ok")
                self.assertGreaterEqual(row["hbm_bytes"], row["lower_bound_bytes"])
                ratio = row["hbm_bytes"] / row["lower_bound_bytes"]
                self.assertAlmostEqual(row["ratio_to_lower_bound"], ratio, delta=1e-12 * ratio)
        return expected

    def test_no_row_is_below_its_bound_not_even_one_that_does_not_fit(self):
        for sram in ("1KiB", "64KiB", "1GiB"):
            for footprint in ("uniform", "kernel"):
                for row in self.rows(
                    "--seqlen", 2048, "--sram", sram, "--footprint", footprint, "--algorithm", "all"
                ):
                    self.assertGreaterEqual(row["hbm_bytes"], row["lower_bound_bytes"])
                    self.assertGreaterEqual(row["ratio_to_lower_bound"], 1)

    def test_the_published_formulas(self):
        self.check_published(1024, 64, 64, 16, 64, 256, "fp16", 2)
        self.check_published(1000, 72, 3, 5, 48, 80, "fp32", 4)
        self.check_published(130, 576, 1, 1, 128, 7, "fp64", 8)
        self.check_published(1, 1, 1, 1, 64, 64, "fp8e4m3", 1)

    def test_the_published_backward_formulas(self):
        """Dao et al. 2022, Algorithms 3 and 4; Dao 2023, Algorithm 2. dQ, dK and dV are written."""
        n, d, tc, heads = 640, 48, 8, 6
        words = f"--seqlen {n} --head-dim {d} --num-heads {heads} --block-kv 80 --dtype fp16"
        published = {
            "standard-backward": (7 * n * n + 8 * n * d, 0, 4),
            "flash1-backward": (4 * n * d + 5 * n * d * tc, 2 * n * tc, 5),
            "flash2-backward": (6 * n * d + 4 * n * d * tc, n + 2 * n * tc, 5),
        }
        rows = self.rows(*words.split(), "--algorithm", "backward")
        self.assertEqual({row["algorithm"] for row in rows}, set(published))
        for row in rows:
            data, statistics, products = published[row["algorithm"]]
            self.assertEqual(row["hbm_bytes"], heads * (2 * data + 4 * statistics))
            self.assertEqual(row["flops"], heads * products * 2 * n * n * d)
            self.assertEqual(row["lower_bound_bytes"], heads * 2 * 7 * n * d)
            self.assertEqual(row["flops_useful"], heads * 4 * 2 * n * n * d)
            self.assertEqual(row["status"], "ok")

    def test_the_forward_pass_is_counted_unless_asked(self):
        def algorithms(*words):
            return {row["algorithm"] for row in self.rows("--seqlen", "64", *words)}

        forward = algorithms()
        self.assertEqual(forward, algorithms("--algorithm", "forward"))
        backward = algorithms("--algorithm", "backward")
        self.assertEqual(len(forward) + len(backward), 13)
        self.assertEqual(forward | backward, algorithms("--algorithm", "all"))

    def test_counts_beyond_64_bits_are_exact(self):
        self.check_published(2**24, 128, 64, 16, 64, 64, "fp16", 2)
        row = self.rows(*"--seqlen 4294967296 --batch 16777216 --num-heads 65536".split())[0]
        self.assertGreater(row["flops"], 2**64)
        self.assertEqual(row["flops"], 4 * 2**24 * 2**16 * 2**64 * 64)

    def test_figure_2_of_flash_attention(self):
        """GPT-2 medium, 64 sequences: both methods agree, and on the paper's order of magnitude."""
        words = "--algorithm flash1 --batch 64 --num-heads 16 --seqlen 1024 --head-dim 64"
        rows = self.rows(*words.split(), *"--block-q 64 --block-kv 256 --dtype fp16".split())
        self.assertEqual([row["method"] for row in rows], ["closed-form", "machine"])
        expected = 1024 * (2 * (2 + 3 * 4) * 1024 * 64 + 4 * 4 * 1024 * 4)
        self.assertEqual([row["hbm_bytes"] for row in rows], [expected] * 2)

    def test_what_exceeds_the_fast_memory_is_infeasible_and_no_failure(self):
        for row in self.rows(*"--seqlen 256 --sram 1KiB --algorithm flash2".split()):
            self.assertEqual((row["status"], row["sram_bytes"]), ("infeasible", 1024))
            self.assertGreater(row["sram_peak_bytes"], 1024)
            self.assertIn(str(row["sram_peak_bytes"]), row["reason"].replace(",", ""))
        for row in self.rows(*"--seqlen 256 --sram 1GiB --algorithm flash2".split()):
            self.assertEqual(row["status"], "ok")
        peak = row["sram_peak_bytes"]
        for size, status in ((peak, "ok"), (peak - 1, "infeasible")):
            rows = self.rows(*f"--seqlen 256 --sram {size}B --algorithm flash2".split())
            self.assertEqual({row["status"] for row in rows}, {status})

    def test_sizes_of_fast_memory_know_their_units(self):
        for text, size in {
            "4096": 4096,
            "7B": 7,
            "192KiB": 192 * 1024,
            "20kB": 20000,
            "20KB": 20000,
            "3MiB": 3 << 20,
            "3MB": 3000000,
            "2GiB": 2 << 30,
            "2GB": 2000000000,
        }.items():
            rows = self.rows("--seqlen", "64", "--sram", text)
            self.assertEqual({row["sram_bytes"] for row in rows}, {size}, text)

    def test_the_record_of_a_head_adds_up_to_its_count(self):
        algorithms = {
            row["name"]
            for row in json.loads(self.succeed("list", "--format", "json"))["rows"]
            if row["kind"] == "algorithm"
        }
        for algorithm in sorted(algorithms):
            for mask in ([], ["--mask", "causal"], ["--window-left", "9", "--window-right", "3"]):
                words = "--seqlen-q 50 --seqlen-kv 70 --head-dim 12 --head-dim-v 20".split()
                words += "--block-q 16 --block-kv 24 --panel 4 --num-splits 2 --force".split()
                words += ["--algorithm", algorithm, "--record-out", "r.json", *mask]
                rows = self.rows(*words, "--program-out", "p.json")
                record = json.loads((self.folder / "r.json").read_text())
                self.assertEqual(record["algorithm"], algorithm)
                program = json.loads((self.folder / "p.json").read_text())
                self.assertEqual(program["program"], algorithm)
                declared = {tensor["name"] for tensor in program["tensors"]}
                moved = {name: {"load": 0, "store": 0} for name in declared}
                for event in record["events"]:
                    if event["op"] in ("load", "store"):
                        moved[event["tensor"]][event["op"]] += event["bytes"]
                peak = max(event.get("resident_elements", 0) for event in record["events"])
                self.assertEqual(len(rows), 2)
                for row in rows:
                    self.assertEqual(row["sram_peak_elements"], peak)
                    counted = {
                        name: {"load": tensor["read_bytes"], "store": tensor["write_bytes"]}
                        for name, tensor in row["tensors"].items()
                    }
                    self.assertEqual(counted, moved, (algorithm, mask))

    def test_heads_and_sequences_multiply(self):
        one = self.rows(*"--seqlen 100 --mask causal".split())
        many = self.rows(*"--seqlen 100 --mask causal --batch 3 --num-heads 5".split())
        for a, b in zip(one, many):
            for column in ("hbm_bytes", "flops", "exponentials", "rescales_at_most"):
                self.assertEqual(b[column], 15 * a[column])
            self.assertEqual(b["sram_peak_bytes"], a["sram_peak_bytes"])

    def test_packed_sequences_add_up(self):
        packed = self.rows(*"--cu-seqlens-q 0,30,100 --cu-seqlens-kv 0,64,100".split())
        first = self.rows(*"--seqlen-q 30 --seqlen-kv 64".split())
        second = self.rows(*"--seqlen-q 70 --seqlen-kv 36".split())
        for whole, a, b in zip(packed, first, second):
            for column in ("hbm_read_bytes", "hbm_write_bytes", "flops", "lower_bound_bytes"):
                self.assertEqual(whole[column], a[column] + b[column])


class Verify(CommandTest):
    def test_rows_do_not_depend_on_the_number_of_threads(self):
        words = ["verify", "--problem", "minilm-layer0", "--format", "json", "--quiet"]
        texts = []
        for threads in ("1", "4"):
            text = self.succeed(*words, "--threads", threads)
            texts.append(text[text.index('"columns"') :])
        self.assertEqual(texts[0], texts[1])
        rows = json.loads("{" + texts[0])["rows"]
        self.assertEqual({row["status"] for row in rows}, {"pass"})
        self.assertEqual({row["problem"] for row in rows}, {"minilm-layer0"})
        # Twelve algorithms, and the reference against exact attention.
        self.assertEqual(len({row["algorithm"] for row in rows}), 14)
        for row in rows:
            self.assertLessEqual(row["worst_difference"], row["allowed_difference"])

    def test_a_published_problem_depends_on_the_seed_alone(self):
        def rows(seed):
            words = f"verify --problem gpt2-medium --seed {seed} --format csv --quiet".split()
            return self.succeed(*words)

        self.assertEqual(rows(7), rows(7))
        self.assertNotEqual(rows(7), rows(8))


if __name__ == "__main__":
    unittest.main()
