"""`flashbound attend` against attention written down in NumPy, straight from the definition."""

import json
import math
import unittest

import numpy

from command import CommandTest, npy_bytes


def alibi_slopes(heads):
    def powers(count):
        return [2.0 ** (-8.0 * (h + 1) / count) for h in range(count)]

    below = 2 ** int(math.log2(heads))
    return powers(below) + powers(2 * below)[::2][: heads - below]


def attention(q, k, v, visible=None, scale=None, softcap=0.0, slopes=None, sink=None):
    """O and lse in fp64, one row at a time. visible(i, j) says whether query i sees key j."""
    q, k, v = (x.astype("<f8") for x in (q, k, v))
    batch, heads, rows, head_dim = q.shape
    keys = k.shape[2]
    group = heads // k.shape[1]
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    o = numpy.zeros((batch, heads, rows, v.shape[3]))
    lse = numpy.full((batch, heads, rows), -numpy.inf)
    for b, h, i in numpy.ndindex(batch, heads, rows):
        seen = [j for j in range(keys) if visible is None or visible(i, j)]
        logits = k[b, h // group, seen] @ q[b, h, i] * scale
        if softcap:
            logits = softcap * numpy.tanh(logits / softcap)
        if slopes is not None:
            logits -= slopes[h] * numpy.abs(i + keys - rows - numpy.array(seen, "<f8"))
        everything = logits if sink is None else numpy.append(logits, sink[h])
        if everything.size == 0:
            continue
        top = everything.max()
        total = numpy.exp(everything - top).sum()
        lse[b, h, i] = top + numpy.log(total)
        o[b, h, i] = numpy.exp(logits - top) / total @ v[b, h // group, seen]
    return o, lse


class Attend(CommandTest):
    def attend(self, *words):
        given = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy"]
        self.succeed("attend", *given, "--o", "o.npy", "--lse-out", "lse.npy", "--force", *words)
        return tuple(numpy.load(self.folder / name) for name in ("o.npy", "lse.npy"))

    def agrees(self, words, expected):
        o, lse = self.attend(*words)
        lse = lse.reshape(expected[1].shape)
        numpy.testing.assert_allclose(o, expected[0], rtol=1e-12, atol=1e-13)
        numpy.testing.assert_allclose(lse, expected[1], rtol=1e-12, atol=1e-13)

    def inputs(self, **shapes):
        return self.save_inputs(**{"dtype": "<f8", **shapes})[0]

    def test_plain(self):
        self.agrees([], attention(*self.inputs()))

    def test_options_may_repeat_the_shapes(self):
        q, k, v = self.inputs()
        words = "--batch 1 --num-heads 2 --seqlen-q 5 --seqlen-k 7 --head-dim 4 --head-dim-v 3"
        self.agrees(words.split(), attention(q, k, v))

    def test_causal_faces_the_last_key(self):
        for rows, keys in ((5, 7), (7, 5), (4, 4)):
            arrays = self.inputs(q=(2, 2, rows, 4), k=(2, 2, keys, 4), v=(2, 2, keys, 3))
            expected = attention(*arrays, visible=lambda i, j: j <= i + keys - rows)
            self.agrees(["--mask", "causal"], expected)

    def test_a_window_includes_both_of_its_ends(self):
        arrays = self.inputs()
        expected = attention(*arrays, visible=lambda i, j: i + 2 - 1 <= j <= i + 2 + 2)
        words = ["--mask", "window", "--window-left", "1", "--window-right", "2"]
        self.agrees(words, expected)
        self.agrees(words[2:], expected)

    def test_a_causal_window(self):
        arrays = self.inputs()
        expected = attention(*arrays, visible=lambda i, j: i + 2 - 3 <= j <= i + 2)
        self.agrees(["--mask", "causal", "--window-left", "3"], expected)

    def test_grouped_heads(self):
        arrays = self.inputs(q=(1, 6, 5, 4), k=(1, 2, 7, 4), v=(1, 2, 7, 3))
        self.agrees([], attention(*arrays))

    def test_score_modifiers(self):
        arrays = self.inputs(q=(1, 3, 5, 4), k=(1, 3, 7, 4), v=(1, 3, 7, 3))
        self.agrees(["--softmax-scale", "-0.75"], attention(*arrays, scale=-0.75))
        self.agrees(["--softcap", "1.5"], attention(*arrays, softcap=1.5))
        self.agrees(["--alibi"], attention(*arrays, slopes=alibi_slopes(3)))
        self.agrees(["--sink", "0.5"], attention(*arrays, sink=[0.5] * 3))
        self.agrees(["--sink", "0.5,-1,2e0"], attention(*arrays, sink=[0.5, -1, 2]))
        words = ["--alibi", "--sink", "1", "--softcap", "2", "--mask", "causal"]
        expected = attention(
            *arrays,
            visible=lambda i, j: j <= i + 2,
            softcap=2,
            slopes=alibi_slopes(3),
            sink=[1] * 3,
        )
        self.agrees(words, expected)

    def test_a_block_mask_of_any_integer_type(self):
        arrays = self.inputs()
        cells = numpy.array([[1, 0, 0], [0, 1, 0]])
        expected = attention(*arrays, visible=lambda i, j: cells[i // 4, j // 3] != 0)
        for dtype in (bool, "|u1", "<i4", "<i8"):
            self.save("cells.npy", numpy.asfortranarray(cells.astype(dtype)))
            words = ["--block-mask", "cells.npy", "--block-mask-q", "4", "--block-mask-kv", "3"]
            self.agrees(words, expected)

    def test_packed_sequences(self):
        q, k, v = self.inputs(q=(1, 2, 9, 4), k=(1, 2, 11, 4), v=(1, 2, 11, 3))
        cu_q, cu_k = [0, 3, 3, 9], [0, 4, 6, 11]
        parts = [
            attention(
                q[:, :, a:b], k[:, :, c:d], v[:, :, c:d], lambda i, j, s=d - c - b + a: j <= i + s
            )
            for a, b, c, d in zip(cu_q, cu_q[1:], cu_k, cu_k[1:])
        ]
        expected = tuple(numpy.concatenate(each, axis=2) for each in zip(*parts))
        lists = ["--cu-seqlens-q", "0,3,3,9", "--cu-seqlens-kv", "0,4,6,11", "--mask", "causal"]
        self.agrees(lists, expected)
        self.save("cu_q.npy", numpy.array(cu_q, "<i4"))
        self.save("cu_k.npy", numpy.array(cu_k, "<i8"))
        files = ["--cu-seqlens-q", "cu_q.npy", "--cu-seqlens-kv", "cu_k.npy", "--mask", "causal"]
        self.agrees(files, expected)

    def test_one_key_gives_its_value_exactly(self):
        _, _, v = self.inputs(q=(1, 1, 3, 4), k=(1, 1, 1, 4), v=(1, 1, 1, 3))
        o, _ = self.attend()
        numpy.testing.assert_array_equal(o, numpy.broadcast_to(v, o.shape))


class Legal(CommandTest):
    """Input that is unusual, and right."""

    def outputs(self, q, k, v, *words):
        for name, array in (("q", q), ("k", k), ("v", v)):
            self.write(f"{name}.npy", npy_bytes(numpy.asarray(array)))
        given = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--o", "o.npy", "--force"]
        self.succeed("attend", *given, "--lse-out", "lse.npy", *words)
        return tuple(numpy.load(self.folder / name) for name in ("o.npy", "lse.npy"))

    def test_every_empty_axis(self):
        q, k, v = (numpy.ones(shape) for shape in ((2, 2, 5, 4), (2, 2, 7, 4), (2, 2, 7, 3)))
        o, lse = self.outputs(q[:0], k[:0], v[:0])
        self.assertEqual((o.shape, lse.size), ((0, 2, 5, 3), 0))
        o, lse = self.outputs(q[:, :, :0], k, v)
        self.assertEqual((o.shape, lse.size), ((2, 2, 0, 3), 0))
        o, lse = self.outputs(q, k[:, :, :0], v[:, :, :0])
        numpy.testing.assert_array_equal(o, numpy.zeros((2, 2, 5, 3)))
        self.assertTrue((lse == -numpy.inf).all())

    def test_no_rows_of_very_many_heads_take_no_time(self):
        q = numpy.zeros((2**24, 2**16, 0, 4), "<f4")
        o, lse = self.outputs(q, q, q)
        self.assertEqual((o.shape, lse.size), (q.shape, 0))

    def test_nan_reaches_those_who_see_it_and_nobody_else(self):
        q, k, v = numpy.zeros((1, 1, 4, 2)), numpy.zeros((1, 1, 4, 2)), numpy.ones((1, 1, 4, 2))
        k[0, 0, 2] = numpy.nan
        v[0, 0, 3, 1] = numpy.nan
        o, lse = self.outputs(q, k, v, "--mask", "causal")
        numpy.testing.assert_array_equal(numpy.isnan(o[0, 0, :, 0]), [False, False, True, True])
        numpy.testing.assert_array_equal(o[0, 0, :2], 1)
        self.assertEqual(numpy.isnan(lse).sum(), 2)

    def test_rows_without_keys(self):
        o, lse = self.outputs(*(numpy.ones((1, 1, n, 2)) for n in (4, 2, 2)), "--mask", "causal")
        numpy.testing.assert_array_equal(o[0, 0, :, 0], [0, 0, 1, 1])
        self.assertEqual(numpy.isneginf(lse).sum(), 2)

    def test_rows_without_keys_are_counted_by_the_mask_and_not_by_lse(self):
        self.save("q.npy", numpy.ones((1, 2, 4, 2)))
        for name in "kv":
            self.save(f"{name}.npy", numpy.ones((1, 1, 2, 2)))
        words = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--o", "o.npy", "--force"]

        def counted(*more):
            out = self.succeed("attend", *words, "--format", "json", *more)
            return json.loads(out)["rows"][0]["rows_without_keys"]

        self.assertEqual(counted("--mask", "causal"), 4)
        self.assertEqual(counted("--mask", "causal", "--sink", "0"), 4)
        self.assertEqual(counted(), 0)
        self.save("k.npy", numpy.full((1, 1, 2, 2), -numpy.inf))
        self.assertEqual(counted(), 0)

    def test_every_layout_and_version_of_a_file(self):
        arrays = self.save_inputs()[0]
        plain = self.outputs(*arrays)[0]
        fortran = self.outputs(*(numpy.asfortranarray(x) for x in arrays))[0]
        numpy.testing.assert_array_equal(fortran, plain)
        for version in ((2, 0), (3, 0)):
            for name, array in zip("qkv", arrays):
                self.write(f"{name}.npy", npy_bytes(array, version))
            words = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--o", "o.npy", "--force"]
            self.succeed("attend", *words)
            numpy.testing.assert_array_equal(numpy.load(self.folder / "o.npy"), plain)

    def test_outputs_have_the_width_of_the_inputs(self):
        for dtype, lse_dtype in (("<f2", "<f4"), ("<f4", "<f4"), ("<f8", "<f8")):
            o, lse = self.outputs(*self.save_inputs(dtype=dtype)[0])
            self.assertEqual((o.dtype.str, lse.dtype.str), (dtype, lse_dtype))

    def test_outputs_are_rounded_once_and_to_nearest(self):
        # Two keys of equal weight: O is the mean of their values, exact in fp64 and too wide for
        # the inputs' type. The second value is far smaller, so that halves and more are cut off.
        generator = numpy.random.default_rng(3)
        for dtype, exponents in (("<f2", range(-7, 5)), ("<f4", range(-40, 38))):
            large = [generator.standard_normal(200) * 10.0**e for e in exponents]
            v = numpy.concatenate(large).reshape(1, 1, 1, -1)
            v = numpy.concatenate([v, v * 1e-3], axis=2).astype(dtype)
            for columns in range(0, v.shape[3], 400):
                part = v[..., columns : columns + 400]
                zeros = numpy.zeros((1, 1, 2, 1), dtype)
                o, _ = self.outputs(zeros, zeros, part)
                mean = part.astype("<f8").mean(axis=2).astype(dtype)
                numpy.testing.assert_array_equal(o[0, 0, 0], mean[0, 0])

    def test_large_finite_scores_stay_finite(self):
        q = numpy.full((1, 1, 1, 64), 133120.0, "<f4")
        o, lse = self.outputs(q, q, q)
        numpy.testing.assert_array_equal(o, q)
        self.assertTrue(numpy.isfinite(lse).all())


class Threads(CommandTest):
    def test_the_same_bytes_on_any_number_of_threads(self):
        self.save_inputs((2, 4, 300, 16), (2, 2, 333, 16), (2, 2, 333, 24))
        seen = set()
        for threads in ("1", "2", "3", "64"):
            words = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--mask", "causal", "--force"]
            words += ["--o", "o.npy", "--lse-out", "lse.npy", "--threads", threads]
            out = self.succeed("attend", *words, "--format", "csv")
            seen.add((out, self.files()[self.path("o.npy")], self.files()[self.path("lse.npy")]))
        self.assertEqual(len(seen), 1)

    def path(self, name):
        return (self.folder / name).relative_to(self.folder)


if __name__ == "__main__":
    unittest.main()
