"""attend on recorded activations of a language model, against softmax(q kᵀ / sqrt(d)) v in NumPy."""

import os
import pathlib
import unittest

import numpy

from command import CommandTest

ACTIVATIONS = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "activations"


class Activations(CommandTest):
    def attend(self, layer, *words):
        stem = ACTIVATIONS / f"minilm_layer{layer}"
        given = [word for name in "qkv" for word in (f"--{name}", f"{stem}_{name}.npy")]
        outputs = ["--o", "o.npy", "--lse-out", "lse.npy", "--force"]
        self.succeed("attend", *given, *outputs, *words)
        inputs = [numpy.load(f"{stem}_{name}.npy") for name in "qkv"]
        return inputs, *(numpy.load(self.folder / name) for name in ("o.npy", "lse.npy"))

    def check(self, layer, *words, causal=False):
        (q, k, v), o, lse = self.attend(layer, *words)
        self.assertEqual((o.dtype, o.shape), (q.dtype, q.shape))
        wide = [array.astype("<f8") for array in (q, k, v)]
        logits = wide[0] @ wide[1].swapaxes(2, 3) / numpy.sqrt(q.shape[3])
        if causal:
            logits[..., numpy.triu(numpy.ones(logits.shape[2:], bool), 1)] = -numpy.inf
        top = logits.max(axis=3, keepdims=True)
        weights = numpy.exp(logits - top)
        total = weights.sum(axis=3, keepdims=True)
        expected = (weights @ wide[2] / total).astype(q.dtype)
        # Both round fp64 once, so that they differ by at most the last place.
        numpy.testing.assert_array_max_ulp(o, expected, maxulp=1)
        expected_lse = (top + numpy.log(total)).astype(lse.dtype)
        numpy.testing.assert_array_max_ulp(lse, expected_lse, maxulp=1)

    def test_every_recorded_layer(self):
        for layer in (0, 2, 5):
            self.check(layer)

    def test_causal(self):
        self.check(0, "--mask", "causal", causal=True)

    def test_verify_passes_on_a_copy_elsewhere(self):
        for name in "qkv":
            os.symlink(
                ACTIVATIONS / f"minilm_layer2_{name}.npy", f"{self.folder}/minilm_layer2_{name}.npy"
            )
        words = ["verify", "--problem", "minilm-layer2", "--activations", ".", "--quiet"]
        self.assertIn(" 0 failed", self.succeed(*words))


if __name__ == "__main__":
    unittest.main()
