"""``python -m training.clusters.collect FOLDER URL``: copy a node's traces to a bucket.

Ranks name their files, so every node copies what it has and nothing collides.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import fsspec


def collect(folder: Path, url: str) -> list[str]:
    """Copy every file below ``folder`` to the same place below ``url``; return the URLs written.

    Raises what the file system of ``url`` raises, ImportError where its driver is not installed.
    """
    written = []
    for path in sorted(path for path in folder.glob("**/*") if path.is_file()):
        target = f"{url.rstrip('/')}/{path.relative_to(folder).as_posix()}"
        filesystem, place = fsspec.core.url_to_fs(target)
        filesystem.makedirs(place.rpartition("/")[0], exist_ok=True)
        filesystem.put_file(str(path), place)
        written.append(target)
    return written


def main(arguments: list[str] | None = None) -> int:
    """Copy and say so; return 0, or 1 with the traces left where they were."""
    parser = argparse.ArgumentParser(prog="python -m training.clusters.collect", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("url", help="e.g. s3://bucket/runs; needs s3fs for s3://, gcsfs for gs://")
    options = parser.parse_args(arguments)
    try:
        written = collect(options.folder, options.url)
    except Exception as error:  # drivers raise errors of their own, and training is over anyway
        reason = f"{type(error).__name__}: {error}"
        print(f"error: traces stay in {options.folder}, {options.url}: {reason}", file=sys.stderr)
        return 1
    print(f"{len(written)} files copied to {options.url}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
