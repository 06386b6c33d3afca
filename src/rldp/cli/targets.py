"""Files to write, checked before long work is done for them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from rldp.errors import FileError, ParameterError


def check_target(
    path: Path | None,
    option: str,
    *,
    force: bool | None,
    kinds: Iterable[str] = (),
    loss: str = "",
) -> None:
    """Refuse a file that could not be written at the end.

    Args:
        path: the file, None where none is asked for.
        option: that names it.
        force: whether it may replace a file; None where the command never replaces one.
        kinds: the extensions that it may have, any if there are none.
        loss: why a file that is there is needed, if there is something to say about it.
    """
    if path is None:
        return
    folder = path.absolute().parent
    if kinds and path.suffix.lower() not in kinds:
        raise ParameterError(f"Expected {option} as {' or '.join(kinds)}, got {path.name!r}.")
    if path.is_dir():
        raise FileError(f"Cannot write {option} {path}: it is a folder; name a file in it.")
    if not folder.is_dir():
        raise FileError(
            f"Cannot write {option} {path}: there is no folder {folder}; make it first."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"Cannot write {option} {path}: you may not write to the folder {folder}.")
    if path.exists() and not path.is_file():
        raise FileError(f"Cannot write {option} {path}: it is no regular file.")
    if path.exists() and not force:
        known = f"{path} already exists: {loss}. Give" if loss else f"{path} already exists: give"
        way_out = "" if force is None else ", or replace it with --force"
        raise FileError(f"{known} another name to {option}{way_out}.")


def check_picture_target(path: Path | None, *, force: bool) -> None:
    """The same for a picture."""
    if path is not None:
        from rldp.presentation.plots import check_picture

        check_picture(path)
        check_target(path, "--plot", force=force)
