"""What the machine refuses: full disks, limits, closed streams, signals, files that exist."""

import json
import os
import pathlib
import pty
import resource
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import numpy

from command import FLASHBOUND, CommandTest

COUNT = ["count", "--seqlen", "4096", "--mask", "causal"]
ENVIRONMENT = 3


def limit_files_to(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class Outputs(CommandTest):
    def attend(self):
        return ["attend", *self.save_inputs()[1], "--o", "o.npy", "--lse-out", "lse.npy"]

    def test_a_result_that_exists_is_kept(self):
        self.write("x.csv", "precious")
        self.refuses([*COUNT, "--output", "x.csv"], 2, "output = x.csv.*--force")

    def test_a_result_that_exists_is_replaced_by_force(self):
        self.write("x.json", "old")
        self.succeed(*COUNT, "--format", "json", "--output", "x.json", "--force")
        self.assertEqual(len(json.loads((self.folder / "x.json").read_text())["rows"]), 20)

    def test_every_output_of_attend_that_exists_is_kept(self):
        for name in ("o.npy", "lse.npy"):
            words = self.attend()
            self.write(name, "precious")
            self.refuses(words, 2, f"{name}.*--force")
            (self.folder / name).unlink()

    def test_a_link_is_followed_and_stays_a_link(self):
        self.write("real.csv", "old")
        (self.folder / "link.csv").symlink_to("real.csv")
        self.refuses([*COUNT, "--output", "link.csv"], 2, "link.csv.*--force")
        self.succeed(*COUNT, "--output", "link.csv", "--format", "csv", "--force")
        self.assertTrue((self.folder / "link.csv").is_symlink())
        self.assertIn(b"flash2", (self.folder / "real.csv").read_bytes())

    def test_a_device_is_written_to_and_not_replaced(self):
        # Devices of its own: root could replace those of the machine.
        for name, minor in (("null", 3), ("full", 7)):
            try:
                os.mknod(self.folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
                open(self.folder / name, "wb").close()
            except PermissionError:
                self.skipTest("cannot make a device here")
        self.succeed(*COUNT, "--output", "null", "--force")
        self.refuses([*COUNT, "--output", "full", "--force"], ENVIRONMENT, r"\bfull: No space")
        for name in ("null", "full"):
            self.assertTrue((self.folder / name).is_char_device())
        self.assertEqual(self.files(), {})

    def test_an_output_named_like_standard_output_goes_there(self):
        self.assertIn("flash2", self.succeed(*COUNT, "--output", "/dev/stdout"))
        self.assertEqual(self.files(), {})

    def test_full_standard_output(self):
        self.save_inputs()
        for words in (COUNT, self.attend(), ["list"], ["--help"], ["count", "--help"]):
            with open("/dev/full", "wb") as full:
                self.refuses(words, ENVIRONMENT, "standard output.*No space left", stdout=full)

    def test_closed_standard_output(self):
        self.save_inputs()
        for words in (COUNT, self.attend()):
            close = lambda: os.close(1)
            self.refuses(words, ENVIRONMENT, "standard output", stdout=None, preexec_fn=close)

    def test_a_pipe_that_nobody_reads(self):
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "wb") as pipe:
            self.refuses(COUNT, ENVIRONMENT, "standard output.*pipe", stdout=pipe)

    def test_a_result_beyond_the_limit_of_files(self):
        limit = limit_files_to(512)
        for form in ("csv", "json", "jsonl", "table"):
            words = [*COUNT, "--format", form, "--output", "x"]
            self.refuses(words, ENVIRONMENT, r"\bx\b.*File too large", preexec_fn=limit)

    def test_arrays_beyond_the_limit_of_files(self):
        words = self.attend()
        self.refuses(words, ENVIRONMENT, r"\.npy.*File too large", preexec_fn=limit_files_to(64))

    def test_a_full_disk(self):
        with tempfile.TemporaryDirectory() as mount:
            done = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", mount],
                capture_output=True,
                check=False,
            )
            if done.returncode != 0:
                self.skipTest("cannot mount a file system here: " + done.stderr.decode().strip())
            try:
                q = numpy.zeros((1, 1, 512, 4), "<f8")
                for name in ("q", "k", "v"):
                    self.save(f"{name}.npy", q)
                words = ["attend", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy"]
                self.refuses([*words, "--o", f"{mount}/o.npy"], ENVIRONMENT, "o.npy.*No space left")
                words = [*COUNT, "--format", "json", "--output", f"{mount}/x.json"]
                self.refuses(words, ENVIRONMENT, "x.json.*No space left")
                self.assertEqual(os.listdir(mount), [])
            finally:
                subprocess.run(["umount", mount], check=True)

    def test_a_failed_output_leaves_no_other_output_behind(self):
        words = self.attend()
        self.refuses([*words, "--output", "none/x.csv"], ENVIRONMENT, "none/x.csv")
        with open("/dev/full", "wb") as full:
            self.refuses(words, ENVIRONMENT, "standard output", stdout=full)


class Signals(CommandTest):
    """Long runs that are told to stop."""

    def stop(self, words, signals, ready):
        """Runs `words` and sends `signals` as soon as ready(process id) says so."""
        command = subprocess.Popen(
            [FLASHBOUND, *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        while command.poll() is None and not ready(command.pid):
            time.sleep(0.01)
        for number in signals:
            command.send_signal(number)
        out, err = command.communicate(timeout=120)
        return command.returncode, out.decode(), err.decode()

    def has_begun(self, _):
        """Whether the output file is open: only the work is left to do."""
        return any(name.startswith("o.npy.part-") for name in os.listdir(self.folder))

    @staticmethod
    def has_worked(pid):
        """Whether six seconds of processor time, by which rows are finished, have been used."""
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 6

    def long_attend(self):
        shape = (1, 8, 8192, 64)
        self.save_inputs(shape, shape, shape, "<f4")
        words = ["attend", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--o", "o.npy"]
        return [*words, "--threads", "1"]

    def test_an_interrupted_attend_leaves_nothing(self):
        words = self.long_attend()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before = set(os.listdir(self.folder))
            code, out, err = self.stop(words, [number], self.has_begun)
            self.assertEqual((code, out), (130, ""))
            self.assertRegex(err, r"\Aflashbound: error: interrupted[^\n]*\n\Z")
            self.assertEqual(set(os.listdir(self.folder)), before)

    def test_an_interrupted_verify_keeps_its_finished_rows(self):
        words = ["verify", "--format", "json", "--output", "x.json", "--threads", "1"]
        code, out, err = self.stop(words, [signal.SIGINT], self.has_worked)
        self.assertEqual((code, out), (130, ""))
        self.assertLessEqual(err.count("\n"), 1)
        rows = json.loads((self.folder / "x.json").read_text())["rows"]
        self.assertGreater(len(rows), 0)
        self.assertEqual({row["status"] for row in rows}, {"pass"})
        self.assertEqual(sorted(os.listdir(self.folder)), ["x.json"])


class Terminal(CommandTest):
    """What standard error shows when it is a terminal."""

    def talk(self, *words, **environment):
        """Standard error of a verify, as a terminal gets it."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [FLASHBOUND, "verify", "--problem", "gpt2-medium", *words],
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", **environment},
        ) as command:
            os.close(theirs)
            heard = b""
            while True:
                try:
                    part = os.read(ours, 4096)
                except OSError:  # the other side is closed
                    break
                if not part:
                    break
                heard += part
            os.close(ours)
            self.assertEqual(command.wait(), 0)
        return heard.decode()

    def test_progress_is_one_line_that_is_cleared(self):
        heard = self.talk()
        self.assertRegex(heard, r"\d+/\d+")
        self.assertNotIn("\n", heard)
        self.assertTrue(heard.endswith("\r\x1b[K"))

    def test_no_progress_when_quiet_or_on_a_dumb_terminal(self):
        self.assertEqual(self.talk("--quiet"), "")
        self.assertEqual(self.talk(TERM="dumb"), "")

    def test_no_colour_where_none_is_wanted(self):
        self.assertNotRegex(self.talk(NO_COLOR="1"), r"\x1b\[[0-9;]*m")

    def test_nothing_but_text_when_piped(self):
        done = self.run_command("verify", "--problem", "gpt2-medium", env={"TERM": "xterm"})
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertNotIn(b"\x1b", done.stdout)
        self.assertNotIn(b"\r", done.stdout)


if __name__ == "__main__":
    unittest.main()
