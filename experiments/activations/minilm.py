"""The encoder of all-MiniLM-L6-v2 in NumPy: weights, tokens, hidden states. All arithmetic fp64."""

import json
import math
import re
import struct

import numpy as np

HEADS = 12
HEAD_DIM = 32
LAYERS = 6
MAX_SEQLEN = 512
LAYER_NORM_EPSILON = 1e-12

_erf = np.vectorize(math.erf, otypes=[np.float64])


def read_safetensors(path):
    """Reads every F32 tensor of a safetensors file as fp64, {name: array}.

    The file is a little-endian 64-bit header length, a JSON header, and the raw tensors.
    """
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else len(data)
    if 8 + length > len(data):
        raise ValueError(f"{path}: header of {length} bytes, but the file has {len(data)}")
    header = json.loads(data[8 : 8 + length])
    tensors = memoryview(data)[8 + length :]
    return {
        name: _tensor(path, name, entry, tensors)
        for name, entry in header.items()
        # position_ids, the only integers, are 0, 1, 2, ...
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


def _tensor(path, name, entry, tensors):
    begin, end = entry["data_offsets"]
    size = 4 * math.prod(entry["shape"])
    if not (0 <= begin <= end <= len(tensors) and end - begin == size):
        raise ValueError(
            f"{path}: {name} has data_offsets [{begin}, {end}], "
            f"allowed are {size} bytes within 0..{len(tensors)}"
        )
    values = np.frombuffer(tensors[begin:end], dtype="<f4")
    return values.reshape(entry["shape"]).astype(np.float64)


def read_vocabulary(path):
    """Reads a WordPiece vocabulary, one token a line, {token: id}."""
    with open(path, encoding="utf-8") as file:
        return {line.rstrip("\n"): number for number, line in enumerate(file)}


def tokenize(text, vocabulary):
    """Splits ASCII text into the WordPiece tokens of an uncased vocabulary.

    Words are lower-cased, each punctuation mark is a word, and a word becomes the longest pieces
    that the vocabulary has, from the left.
    """
    if not text.isascii():
        # Accents and other scripts would need rules that English texts never use.
        odd = next(character for character in text if not character.isascii())
        raise ValueError(f"text has {odd!r}, allowed are ASCII characters")
    words = re.findall(r"[a-z0-9]+|[!-/:-@\[-`{-~]", text.lower())
    return [piece for word in words for piece in _pieces(word, vocabulary)]


def _pieces(word, vocabulary):
    pieces = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def gelu(x):
    """x times the standard normal's distribution function, by the error function itself."""
    return 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0)))


def softmax(scores):
    """Softmax over the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


class Encoder:
    """A BERT encoder that keeps what each layer's attention sees."""

    def __init__(self, weights):
        self.weights = weights

    def __call__(self, token_ids):
        """Runs token ids (seqlen) without a mask.

        Returns hidden states, a list of LAYERS + 1 arrays (seqlen, hidden), and for each layer
        (q, k, v), arrays (heads, seqlen, head_dim), before any scaling.
        """
        hidden = self._embed(token_ids)
        hidden_states, attention_inputs = [hidden], []
        for layer in range(LAYERS):
            inputs = tuple(
                self._split_heads(
                    self._linear(f"encoder.layer.{layer}.attention.self.{name}", hidden)
                )
                for name in ("query", "key", "value")
            )
            hidden = self._finish_layer(f"encoder.layer.{layer}", hidden, inputs)
            hidden_states.append(hidden)
            attention_inputs.append(inputs)
        return hidden_states, attention_inputs

    def _embed(self, token_ids):
        sums = (
            self.weights["embeddings.word_embeddings.weight"][token_ids]
            + self.weights["embeddings.position_embeddings.weight"][: len(token_ids)]
            # One text, so that every token is of type 0.
            + self.weights["embeddings.token_type_embeddings.weight"][0]
        )
        return self._layer_norm("embeddings.LayerNorm", sums)

    def _finish_layer(self, name, hidden, attention_inputs):
        """Everything of a layer that follows its projections to q, k and v."""
        q, k, v = attention_inputs
        mixed = attention_probabilities(q, k) @ v
        mixed = mixed.transpose(1, 0, 2).reshape(hidden.shape)
        attended = self._linear(f"{name}.attention.output.dense", mixed)
        hidden = self._layer_norm(f"{name}.attention.output.LayerNorm", hidden + attended)
        inner = gelu(self._linear(f"{name}.intermediate.dense", hidden))
        outer = self._linear(f"{name}.output.dense", inner)
        return self._layer_norm(f"{name}.output.LayerNorm", hidden + outer)

    def _linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _layer_norm(self, name, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        normal = centred / np.sqrt(variance + LAYER_NORM_EPSILON)
        return normal * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    @staticmethod
    def _split_heads(x):
        return x.reshape(len(x), HEADS, HEAD_DIM).transpose(1, 0, 2)


def attention_probabilities(q, k):
    """Softmax of q k^T / sqrt(head_dim), (heads, seqlen, seqlen)."""
    return softmax(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]))


def sentence_embedding(hidden):
    """The model's answer: the mean of the last hidden states (seqlen, hidden), of length 1."""
    mean = hidden.mean(axis=0)
    return mean / np.linalg.norm(mean)
