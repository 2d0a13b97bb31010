"""Gradients and exact results of `flashbound attend`, against their definition in NumPy."""

import json
import math
import unittest

import numpy

from command import CommandTest

GRADIENTS = ("grad_q", "grad_k", "grad_v")


def gradients(q, k, v, grad_o, causal=False):
    """dQ, dK, dV in fp64 by the definition, one row at a time; heads of K and V are shared."""
    batch, heads, rows, head_dim = q.shape
    keys = k.shape[2]
    group = heads // k.shape[1]
    scale = 1 / math.sqrt(head_dim)
    grad_q, grad_k, grad_v = (numpy.zeros_like(x) for x in (q, k, v))
    for b, h, i in numpy.ndindex(batch, heads, rows):
        g = h // group
        seen = [j for j in range(keys) if not causal or j <= i + keys - rows]
        if not seen:
            continue
        logits = k[b, g, seen] @ q[b, h, i] * scale
        p = numpy.exp(logits - logits.max())
        p /= p.sum()
        grad_p = v[b, g, seen] @ grad_o[b, h, i]
        grad_s = p * (grad_p - p @ grad_p) * scale
        grad_q[b, h, i] = grad_s @ k[b, g, seen]
        grad_k[b, g, seen] += numpy.outer(grad_s, q[b, h, i])
        grad_v[b, g, seen] += numpy.outer(p, grad_o[b, h, i])
    return grad_q, grad_k, grad_v


class Gradients(CommandTest):
    words = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--o", "o.npy", "--force"]
    outputs = [
        word for name in GRADIENTS for word in ("--" + name.replace("_", "-"), f"{name}.npy")
    ]

    def inputs(self, rows=5, keys=7, heads=4):
        shapes = {
            "q": (1, heads, rows, 4),
            "k": (1, 2, keys, 4),
            "v": (1, 2, keys, 3),
            "grad_o": (1, heads, rows, 3),
        }
        generator = numpy.random.default_rng(rows + keys)
        arrays = [generator.standard_normal(shape) for shape in shapes.values()]
        for name, array in zip(shapes, arrays):
            numpy.save(self.folder / f"{name}.npy", array)
        return arrays

    def attend(self, *words):
        text = self.succeed("attend", *self.words, "--grad-o", "grad_o.npy", *self.outputs, *words)
        return text, [numpy.load(self.folder / f"{name}.npy") for name in GRADIENTS]

    def test_both_kernels_give_the_gradients_of_the_definition(self):
        for rows, keys, causal in ((5, 7, False), (7, 5, True), (1, 1, False)):
            arrays = self.inputs(rows, keys)
            expected = gradients(*arrays, causal=causal)
            mask = ["--mask", "causal"] if causal else []
            for kernel in ("reference", "exact"):
                with self.subTest(rows=rows, keys=keys, kernel=kernel):
                    for found, right in zip(self.attend("--kernel", kernel, *mask)[1], expected):
                        numpy.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-13)

    def test_any_of_the_three_may_be_left_out(self):
        self.inputs()
        self.succeed("attend", *self.words, "--grad-o", "grad_o.npy", "--grad-k", "grad_k.npy")
        names = {path.name for path in self.folder.iterdir()}
        self.assertIn("grad_k.npy", names)
        self.assertFalse({"grad_q.npy", "grad_v.npy"} & names)

    def test_gradients_of_fp16_files_are_fp16(self):
        for name, array in zip(("q", "k", "v", "grad_o"), self.inputs()):
            numpy.save(self.folder / f"{name}.npy", array.astype("<f2"))
        for found in self.attend()[1]:
            self.assertEqual(found.dtype, numpy.dtype("<f2"))

    def test_what_gradients_need_is_asked_for_before_anything_is_written(self):
        self.inputs()
        words = ["attend", *self.words]
        self.refuses([*words, "--grad-q", "x.npy"], 2, "grad-o: is required by gradients")
        self.refuses([*words, "--grad-o", "grad_o.npy"], 2, "grad-o = .* with grad-q, grad-k or")
        words += ["--grad-q", "x.npy", "--grad-o"]
        self.refuses([*words, "q.npy"], 2, r"grad-o head_dim = 4: must be 3 as in v")
        self.refuses([*words, "k.npy"], 2, r"grad-o num_heads = 2: must be 4 as in q")
        numpy.save(self.folder / "single.npy", numpy.zeros((1, 4, 5, 3), "<f4"))
        self.refuses([*words, "single.npy"], 2, "grad-o dtype = float32: must be float64 as q is")
        self.refuses([*words, "missing.npy"], 3, "missing.npy")
        self.refuses([*words[:-2], "o.npy", "--grad-o", "grad_o.npy"], 2, "a file of its own")


class Exact(CommandTest):
    def row(self, *words):
        files = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--o", "o.npy", "--force"]
        text = self.succeed("attend", *files, "--kernel", "exact", "--format", "json", *words)
        return json.loads(text)["rows"][0]

    def save(self, **arrays):
        for name, array in arrays.items():
            numpy.save(self.folder / f"{name}.npy", numpy.array(array, "<f8")[None, None])

    def test_a_tie_is_rounded_to_even_and_said_to_be_decided(self):
        for least, right in ((1, 1.0), (1 + 2**-52, 1 + 2**-51)):
            self.save(q=[[0]], k=[[1], [2]], v=[[least], [least + 2**-52]])
            row = self.row()
            self.assertEqual((row["status"], row["undecided"]), ("ok", 0))
            self.assertEqual(numpy.load(self.folder / "o.npy").item(), right)

    def test_a_weight_of_exp_minus_5000_decides_a_tie(self):
        for third, right in ((2, 1 + 2**-52), (0, 1.0)):
            self.save(q=[[1]], k=[[0], [0], [-5000]], v=[[1], [1 + 2**-52], [third]])
            self.assertEqual(self.row("--softmax-scale", "1")["status"], "ok")
            self.assertEqual(numpy.load(self.folder / "o.npy").item(), right)

    def test_what_stays_in_doubt_is_undecided_and_no_number(self):
        # Two equal queries whose gradients cancel: dK is zero, which no ball can show.
        self.save(
            q=[[1, 0.5]] * 2,
            k=[[1, 0], [0.25, 2]],
            v=[[1], [3]],
            grad_o=[[1], [-1]],
        )
        words = ["--grad-o", "grad_o.npy", "--grad-k", "grad_k.npy", "--precision-cap", "512"]
        row = self.row(*words)
        self.assertEqual(row["status"], "undecided")
        self.assertEqual(row["undecided"], 4)
        self.assertRegex(row["reason"], "4 elements are in doubt at the precision cap")
        self.assertTrue(numpy.isnan(numpy.load(self.folder / "grad_k.npy")).all())

    def test_the_precision_cap_has_a_range(self):
        self.save(q=[[1]], k=[[1]], v=[[1]])
        words = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--o", "o.npy"]
        for bad in ("127", "1048577", "x"):
            self.refuses(["attend", *words, "--precision-cap", bad], 2, f"precision-cap = {bad}")


if __name__ == "__main__":
    unittest.main()
