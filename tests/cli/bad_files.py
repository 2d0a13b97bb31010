"""Every input file that is no usable array: one line naming it, and the exit code."""

import unittest

import numpy

from command import CommandTest, npy_bytes, npy_file

GOOD = numpy.zeros((1, 2, 5, 4), "<f4")
HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 5, 4), }"
ELEMENTS = bytes(GOOD.nbytes)


def header(**changes):
    entries = {"descr": "'<f4'", "fortran_order": "False", "shape": "(1, 2, 5, 4)", **changes}
    return "{" + ", ".join(f"'{key}': {value}" for key, value in entries.items()) + "}"


# Content of q.npy, and what the error must say beside that name.
MALFORMED = {
    "empty": (b"", "npy"),
    "text": (b"1 2 3\n4 5 6\n", "npy"),
    "magic alone": (b"\x93NUMPY", "npy"),
    "magic of another": (b"\x94NUMPY\x01\x00" + bytes(200), "npy"),
    "zip archive": (b"PK\x03\x04" + bytes(200), "npy"),
    "no header length": (b"\x93NUMPY\x01\x00\x10", "header"),
    "version 0": (npy_file(HEADER, ELEMENTS, b"\x00\x00"), "version 0.0"),
    "version 4": (npy_file(HEADER, ELEMENTS, b"\x04\x00"), "version 4.0"),
    "version 1.1": (npy_file(HEADER, ELEMENTS, b"\x01\x01"), "version 1.1"),
    "header cut off": (npy_bytes(GOOD)[:40], "header"),
    "header longer than the file": (npy_file(HEADER, ELEMENTS, length=60000), "header"),
    "header of 4 GiB": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(64), "header"),
    "elements missing": (npy_bytes(GOOD)[:128], "0 bytes of elements.*160"),
    "last byte missing": (npy_bytes(GOOD)[:-1], "159 bytes of elements.*160"),
    "bytes after the elements": (npy_bytes(GOOD) + b"\n", "161 bytes of elements.*160"),
    "two arrays": (npy_bytes(GOOD) * 2, "bytes of elements"),
    "header without a dictionary": (npy_file("[1, 2, 3]", ELEMENTS), "header"),
    "header that runs code": (npy_file("__import__('os').abort()", ELEMENTS), "header"),
    "shape that runs code": (npy_file(header(shape="(1, abort())"), ELEMENTS), "header|shape"),
    "header not closed": (npy_file(HEADER[:-1], ELEMENTS), "header"),
    "text after the dictionary": (npy_file(HEADER + " 7", ELEMENTS), "header"),
    "no shape": (npy_file("{'descr': '<f4', 'fortran_order': False}", ELEMENTS), "shape"),
    "no dtype": (npy_file("{'fortran_order': False, 'shape': (1,)}", ELEMENTS), "descr"),
    "unknown key": (npy_file(header(order="'C'"), ELEMENTS), "key"),
    "key twice": (npy_file(HEADER[:-1] + "'descr': '<f4'}", ELEMENTS), "descr.*twice"),
    "order that is no boolean": (npy_file(header(fortran_order="0"), ELEMENTS), "fortran_order"),
    "negative length": (npy_file(header(shape="(1, 2, 5, -4)"), ELEMENTS), "shape"),
    "fractional length": (npy_file(header(shape="(1, 2, 5, 4.0)"), ELEMENTS), "header|shape"),
    "shape that is a list": (npy_file(header(shape="[1, 2, 5, 4]"), ELEMENTS), "header|shape"),
    "length beyond 64 bits": (npy_file(header(shape="(1, 9" + "9" * 30 + ")"), b""), "64 bits"),
    "elements beyond 64 bits": (npy_file(header(shape=f"({2**40}, {2**40})"), b""), "64 bits"),
    "bytes beyond 64 bits": (npy_file(header(shape=f"({2**62},)"), b""), "64 bits"),
    "claims a terabyte": (npy_file(header(shape=f"({2**38}, 1, 1, 1)"), ELEMENTS), "bytes of elem"),
    "33 axes": (npy_file(header(shape="(" + "1, " * 33 + ")"), bytes(4)), "axes"),
    "pickled objects": (npy_bytes(numpy.array([[{}]], dtype=object)), "dtype.*pickled"),
    "object dtype without a pickle": (npy_file(header(descr="'|O'"), ELEMENTS), "dtype.*pickled"),
    "structured": (npy_bytes(numpy.zeros((1, 2, 5, 4), [("a", "<f4")])), "dtype.*structured"),
    "big-endian": (npy_bytes(GOOD.astype(">f4")), "dtype = >f4.*little-endian"),
    "complex": (npy_bytes(GOOD.astype("<c8")), "dtype = <c8"),
    "long double": (npy_bytes(GOOD.astype("<f16")), "dtype = <f16"),
    "text elements": (npy_bytes(GOOD.astype("<U4")), "dtype = <U"),
    "dates": (npy_bytes(GOOD.astype("<i8").astype("<M8[s]")), "dtype = <M8"),
    "native order": (npy_file(header(descr="'=f4'"), ELEMENTS), "dtype = =f4"),
    "dtype with control characters": (npy_file(header(descr="'\x1b[2J'"), ELEMENTS), "dtype"),
    "integers": (npy_bytes(GOOD.astype("<i8")), "dtype = int64.*float16"),
    "booleans": (npy_bytes(GOOD.astype(bool)), "dtype = bool"),
    "three axes": (npy_bytes(GOOD[0]), "rank = 3.*4"),
    "five axes": (npy_bytes(GOOD[None]), "rank = 5.*4"),
    "a number": (npy_bytes(GOOD[0, 0, 0, 0]), "rank = 0.*4"),
}

