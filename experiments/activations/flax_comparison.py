"""Compares the NumPy encoder with the Flax BERT of `transformers`, run in fp64 on the same weights.

Nothing is shared but the files of the model: tokens come from the `tokenizers` package, which reads
tokenizer.json, and hidden states from code that other people wrote.
"""

import importlib.metadata
import os

# Before anything is imported that reads them: no look-ups outside, no accelerator.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import jax
import numpy as np
import tokenizers
import transformers

from minilm import attention_probabilities, sentence_embedding


def compare(model, text, token_ids, hidden_states, attention_inputs):
    """Returns the largest absolute differences between the two runs, as a JSON object.

    Hidden states are of the order of 1, probabilities and the entries of the embedding below 1.
    """
    output = _run(model, token_ids)
    differences = {
        "hidden_states": _largest(hidden_states, output.hidden_states),
        "attention_probabilities": _largest(
            [attention_probabilities(q, k) for q, k, _ in attention_inputs], output.attentions
        ),
        "sentence_embedding": _largest(
            [sentence_embedding(hidden_states[-1])],
            [[sentence_embedding(np.asarray(output.last_hidden_state[0]))]],
        ),
    }
    packages = ("transformers", "flax", "jax", "tokenizers")
    return {
        "against": "transformers FlaxBertModel in fp64, tokens by tokenizers",
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "tokens_equal": _tokens(model, text, len(token_ids)) == list(token_ids),
        "max_abs_difference": differences,
    }


def _run(model, token_ids):
    jax.config.update("jax_enable_x64", True)
    network = transformers.FlaxBertModel.from_pretrained(str(model), dtype=jax.numpy.float64)
    parameters = jax.tree_util.tree_map(lambda x: np.asarray(x, np.float64), network.params)
    ids = np.asarray(token_ids)[None]
    return network(ids, params=parameters, output_hidden_states=True, output_attentions=True)


def _tokens(model, text, seqlen):
    tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(seqlen)
    return tokenizer.encode(text).ids


def _largest(ours, theirs):
    """Largest absolute difference of two lists of arrays, theirs with a leading batch of 1."""
    return max(
        float(np.abs(mine - np.asarray(other)[0]).max()) for mine, other in zip(ours, theirs)
    )
