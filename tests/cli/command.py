"""Runs the built flashbound command, whose path is the environment variable FLASHBOUND."""

import io
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy

FLASHBOUND = os.environ["FLASHBOUND"]


def npy_bytes(array, version=(1, 0)):
    file = io.BytesIO()
    numpy.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def npy_file(header, elements=b"", version=b"\x01\x00", length=None):
    """A .npy file of any header text, its length field included."""
    text = header.encode("latin-1")
    size = len(text) if length is None else length
    return b"\x93NUMPY" + version + size.to_bytes(2, "little") + text + elements


class CommandTest(unittest.TestCase):
    """Each test works in an empty folder of its own, where the command runs."""

    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_command(self, *words, stdout=subprocess.PIPE, **options):
        environment = {**os.environ, **options.pop("env", {})}
        return subprocess.run(
            [FLASHBOUND, *map(str, words)],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=120,
            check=False,
            **options,
        )

    def succeed(self, *words, **options):
        """The standard output of a run that must end well and say nothing else."""
        done = self.run_command(*words, **options)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        return (done.stdout or b"").decode()

    def files(self):
        return {
            path.relative_to(self.folder): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def refuses(self, words, code, pattern, **options):
        """One line that matches `pattern`, that exit code, and nothing else anywhere."""
        before = self.files()
        done = self.run_command(*words, **options)
        error = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, error)
        self.assertRegex(error, r"\Aflashbound: error: [^\n]+\n\Z")
        self.assertRegex(error, pattern)
        self.assertNotRegex(error, "Sanitizer|runtime error|terminate called")
        self.assertFalse(done.stdout, "nothing may be on standard output")
        self.assertEqual(self.files(), before, "no file may appear, change or go")

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def save(self, name, array):
        return self.write(name, npy_bytes(numpy.asarray(array)))

    def save_inputs(self, q=(1, 2, 5, 4), k=(1, 2, 7, 4), v=(1, 2, 7, 3), dtype="<f4"):
        """q.npy, k.npy, v.npy of normal values; returns them and the words that name them."""
        generator = numpy.random.default_rng(1)
        arrays = []
        for name, shape in (("q", q), ("k", k), ("v", v)):
            arrays.append(generator.standard_normal(shape).astype(dtype))
            self.save(f"{name}.npy", arrays[-1])
        return arrays, ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy"]
