from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING

import pytest

from evalsuite.content import audio, file, image
from evalsuite.core.errors import DatasetError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def test_a_picture_is_sent_as_data_of_its_kind(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(PNG)
    part = image(tmp_path / "cat.png")
    head, _, data = part["image_url"]["url"].partition(",")
    assert (part["type"], head, b64decode(data)) == ("image_url", "data:image/png;base64", PNG)
    assert image(PNG) == part


def test_an_address_is_left_to_the_server() -> None:
    assert image("https://example.org/cat.png", detail="low") == {
        "type": "image_url",
        "image_url": {"url": "https://example.org/cat.png", "detail": "low"},
    }


def test_a_recording_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "hello.wav").write_bytes(b"RIFF")
    assert audio(tmp_path / "hello.wav")["input_audio"] == {"data": "UklGRg==", "format": "wav"}
    assert file(b"%PDF", name="a.pdf")["file"] == {
        "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,JVBERg==",
    }


def test_what_is_no_picture_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="not a PNG"):
        image(b"hello")
    with pytest.raises(SettingsError, match="wav or mp3"):
        audio(b"hello")
    with pytest.raises(SettingsError, match="name it with name="):
        file(b"hello")
    with pytest.raises(DatasetError, match=r"gone\.png: found No such file"):
        image(tmp_path / "gone.png")
