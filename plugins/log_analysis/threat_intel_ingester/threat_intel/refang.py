"""Undoes what authors do to indicators so that they cannot be clicked."""

from __future__ import annotations

import re

_HINTS = re.compile(r"\[|\(|\{|hxx|h__p|meow|\\\.", re.IGNORECASE)
_DOT = re.compile(r"\s?[\[({]\s?(?:\.|dot|d0t)\s?[\])}]\s?|(?<=\w)\[\.|(?<=\w)\.\](?=\w)|(?<=[\w-])\\\.(?=[\w-])", re.IGNORECASE)
_AT = re.compile(r"\s?[\[({]\s?(?:@|at)\s?[\])}]\s?", re.IGNORECASE)
_COLON = re.compile(r"\[:\]|\[:(?=//)")
_SLASHES = re.compile(r"\[://\]|:\[//\]|\[:/\]/")
_SLASH = re.compile(r"\[/\]")
_SCHEME = re.compile(r"\b(?:hxxp|h__p|hXXp|httx|htxp|meow)(s?)(?=\s?:|\[)", re.IGNORECASE)
_FTP = re.compile(r"\b(?:fxp|ftx)(s?)(?=:)", re.IGNORECASE)


def refang(line: str) -> str:
    """The line with defanged indicators as they are meant; a line without any is returned as it is."""
    if not _HINTS.search(line) and "fxp:" not in line and "ftx:" not in line:
        return line
    line = _SCHEME.sub(r"http\1", line)
    line = _FTP.sub(r"ftp\1", line)
    line = _SLASHES.sub("://", line)
    line = _COLON.sub(":", line)
    line = _SLASH.sub("/", line)
    line = _DOT.sub(".", line)
    return _AT.sub("@", line)
