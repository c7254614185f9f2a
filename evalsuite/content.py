"""Parts of a message that are not text: pictures, recordings, files."""

from evalsuite.samples.content import audio, file, image

__all__ = ["audio", "file", "image"]
