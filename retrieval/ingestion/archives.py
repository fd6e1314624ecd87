"""Zip files are looked at before anything in them is unpacked."""

from __future__ import annotations

import os
import struct
import zipfile
from typing import BinaryIO
from xml.sax import SAXException
from xml.sax.handler import ContentHandler

from retrieval.errors import UnreadableFile

MOST_MEMBERS = 5_000
MOST_UNPACKED = 150_000_000
MOST_XML = 60_000_000  # a tree of more than this does not fit into the child's memory
_DIRECTORY_LIMIT = 2_000_000  # bytes of the list of members, which is read whole
_END_RECORD = struct.Struct("<4s4H2LH")
_END_MARK = b"PK\x05\x06"
_FARTHEST_END = _END_RECORD.size + 65_535

TOO_LARGE = (
    "The file is an archive that would unpack to more than {} MB. Split the document, or leave out its pictures."
)


def open_archive(file: BinaryIO) -> zipfile.ZipFile:
    """Raises UnreadableFile for what is damaged, or would unpack to too much."""
    _check_directory(file)
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, struct.error, OSError) as error:
        raise UnreadableFile("The file is a damaged archive. Save it again and upload it anew.") from error
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise _too_many()
    if sum(member.file_size for member in members) > MOST_UNPACKED:
        raise UnreadableFile(TOO_LARGE.format(MOST_UNPACKED // 1_000_000))
    if sum(member.file_size for member in members if is_xml(member.filename)) > MOST_XML:
        raise UnreadableFile("The document holds more text than can be read at once. Split it.")
    return archive


def refuse_entities(archive: zipfile.ZipFile) -> None:
    """Raises UnreadableFile if any XML part declares a document type, with which entities begin."""
    from defusedxml import DefusedXmlException, sax  # type: ignore[import-untyped]  # for DOCX only, and not light

    for member in archive.infolist():
        if not is_xml(member.filename):
            continue
        try:
            with archive.open(member) as part:
                sax.parse(part, ContentHandler(), forbid_dtd=True)
        except DefusedXmlException as error:
            raise UnreadableFile("The document declares XML entities, which no Word document needs.") from error
        except (SAXException, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
            raise UnreadableFile("The document is damaged. Save it again and upload it anew.") from error


def is_xml(name: str) -> bool:
    return name.lower().endswith((".xml", ".rels"))


def _check_directory(file: BinaryIO) -> None:
    """What the end of the file says of its list of members, before that list is read."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _FARTHEST_END, 0))
    tail = file.read(_FARTHEST_END)
    at = tail.rfind(_END_MARK)
    file.seek(0)
    if at < 0 or len(tail) - at < _END_RECORD.size:
        raise UnreadableFile("The file is a damaged archive. Save it again and upload it anew.")
    _, _, _, _, members, directory, _, _ = _END_RECORD.unpack_from(tail, at)
    if members > MOST_MEMBERS or directory > _DIRECTORY_LIMIT:
        raise _too_many()


def _too_many() -> UnreadableFile:
    return UnreadableFile(f"The file is an archive of more than {MOST_MEMBERS:,} parts, which no document needs.")
