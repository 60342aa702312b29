"""Writes the embedded model's weights as a folder that vLLM reads, for ``make test-vllm``.

    python tests/vllm_checkpoint.py FOLDER

Needs transformers, torch, gguf and accelerate, which the environment of vLLM has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from habitus.models.weights import default_weights


def main(folder: Path) -> None:
    """Write model and tokenizer, chat template included, unless they are there."""
    if (folder / "config.json").is_file():
        return
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    weights = default_weights(os.environ)
    place = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    plain = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        **place, dtype=torch.bfloat16, quantization_config=plain
    )
    unfinished = folder.with_name(folder.name + ".part")
    model.save_pretrained(unfinished)
    AutoTokenizer.from_pretrained(**place).save_pretrained(unfinished)
    unfinished.rename(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
