"""all-MiniLM-L6-v2 as ONNX, written from its weights: BERT (Devlin et al., NAACL 2019), six layers, mean of the tokens.

The same operations in the same order as torch's own export of the model, whose vectors these are, bit for bit.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.core.foreign import raw_bytes
from skg_bench.core.grid import F32

_OPSET = 17


def graph(folder: Path) -> bytes:
    """Token ids `[B, T]` of texts of one length to the mean over their tokens `[B, 384]`.

    Raises ImportError where `onnx` or `safetensors` is missing.
    """
    from onnx import TensorProto, helper, numpy_helper
    from safetensors.numpy import load_file

    config = json.loads(raw_bytes(folder / "config.json"))
    model = _Model(load_file(folder / "model.safetensors"), config)
    model.nodes.append(helper.make_node("ReduceMean", [model.tokens()], ["mean"], axes=[1], keepdims=0))
    made = helper.make_graph(
        model.nodes, "minilm",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["texts", config["hidden_size"]])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in model.constants.items()],
    )  # fmt: skip
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    written: bytes = whole.SerializeToString()
    return written


class _Model:
    """Nodes and constants, added layer by layer; each method returns the name of what it computes."""

    def __init__(self, weights: Mapping[str, F32], config: Mapping[str, Any]) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self._weights, self._config = weights, config

    def tokens(self) -> str:
        """Vectors `[B, T, 384]` of the tokens after the last layer."""
        x = self._embeddings()
        for layer in range(self._config["num_hidden_layers"]):
            x = self._layer(x, f"encoder.layer.{layer}")
        return x

    def _embeddings(self) -> str:
        length = self._node("Slice", self._node("Shape", "tokens"), self._ints("one", 1), self._ints("two", 2))
        places = self._weight("embeddings.position_embeddings.weight")
        place = self._node("Slice", places, self._ints("zero", 0), length, self._ints("axis", 0))
        kind = self._constant("kind", self._weights["embeddings.token_type_embeddings.weight"][0])
        word = self._node("Gather", self._weight("embeddings.word_embeddings.weight"), "tokens", axis=0)
        return self._normed(self._node("Add", self._node("Add", word, kind), place), "embeddings")

    def _layer(self, x: str, name: str) -> str:
        size, heads = self._config["hidden_size"], self._config["num_attention_heads"]
        apart, together = self._ints("apart", 0, 0, heads, size // heads), self._ints("together", 0, 0, size)
        scale = self._number("scale", np.sqrt(1 / np.sqrt(size // heads)))  # on both sides, as torch has it
        query, key, value = (
            self._node("Transpose", self._node("Reshape", self._dense(x, f"{name}.attention.self.{part}"), apart),
                       perm=order)
            for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )  # fmt: skip
        scores = self._node("MatMul", self._node("Mul", query, scale), self._node("Mul", key, scale))
        mixed = self._node("MatMul", self._node("Softmax", scores, axis=-1), value)
        joined = self._node("Reshape", self._node("Transpose", mixed, perm=[0, 2, 1, 3]), together)
        attended = self._dense(joined, f"{name}.attention.output.dense")
        x = self._normed(self._node("Add", attended, x), f"{name}.attention.output")
        inner = self._dense(self._gelu(self._dense(x, f"{name}.intermediate.dense")), f"{name}.output.dense")
        return self._normed(self._node("Add", inner, x), f"{name}.output")

    def _gelu(self, x: str) -> str:
        error = self._node("Erf", self._node("Div", x, self._number("root", np.sqrt(2))))
        twice = self._node("Mul", x, self._node("Add", error, self._number("unit", 1)))
        return self._node("Mul", twice, self._number("half", 0.5))

    def _dense(self, x: str, name: str) -> str:
        product = self._node("MatMul", x, self._constant(f"{name}.matrix", self._weights[f"{name}.weight"].T))
        return self._node("Add", product, self._weight(f"{name}.bias"))

    def _normed(self, x: str, name: str) -> str:
        scale, bias = (self._weight(f"{name}.LayerNorm.{part}") for part in ("weight", "bias"))
        return self._node("LayerNormalization", x, scale, bias, axis=-1, epsilon=self._config["layer_norm_eps"])

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _number(self, name: str, value: float) -> str:
        return self._constant(name, np.array(value, np.float32))

    def _ints(self, name: str, *values: int) -> str:
        return self._constant(name, np.array(values, np.int64))

    def _constant(self, name: str, value: np.ndarray) -> str:
        self.constants[name] = value
        return name