# Words after --q, --k, --v and --o, and what the error must name.
CONTRADICTIONS = {
    "batch": (["--batch", "2"], "batch = 2.*1"),
    "query heads": (["--num-heads-q", "3"], "num-heads-q = 3.*2"),
    "heads": (["--num-heads", "8"], "num-heads = 8.*2"),
    "key heads": (["--num-heads-kv", "1"], "num-heads-kv = 1.*2"),
    "queries": (["--seqlen-q", "6"], "seqlen-q = 6.*5"),
    "keys": (["--seqlen-k", "5"], "seqlen-kv = 5.*7"),
    "one length for two": (["--seqlen", "5"], "seqlen = 5.*7"),
    "head_dim": (["--head-dim", "8"], "head-dim = 8.*4"),
    "head_dim_v": (["--head-dim-v", "4"], "head-dim-v = 4.*3"),
    "offsets": (["--cu-seqlens-q", "0,4", "--cu-seqlens-kv", "0,7"], "cu_seqlens_q.*5"),
    "too many sinks": (["--sink", "1,2,3"], "sink = 3 values.*2"),
    "sink that is no number": (["--sink", "1,"], "sink"),
    "infinite sink": (["--sink", "inf"], "sink = inf.*finite"),
    "scale that is no number": (["--softmax-scale", "half"], "softmax-scale = half"),
    "infinite scale": (["--softmax-scale", "1e999"], "softmax-scale = 1e999"),
    "scale that is NaN": (["--softmax-scale", "nan"], "softmax-scale = nan"),
    "negative softcap": (["--softcap", "-1"], "softcap = -1"),
    "unknown kernel": (["--kernel", "turbo"], "kernel = turbo.*reference"),
    "option of count": (["--algorithm", "flash2"], "unknown option --algorithm of attend"),
    "output is an input": (["--o", "q.npy", "--force"], "q.npy"),
    "two outputs in one file": (["--lse-out", "o.npy"], "lse-out = o.npy"),
    "report in an output's file": (["--output", "o.npy"], "o.npy"),
    "threads": (["--threads", "1.5"], "threads = 1.5"),
}

