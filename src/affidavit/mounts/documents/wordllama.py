"""An embedder whose weights come inside a package: averaged word vectors, 256 dimensions, English first.

The files of the package `wordllama` are read as they are; its own code, which may download other models, is not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from affidavit.errors import FailedError
from affidavit.evidence.files import optional

__all__ = ["WordLlamaEmbedder"]

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


class WordLlamaEmbedder:
    """Each text is the mean of the vectors of its tokens. Loaded when it is first used: 0.9 s, 40 MB."""

    name = "wordllama"
    dimensions = 256

    @property
    def version(self) -> str:
        """That of the package, which holds the weights."""
        try:
            return version("wordllama")
        except PackageNotFoundError as error:
            raise _missing() from error

    def embed(self, texts: Sequence[str]) -> bytes:
        """Little-endian float32, 256 for each text."""
        np = optional("numpy", "vectors")
        weights, tokenizer = self._model
        rows = np.zeros((len(texts), self.dimensions), dtype="<f4")
        for place, found in enumerate(tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            if found.ids:
                rows[place] = weights[found.ids].astype(np.float32).mean(axis=0)
        return rows.tobytes()

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        found = find_spec("wordllama")
        if found is None or not found.submodule_search_locations:
            raise _missing()
        folder = Path(found.submodule_search_locations[0])
        arrays, tokenizers = optional("safetensors.numpy", "vectors"), optional("tokenizers", "vectors")
        weights = arrays.load_file(folder / _WEIGHTS)["embedding.weight"]
        return weights, tokenizers.Tokenizer.from_file(str(folder / _TOKENIZER))


def _missing() -> FailedError:
    hint = "pip install 'affidavit[vectors]'"
    return FailedError("extra-missing", "the embedder wordllama is not installed", hint=hint)
