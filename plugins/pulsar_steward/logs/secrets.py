"""Masks secrets in lines of logs: known secrets, and text that looks like one by its name or its form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pulsar_steward.pulsar.faults import Unusable
from pulsar_steward.pulsar.mask import looks_random, mask_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HIDDEN = "***"

_WORDS = r"passw(?:or)?d|secret|token|credential|authorization|api_?-?key|private_?-?key|auth\w{0,40}params?"
_NAME = rf"[\w.-]{{0,40}}(?:{_WORDS})[\w.-]{{0,40}}"
_NAMED = re.compile(
    rf"(?P<name>(?i:{_NAME})\\?[\"']?\s*[=:]\s*\\?[\"']?)(?:(?i:bearer|basic|token|digest)[\s:]+)?[^\s,;\"'\\)}}\]]+"
)
_BEARER = re.compile(r"(?P<name>\b(?i:bearer|basic)\s+)[^\s,;\"']{8,}")
_OF_URL = re.compile(r"(?P<name>://[^/\s:@]{0,200}:)[^/\s@]{1,200}(?=@)")
_WEB_TOKEN = re.compile(r"(?P<name>)\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}")
_KEY = re.compile(r"(?P<name>-----BEGIN [A-Z ]*PRIVATE KEY-----).*")
_RUN = re.compile(r"[A-Za-z0-9+/=_-]{24,}")


def hider_of(secrets: Iterable[str]) -> Callable[[str], str]:
    """Function that masks secrets in a line.

    Args:
        secrets: Known secrets, such as the token of the cluster's admin API.
    """
    mask = mask_of(*secrets)

    def hide(line: str) -> str:
        try:
            line = mask.text(line)
        except Unusable:
            return HIDDEN
        for pattern in (_KEY, _OF_URL, _NAMED, _BEARER, _WEB_TOKEN):
            line = pattern.sub(rf"\g<name>{HIDDEN}", line)
        return _RUN.sub(lambda run: HIDDEN if looks_random(run[0]) else run[0], line)

    return hide
