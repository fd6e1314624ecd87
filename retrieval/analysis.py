"""Which terms a text is found by: the same for what is asked and for what is searched."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

import Stemmer

from retrieval.stop_words import STOP_WORDS

LONGEST_TERM = 64
MOST_CHARACTERS = 200_000
MOST_TERMS = 20_000
_LONGEST_COMPOUND = 256
_SLICE = 512

# Thai, Lao, Burmese, Khmer, kana, Han and Hangul: words stand together there, so that pairs of letters are the terms.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Marks are part of a word, though `\w` does not count them: accents, Hebrew and Arabic points, Indic vowel signs.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e4e\u3099\u309a"
_LETTER = rf"[\w{_MARKS}{_UNSPACED}]"
_JOINT = r"[./\\:@&'’\-]"
_TOKEN = re.compile(rf"{_LETTER}+(?:{_JOINT}{{1,3}}{_LETTER}+)*(?:(?:\+\+|#)(?!\w))?")
_RUN = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_ACCENT = re.compile("[\u0300-\u036f]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# From the outside in: paths and addresses, dotted names, snake and kebab, humps and digits.
_CUTS = (
    re.compile(r"[/\\:@&]+"),
    re.compile(r"(?<!\d)\.+|\.+(?!\d)"),
    re.compile(r"['_\-]+"),
    re.compile(
        r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])|(?<=\w)(?=\+\+|#)"
    ),
)
_ANY_CUT = re.compile(r"[./\\:@&'_\-]+")
# A dot stays where it tells numbers apart: 3.5 is not 35, while e-mail is email and max_tokens is maxTokens.
_DROPPED = re.compile(r"(?<!\d)[./\\:@&'_\-]+|[./\\:@&'_\-]+(?!\d)")


def terms(text: str) -> list[str]:
    """The terms of `text` in order, as often as they stand there; bounded, whatever the text is.

    An identifier gives itself, written without its joints, and its parts. Stop words are dropped, unless there is
    nothing else.
    """
    words = _words(_THOUSANDS.sub("", text[:MOST_CHARACTERS]))
    found = list(islice(filter(None, words), MOST_TERMS))
    kept = [word for word in found if word not in STOP_WORDS] or found
    # Made anew each time: it costs less than a word, and two threads may not share one.
    return list(Stemmer.Stemmer("english", 0).stemWords(kept))


def _words(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token.isascii():
            yield from _spaced(token)
        else:
            for run in _RUN.findall(token.replace("’", "'")):
                yield from _unspaced(run) if _IS_UNSPACED.match(run) else _spaced(run)


def _unspaced(run: str) -> Iterator[str]:
    """Each letter with the next one; a letter that stands alone, alone."""
    letters = "".join(_folded(run[at : at + _SLICE]) for at in range(0, len(run), _SLICE))
    if len(letters) == 1:
        yield letters
    for at in range(len(letters) - 1):
        yield letters[at : at + 2]


def _spaced(token: str) -> Iterator[str]:
    """A word, or an identifier whole and in parts."""
    if token.isalpha() and (token[1:].islower() or token.isupper() or len(token) == 1):
        yield _term(token)
        return
    token = token.removesuffix("'s").strip("_'")
    if len(token) > _LONGEST_COMPOUND:
        yield from (_term(part) for part in _ANY_CUT.split(token) if part)
    elif token:
        yield from _whole_and_parts(token)


def _whole_and_parts(token: str) -> Iterator[str]:
    whole = _term(_DROPPED.sub("", token))
    yield whole
    if whole in STOP_WORDS:  # “don't” is no name made of “don” and “t”
        return
    said = {whole}
    parts = [token]
    for cut in _CUTS:
        parts = [part for longer in parts for part in cut.split(longer) if part]
        for part in parts:
            name = _term(_DROPPED.sub("", part))
            if name not in said and (len(name) > 1 or not name.isalpha()) and name.strip("+#"):
                said.add(name)
                yield name


def _term(word: str) -> str:
    return _folded(word[:LONGEST_TERM])[:LONGEST_TERM]


def _folded(word: str) -> str:
    """Without case, accents and the ways of writing one letter; of short text only, since marks are sorted."""
    if word.isascii():
        return word.lower()
    plain = _ACCENT.sub("", unicodedata.normalize("NFKD", word))
    return unicodedata.normalize("NFC", plain).casefold()
