"""Sweeps: shards, resuming after a kill, locks, merging; rows equal those of the swept verb."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from command import FLASHBOUND, CommandTest

SWEEP = (
    "sweep --of count --algorithm flash1,flash2 --seqlen 64:512:x2 --block-q 16:96:+16 "
    "--mask none,causal"
).split()
POINTS = 2 * 4 * 6 * 2


def merged_rows(text):
    """Rows without the first and last line of a file."""
    rows = [json.loads(line) for line in text.splitlines()]
    return [row for row in rows if "point" in row]


class Sweep(CommandTest):
    def sweep(self, *words):
        self.succeed(*SWEEP, *words)

    def whole(self):
        """The file of one uninterrupted shard."""
        self.sweep("--output", "whole.jsonl")
        return (self.folder / "whole.jsonl").read_bytes()

    def test_a_row_is_that_of_the_swept_verb(self):
        rows = merged_rows(self.whole().decode())
        self.assertEqual(len(rows), 2 * POINTS)  # closed form and machine
        self.assertEqual([row["point"] for row in rows], [n for n in range(POINTS) for _ in "ab"])
        for row in rows[:: 2 * 7]:
            words = ["count", "--format", "json", "--algorithm", row["algorithm"]]
            for option in ("seqlen", "block-q", "mask"):
                column = "seqlen_q" if option == "seqlen" else option.replace("-", "_")
                words += ["--" + option, row[column]]
            single = json.loads(self.succeed(*words))["rows"][0]
            single["point"] = row["point"]
            self.assertEqual(row, single)

    def test_a_sweep_of_tiles_is_what_tile_says(self):
        words = "--seqlen 512 --algorithm flash1,flash2 --sram 4KiB:64KiB:x4".split()
        text = self.succeed("sweep", "--of", "tile", *words, "--format", "jsonl")
        rows = merged_rows(text)
        self.assertEqual(len(rows), 6)
        for row in rows:
            single = self.succeed(
                "tile", "--seqlen", 512, "--algorithm", row["algorithm"],
                "--sram", row["sram_bytes"], "--format", "json",
            )  # fmt: skip
            self.assertEqual(json.loads(single)["rows"][0]["hbm_bytes"], row["hbm_bytes"])

    def test_rows_are_the_same_for_any_number_of_shards_and_threads(self):
        expected = self.whole()
        for count in (1, 2, 3, 7):
            names = []
            for index in range(1, count + 1):
                names.append(f"{count}-{index}.jsonl")
                threads = ("--threads", 1 + index % 2)
                self.sweep("--shard", f"{index}/{count}", "--output", names[-1], *threads)
            self.succeed("merge", "--input", ",".join(reversed(names)), "--output", f"{count}.all")
            self.assertEqual((self.folder / f"{count}.all").read_bytes(), expected)

    def test_a_killed_sweep_goes_on_without_repeating_or_losing_a_row(self):
        long = "sweep --seqlen 16:3200:+16 --block-q 8:256:+8 --algorithm flash2 --block-kv 32,64"
        words = [*long.split(), "--threads", "1"]
        self.succeed(*words, "--output", "whole.jsonl")
        for attempt in range(6):
            name = f"killed-{attempt}.jsonl"
            for delay in (0.02 + 0.03 * attempt, 0.05, 0.11):
                running = subprocess.Popen(
                    [FLASHBOUND, *words, "--output", name],
                    cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
                time.sleep(delay)
                running.send_signal(signal.SIGKILL)
                running.wait()
            self.succeed(*words, "--output", name)
            self.assertEqual(
                (self.folder / name).read_bytes(), (self.folder / "whole.jsonl").read_bytes()
            )

    def test_every_cut_of_a_file_is_mended(self):
        self.sweep("--output", "whole.jsonl")
        whole = (self.folder / "whole.jsonl").read_bytes()
        header = whole.index(b"\n") + 1
        for size in (0, 1, header - 1, header, header + 1, len(whole) // 2, len(whole) - 1):
            self.write("cut.jsonl", whole[:size])
            self.sweep("--output", "cut.jsonl")
            self.assertEqual((self.folder / "cut.jsonl").read_bytes(), whole, size)

    def test_a_finished_file_is_left_alone(self):
        self.sweep("--output", "done.jsonl")
        before = os.stat(self.folder / "done.jsonl").st_mtime_ns
        self.sweep("--output", "done.jsonl")
        self.assertEqual(os.stat(self.folder / "done.jsonl").st_mtime_ns, before)

    def test_a_file_of_another_sweep_is_refused(self):
        self.sweep("--output", "mine.jsonl")
        other = [*SWEEP, "--output", "mine.jsonl", "--head-dim", "128"]
        self.refuses(other, 2, r'config\.head-dim = "128", "64" in the file')
        self.refuses([*SWEEP, "--output", "mine.jsonl", "--shard", "1/2"], 2, r"shard\.count")
        for text in ("some text\n", "no line feed", b"\x00\xff" * 9, "{}\n", '{"kind": 5}\n'):
            self.write("text.jsonl", text)
            self.refuses([*SWEEP, "--output", "text.jsonl"], 2, "one that a sweep began")
        os.mkfifo(self.folder / "pipe")
        for place in ("pipe", "/dev/null", "."):
            self.refuses([*SWEEP, "--output", place], 2, "must be a regular file")
        self.succeed(*other, "--force")

    def test_a_file_that_is_being_written_is_refused(self):
        self.sweep("--output", "locked.jsonl")
        with open(self.folder / "locked.jsonl", "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.refuses([*SWEEP, "--output", "locked.jsonl"], 3, "another process")

    def test_what_does_not_go_together_is_a_row(self):
        text = self.succeed(
            "sweep", "--seqlen", 64, "--num-heads-q", "6,8", "--num-heads-kv", "2,3",
            "--algorithm", "flash2", "--method", "closed-form", "--format", "jsonl",
        )  # fmt: skip
        rows = merged_rows(text)
        self.assertEqual([row["status"] for row in rows], ["ok", "ok", "ok", "infeasible"])
        self.assertRegex(rows[3]["reason"], "num_heads_q = 8: must be a multiple")
        self.assertEqual((rows[3]["num_heads_q"], rows[3]["num_heads_kv"]), (8, 3))

    def test_a_single_bad_value_is_no_row(self):
        for words, pattern in (
            (["--seqlen", "64", "--dtype", "fp17"], "dtype = fp17"),
            (["--seqlen", "64", "--algorithm", "foo"], "algorithm = foo"),
            (["--seqlen", "64", "--method", "foo"], "method = foo"),
            (["--seqlen", "64", "--block-q", "0"], "block_q = 0"),
            (["--seqlen", "64", "--sram", "-5"], "sram = -5"),
            (["--seqlen", "64", "--of", "tile", "--sram", "0"], "sram = 0"),
            (["--seqlen", "64", "--of", "tile"], "sram: is required"),
            (["--of", "tile", "--sram", "1KiB"], "seqlen"),
            (["--block-q", "16,32"], "seqlen"),
            (["--seqlen", "64", "--seqlen-q", "5", "--block-q", "16,32"], "seqlen"),
            (["--seqlen", "64", "--cu-seqlens-q", "abc", "--block-q", "16,32"], "cu.seqlens"),
            (["--seqlen", "64", "--softcap", "0:1:+1"], "softcap = 0:1:"),
        ):
            self.refuses(["sweep", *words, "--output", "never.jsonl"], 2, pattern)

    def test_the_cells_of_a_mask_belong_to_the_sweep(self):
        words = "sweep --seqlen 64 --block-q 16,32 --block-mask m.npy --block-mask-q 32".split()
        words += "--block-mask-kv 32 --algorithm flash2".split()
        self.save("m.npy", [[1, 0], [1, 1]])
        self.succeed(*words, "--shard", "1/2", "--output", "1.jsonl")
        self.save("m.npy", [[1, 1], [1, 1]])
        self.succeed(*words, "--shard", "2/2", "--output", "2.jsonl")
        self.refuses([*words, "--shard", "1/2", "--output", "1.jsonl"], 2, "block-mask content")
        merge = ["merge", "--input", "1.jsonl,2.jsonl", "--output", "all.jsonl"]
        self.refuses(merge, 2, "block-mask content")

    def test_an_interrupted_sweep_of_tiles_keeps_what_is_finished(self):
        words = "sweep --of tile --seqlen 700:760:+1 --mask causal --sram 64KiB".split()
        words += "--algorithm small-cache --quiet --threads 1 --output t.jsonl".split()
        running = subprocess.Popen([FLASHBOUND, *words], cwd=self.folder)
        rows = self.folder / "t.jsonl"
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and not (
            rows.exists() and rows.read_bytes().count(b"\n") > 3
        ):
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(timeout=100), 130)
        lines = rows.read_bytes().splitlines()
        self.assertGreater(len(lines), 3)
        self.assertNotIn(b"complete", lines[-1])

    def test_a_kill_leaves_nothing_but_the_file(self):
        words = "sweep --seqlen 16:3200:+16 --block-q 8:256:+8 --block-kv 8:64:+8".split()
        running = subprocess.Popen([FLASHBOUND, *words, "--output", "k.jsonl"], cwd=self.folder)
        time.sleep(0.3)
        running.kill()
        running.wait()
        self.assertEqual([path.name for path in self.folder.iterdir()], ["k.jsonl"])

    def test_a_file_has_one_format_and_no_page(self):
        self.refuses([*SWEEP, "--output", "x.csv", "--format", "csv"], 2, "format = csv")
        self.refuses([*SWEEP, "--output", "x", "--report", "x.html"], 2, "report = x.html")

    def test_bad_lists_are_refused_before_anything_runs(self):
        base = ["sweep", "--seqlen", "64", "--output", "never.jsonl"]
        for option, value, pattern in (
            ("--block-q", "16,0", "block_q = 0"),
            ("--block-q", "16,x", "block-q = x"),
            ("--block-q", "8:4:x2", "block-q = 8:4:x2"),
            ("--dtype", "fp16,fp17", "dtype = fp17"),
            ("--algorithm", "flash2,flash9", "algorithm = flash9"),
            ("--head-dim", "64,577", "head_dim = 577"),
            ("--sram", "1KiB,0", "sram = 0"),
            ("--of", "verify", "of = verify"),
            ("--shard", "0/4", "shard = 0/4"),
            ("--shard", "5/4", "shard = 5/4"),
            ("--shard", "4", "shard = 4"),
            ("--points", "9", "unknown option"),
            ("--mask", "none,diagonal", "mask = diagonal"),
        ):
            self.refuses([*base, option, value], 2, pattern)
        many = "1:65536:+1"
        axes = ["--block-q", many, "--block-kv", many, "--num-splits", many]
        self.refuses([*base, *axes], 2, "2\\^40")

    def test_a_product_too_large_to_print_wants_a_file(self):
        words = ["sweep", "--seqlen", "64:320:+1", "--block-q", "1:300:+1"]
        self.refuses(words, 2, "output = -: must be a file")

    def test_merge_wants_every_shard_once_and_whole(self):
        for index in (1, 2):
            self.sweep("--shard", f"{index}/2", "--output", f"{index}.jsonl")
        merge = ["merge", "--output", "all.jsonl", "--input"]
        self.refuses([*merge, "1.jsonl"], 2, "shard 2/2 is missing")
        self.refuses([*merge, "1.jsonl,1.jsonl"], 2, "another shard")
        self.refuses([*merge, "1.jsonl,absent"], 3, "cannot read absent")
        whole = (self.folder / "2.jsonl").read_bytes()
        lines = whole.splitlines(keepends=True)
        self.write("2.jsonl", b"".join(lines[:-1]))
        self.refuses([*merge, "1.jsonl,2.jsonl"], 2, "must be complete")
        self.write("2.jsonl", b"".join(lines[:5]))
        self.refuses([*merge, "1.jsonl,2.jsonl"], 2, "lacks point")
        self.write("2.jsonl", whole)
        self.sweep("--shard", "2/2", "--output", "other.jsonl", "--head-dim", "32")
        self.refuses([*merge, "1.jsonl,other.jsonl"], 2, 'config.head-dim = "64", "32" in the file')
        self.refuses([*merge[:2], "1.jsonl", "--force", *merge[3:], "1.jsonl,2.jsonl"], 2, "output")
        self.write("2.jsonl", whole[: -len(lines[-1])] + b"{}\n")
        self.refuses([*merge, "1.jsonl,2.jsonl"], 2, "must be complete")
        self.write("2.jsonl", whole + b"garbage")
        self.refuses([*merge, "1.jsonl,2.jsonl"], 2, "must be complete")
        for good, bad in (
            (b'"index": 2', b'"index": 0'),
            (b'"index": 2', b'"index": "a"'),
            (b'"count": 2', b'"count": 1000000000000'),
            (b'"count": 2', b'"count": -3'),
            (b'"shard": {', b'"shart": {'),
            (b'"kind": "flashbound-sweep"', b'"kind": 5'),
            (b'"points": 96', b'"points": 1e3'),
        ):
            self.assertIn(good, lines[0])
            self.write("2.jsonl", lines[0].replace(good, bad) + b"".join(lines[1:]))
            self.refuses([*merge, "1.jsonl,2.jsonl"], 2, "a file that a sweep wrote")
        self.write("text", "no sweep\n")
        self.refuses([*merge, "text"], 2, "a file that a sweep wrote")

    def test_volatile_facts_are_beside_the_file(self):
        self.sweep("--output", "a.jsonl")
        manifest = json.loads((self.folder / "a.jsonl.manifest.json").read_text())
        self.assertIn("run", manifest)
        self.assertNotIn(b"argv", (self.folder / "a.jsonl").read_bytes())

    def test_the_template_for_gnu_parallel_gives_the_rows_of_one_shard(self):
        templates = pathlib.Path(__file__).parents[2] / "experiments" / "templates"
        expected = self.whole()
        done = subprocess.run(
            [templates / "gnu_parallel.sh", "3", "out", *SWEEP],
            cwd=self.folder,
            env={**os.environ, "FLASHBOUND": FLASHBOUND},
            capture_output=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "out" / "all.jsonl").read_bytes(), expected)


if __name__ == "__main__":
    unittest.main()
