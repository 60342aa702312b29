"""The control tokens of a GGUF file, read from its header.

    tokens = control_tokens(Path("model.gguf"))

GGUF names every token of the vocabulary with its kind. The header is read in order and only as far
as these lists; what cannot be read gives None and no error, since llama.cpp is what loads the file.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from habitus.models.controls import ControlTokens, structural

_MAGIC = b"GGUF"
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # kinds of tokens
_SIZES: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_INT32, _STRING, _ARRAY = 5, 8, 9  # types of values
_MOST = 4_000_000  # entries of the header, tokens or bytes of a text: more is damage
_TOKENS, _KINDS, _TEMPLATE = (
    "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.chat_template",
)  # fmt: skip


def control_tokens(path: Path) -> ControlTokens | None:
    """The tokens that llama.cpp reads as control tokens in a prompt; None if the file does not tell."""
    try:
        with path.open("rb") as file:
            found = _header(file)
        tokens, kinds, template = found[_TOKENS], found[_KINDS], found.get(_TEMPLATE, b"")
    except (OSError, ValueError, KeyError, struct.error):
        return None
    if not isinstance(template, bytes) or isinstance(tokens, bytes):
        return None
    written = template.decode("utf-8", "replace")
    return ControlTokens(_chosen(tokens, kinds, written))


def _chosen(tokens: Sequence[object], kinds: Sequence[object], template: str) -> list[str]:
    chosen = []
    for token, kind in zip(tokens, kinds, strict=False):
        if kind not in {_UNKNOWN, _CONTROL, _USER_DEFINED} or not isinstance(token, bytes):
            continue
        text = token.decode("utf-8", "replace")
        if kind != _USER_DEFINED or (text and structural(text, template)):
            chosen.append(text)
    return chosen


def _header(file: BinaryIO) -> dict[str, bytes | Sequence[object]]:
    """The values of interest, by key.

    Raises:
        ValueError, struct.error: this is no header, or it is damaged.
    """
    if file.read(4) != _MAGIC:
        raise ValueError("no GGUF")
    _, _, entries = _unpack(file, "<IQQ")
    found: dict[str, bytes | Sequence[object]] = {}
    for _ in range(_bounded(entries)):
        key = _text(file).decode("utf-8", "replace")
        (kind,) = _unpack(file, "<I")
        value = _value(file, kind, keep=key in {_TOKENS, _KINDS, _TEMPLATE})
        if value is not None:
            found[key] = value
        if len(found) == 3:
            break
    return found


def _value(file: BinaryIO, kind: int, *, keep: bool) -> bytes | Sequence[object] | None:
    if kind == _STRING:
        text = _text(file)
        return text if keep else None
    if kind != _ARRAY:
        file.seek(_size(kind), 1)
        return None
    inner, count = _unpack(file, "<IQ")
    _bounded(count)
    if inner == _STRING:
        texts = [_text(file) for _ in range(count)]
        return texts if keep else None
    if inner == _INT32 and keep:
        return _unpack(file, f"<{count}i")
    file.seek(count * _size(inner), 1)
    return None


def _size(kind: int) -> int:
    if kind not in _SIZES:
        raise ValueError("a type that GGUF does not have")
    return _SIZES[kind]


def _text(file: BinaryIO) -> bytes:
    (length,) = _unpack(file, "<Q")
    text = file.read(_bounded(length))
    if len(text) != length:
        raise ValueError("the file ends early")
    return text


def _unpack(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _bounded(count: int) -> int:
    if count > _MOST:
        raise ValueError("more than there can be")
    return count