# Shapes of q, k and v.
SHAPES = {
    "batches": ((2, 2, 5, 4), (1, 2, 7, 4), (1, 2, 7, 3), "batch"),
    "value batches": ((1, 2, 5, 4), (1, 2, 7, 4), (3, 2, 7, 3), "batch"),
    "value heads": ((1, 2, 5, 4), (1, 2, 7, 4), (1, 1, 7, 3), "heads"),
    "value lengths": ((1, 2, 5, 4), (1, 2, 7, 4), (1, 2, 6, 3), "seqlen"),
    "head_dims": ((1, 2, 5, 4), (1, 2, 7, 8), (1, 2, 7, 3), "head_dim"),
    "heads not divisible": ((1, 3, 5, 4), (1, 2, 7, 4), (1, 2, 7, 3), "num_heads_q = 3"),
    "no heads": ((1, 0, 5, 4), (1, 0, 7, 4), (1, 0, 7, 3), "num_heads"),
    "no columns": ((1, 2, 5, 0), (1, 2, 7, 0), (1, 2, 7, 3), "head_dim = 0"),
    "no value columns": ((1, 2, 5, 4), (1, 2, 7, 4), (1, 2, 7, 0), "head_dim_v = 0"),
    "577 columns": ((1, 1, 1, 577), (1, 1, 1, 577), (1, 1, 1, 1), "head_dim = 577"),
}


class BadFiles(CommandTest):
    def attend(self, *words):
        return ["attend", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--o", "o.npy", *words]

    def test_each_input_is_required(self):
        self.save_inputs()
        words = self.attend()
        for at in range(1, len(words), 2):
            self.refuses(words[:at] + words[at + 2 :], 2, words[at].lstrip("-"))

    def test_each_input_must_be_there(self):
        for name in ("q", "k", "v"):
            self.save_inputs()
            (self.folder / f"{name}.npy").unlink()
            self.refuses(self.attend(), 3, f"{name}.npy")

    def test_an_input_must_be_a_file(self):
        self.save_inputs()
        self.refuses(["attend", "--q", ".", *self.attend()[3:]], 2, r"\.: ")
        self.refuses(["attend", "--q", "/dev/zero", *self.attend()[3:]], 2, "/dev/zero.*file")

    def test_a_sparse_terabyte_is_refused_by_its_header(self):
        self.save_inputs()
        with open(self.folder / "q.npy", "r+b") as file:
            file.truncate(2**40)
        before = (self.folder / "q.npy").stat().st_size
        done = self.run_command(*self.attend())
        self.assertEqual(done.returncode, 2)
        self.assertRegex(
            done.stderr.decode(), r"\Aflashbound: error: q\.npy: [^\n]*bytes[^\n]*\n\Z"
        )
        self.assertEqual((self.folder / "q.npy").stat().st_size, before)

    def test_inputs_must_have_one_dtype(self):
        self.save_inputs()
        self.save("v.npy", numpy.zeros((1, 2, 7, 3), "<f8"))
        self.refuses(self.attend(), 2, "v dtype = float64.*float32")


def add_tests():
    for name, (content, pattern) in MALFORMED.items():

        def malformed(self, content=content, pattern=pattern):
            self.save_inputs()
            self.write("q.npy", content)
            self.refuses(self.attend(), 2, f"\\bq\\b.*({pattern})")

        setattr(BadFiles, f"test_malformed_{name.replace(' ', '_')}", malformed)

    for name, (words, pattern) in CONTRADICTIONS.items():

        def contradiction(self, words=words, pattern=pattern):
            self.save_inputs()
            base = self.attend()
            self.refuses((base[:7] if "--o" in words else base) + words, 2, pattern)

        setattr(BadFiles, f"test_contradiction_{name.replace(' ', '_')}", contradiction)

    for name, (q, k, v, pattern) in SHAPES.items():

        def shapes(self, q=q, k=k, v=v, pattern=pattern):
            self.save_inputs(q, k, v)
            self.refuses(self.attend(), 2, pattern)

        setattr(BadFiles, f"test_shapes_{name.replace(' ', '_')}", shapes)


add_tests()

if __name__ == "__main__":
    unittest.main()
