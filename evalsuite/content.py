"""Make parts of a message that are not text, in the OpenAI content format: pictures, recordings, files."""

import mimetypes
from base64 import b64encode
from pathlib import Path
from typing import Any

from evalsuite.core.errors import DatasetError, SettingsError

__all__ = ["audio", "file", "image"]

MessagePart = dict[str, Any]
Source = str | Path | bytes  # A file or its bytes; for `image`, also a URL that begins with http or data.
MAGIC = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
SOUNDS = {".wav": "wav", ".mp3": "mp3"}


def image(source: Source, *, detail: str = "auto") -> MessagePart:
    """Make a part of a message from a picture: PNG, JPEG, GIF or WebP.

    Put the part into a message's list of parts: `Message("user", parts=["What is this?", image("cat.png")])`.

    Args:
        source: a file, bytes, or a URL from which the model's server downloads the picture.
        detail: the resolution at which the model sees the picture: `low`, `high` or `auto`.

    Raises:
        DatasetError: the file cannot be read.
        SettingsError: the data are not a picture of a known kind.
    """
    if isinstance(source, str) and source.startswith(("http://", "https://", "data:")):
        url = source
    else:
        content = _read_source_bytes(source)
        kind = next((kind for magic, kind in MAGIC.items() if content.startswith(magic)), None)
        if kind is None:
            raise SettingsError(f"image({_describe_source(source)}): not a PNG, JPEG, GIF or WebP picture")
        url = _make_data_url(kind, content)
    return {"type": "image_url", "image_url": {"url": url, "detail": detail}}


def audio(source: Source, *, format: str | None = None) -> MessagePart:  # noqa: A002 - the API's own word
    """Make a part of a message from a recording: WAV or MP3.

    Args:
        source: a file or bytes.
        format: `wav` or `mp3`; by default taken from the file's name.

    Raises:
        DatasetError: the file cannot be read.
        SettingsError: the format is unknown.
    """
    chosen = format or ("" if isinstance(source, bytes) else SOUNDS.get(Path(source).suffix.lower(), ""))
    if chosen not in SOUNDS.values():
        raise SettingsError(
            f"audio({_describe_source(source)}): a recording is wav or mp3; give its format with format="
        )
    data = b64encode(_read_source_bytes(source)).decode("ascii")
    return {"type": "input_audio", "input_audio": {"data": data, "format": chosen}}


def file(source: Source, *, name: str | None = None) -> MessagePart:
    """Make a part of a message from a file, for example a PDF.

    Args:
        source: a file or bytes.
        name: the name that the model sees; by default the file's own name.

    Raises:
        DatasetError: the file cannot be read.
        SettingsError: bytes were given without a name.
    """
    if name is None and isinstance(source, bytes):
        raise SettingsError("file(bytes): name it with name=, because the name's extension tells the kind of file")
    shown = name or Path(str(source)).name
    kind = mimetypes.guess_type(shown)[0] or "application/octet-stream"
    return {"type": "file", "file": {"filename": shown, "file_data": _make_data_url(kind, _read_source_bytes(source))}}


def _make_data_url(mime_type: str, content: bytes) -> str:
    return f"data:{mime_type};base64,{b64encode(content).decode('ascii')}"


def _read_source_bytes(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise DatasetError(source, "", str(error.strerror), "a file that can be read") from error


def _describe_source(source: Source) -> str:
    return f"{len(source)} bytes" if isinstance(source, bytes) else repr(str(source))
