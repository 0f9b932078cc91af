"""Which rank a file belongs to, and how we know."""

from __future__ import annotations

import re
from collections.abc import Iterable

from traceinsight.reading.header import Header
from traceinsight.trace.recording import CommArgs

_FILE_RANK = re.compile(r"(?:^|[^a-z])(?:rank|worker)[-_]?(\d{1,9})(?!\d)", re.IGNORECASE)
_FILE_HOST = re.compile(
    r"^(?!rank|worker)(?P<host>[A-Za-z0-9][\w.-]*)_(?P<pid>\d+)\.\d{13,}\.pt\.trace\.json"
)
_DEFAULT_GROUP = "default_pg"


def find_rank(
    header: Header,
    comm_ranks: Iterable[tuple[int, CommArgs]],
    file_name: str,
    given: int | None,
) -> tuple[int | None, str]:
    """The rank and its source: the user's pattern, ``distributedInfo``, collective arguments or file name."""
    if given is not None:
        return given, "rank-regex"
    if header.rank is not None:
        return header.rank, "distributedInfo"
    from_arguments = _rank_from_arguments(comm_ranks)
    if from_arguments is not None:
        return from_arguments, "collective-arguments"
    in_name = _FILE_RANK.findall(file_name.rsplit("/", 1)[-1])
    if in_name:
        return int(in_name[-1]), "file-name"
    return None, "none"


def _rank_from_arguments(comm_ranks: Iterable[tuple[int, CommArgs]]) -> int | None:
    """The argument counts inside its group: the global rank in the default group only."""
    candidates = set()
    for rank, args in comm_ranks:
        if args.group_ranks and 0 <= rank < len(args.group_ranks):
            candidates.add(args.group_ranks[rank])
        elif args.group_description == _DEFAULT_GROUP and rank >= 0:
            candidates.add(rank)
    return candidates.pop() if len(candidates) == 1 else None


def find_world_size(header: Header, comm_args: Iterable[CommArgs]) -> int | None:
    """From ``distributedInfo``, else the size of the default process group."""
    if header.world_size is not None:
        return header.world_size
    sizes = [len(group.ranks) for group in header.process_groups if group.description == _DEFAULT_GROUP]
    sizes += [args.group_size or 0 for args in comm_args if args.group_description == _DEFAULT_GROUP]
    return max(sizes, default=0) or None


def find_host(header: Header, file_name: str) -> str | None:
    """From the header, else from the name the profiler gives: ``<host>_<pid>.<ns>.pt.trace.json``."""
    if header.host:
        return header.host
    found = _FILE_HOST.match(file_name.rsplit("/", 1)[-1])
    return found["host"] if found else None
