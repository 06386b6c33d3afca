"""`rldp collect`: a form and a server for reports; `rldp invite`, `rldp export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rldp.cli import arguments, show
from rldp.cli.messages import warning
from rldp.cli.targets import check_target
from rldp.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from rldp.collect.serving import Collector, Options

_KINDS = (".csv", ".tsv", ".gz", ".parquet", ".pq", ".arrow", ".feather")
_PACKAGES = ("httptools", "starlette", "uvicorn", "uvloop")

Store = Annotated[
    str, typer.Argument(metavar="STORE", help="SQLite file of a collection, or postgresql://...")
]


def collect(
    public: Annotated[
        str,
        typer.Argument(
            metavar="PUBLIC", help="A public protocol file; with --status also its store."
        ),
    ],
    store: Annotated[
        str | None,
        typer.Option(
            metavar="STORE", help="File or postgresql://... (default: beside the protocol)."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen (default: this machine only).")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Port; 0 for any free one.")] = 8080,
    tls: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="CERT KEY", help="Files of the certificate and of its key."),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The address that people see; goes with --host."),
    ] = None,
    questions: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE ...", help="Texts of the form, .toml for a language or .xlsx."),
    ] = None,
    earlier: Annotated[
        list[str] | None,
        typer.Option(metavar="STORE ...", help="Stores of earlier protocols that stay open."),
    ] = None,
    invited: Annotated[
        bool, typer.Option("--invited", help="Take no report without an invitation from now on.")
    ] = False,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="M", help="The goal: half the width of the intervals (first 0.01), kept."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The operator's secret, made if there is none (default: a new one each time).",
        ),
    ] = None,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Make the store, and do not serve.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Say how far a collection is, and do not serve.")
    ] = False,
    json: arguments.Json = False,
) -> None:
    """Serve a form that randomises answers on each person's own device, and take the reports.

    [dim]Example:  rldp collect race.public.rldp.json --questions race.toml[/dim]
    """
    if status:
        _status(_store_of(public, store), json=json)
        return
    settings = {"invited": "yes"} if invited else {}
    if margin is not None:
        settings["margin"] = str(_checked_margin(margin))
    where = store or _default_store(public)
    if prepare:
        _prepare(public, where, settings | ({"origin": origin} if origin else {}), json=json)
        return
    options = {
        "store": where,
        "host": host,
        "port": port,
        "tls": tls,
        "origin": origin,
        "questions": tuple(questions or ()),
        "token_file": token_file,
        "earlier": tuple(earlier or ()),
        "settings": settings,
    }
    server = _collector(public, options)
    fingerprint = server.collection.protocol.fingerprint
    if json:
        addresses = {"form": server.form, "code": server.code, "operator": server.operator}
        kept = {"store": server.collection.where, "fingerprint": fingerprint}
        show.as_json(addresses | kept | {"new_token_file": server.has_made_token})
    else:
        show.note(f"protocol:  {fingerprint}   (the form shows this fingerprint)")
        show.note(f"form:      {server.form}   (its code has the SHA-256 {server.code})")
        show.note(f"operator:  {server.operator}   (keep this address to yourself)")
        if server.has_made_token:
            show.note(f"token:     {token_file}   (made; only you can read it)")
        show.note(f"store:     {server.collection.where}   (Ctrl-C to end)")
    _warn_if_open(is_invited=server.collection.is_invited)
    server.run()


def _collector(public: str, options: dict[str, Any]) -> Collector:
    try:
        from rldp.collect.serving import Collector, Options
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise MissingExtraError("This needs its extra: pip install 'rldp[collect]'.") from None
    chosen: Options = Options(**options)
    return Collector(Path(public), chosen)


def _default_store(public: str) -> str:
    from rldp.collect.opening import default_store

    return default_store(Path(public))


def _store_of(public: str, store: str | None) -> str:
    """The store that is meant: the one that is named, or that of a protocol file."""
    from rldp.collect.opening import default_store, is_store

    beside = default_store(Path(public))
    return store or (beside if not is_store(public) and is_store(beside) else public)


def _checked_margin(margin: float) -> float:
    from rldp.checks import checked_share

    return checked_share(margin, "margin", 0.01)


def _warn_if_open(*, is_invited: bool) -> None:
    if not is_invited:
        warning(
            "OPEN SURVEY: anyone who has the address can answer, and as often as they like; "
            "rldp invite makes single-use links."
        )


def _prepare(public: str, where: str, settings: dict[str, str], *, json: bool) -> None:
    from rldp.collect.opening import shown, start_collection

    collection = start_collection(Path(public), where, settings)
    fingerprint, is_invited = collection.protocol.fingerprint, collection.is_invited
    collection.store.close()
    if json:
        show.as_json({"store": shown(where), "fingerprint": fingerprint, "invited": is_invited})
        return
    show.note(f"Store: {shown(where)}")
    show.note(f"Protocol: {fingerprint}")
    _warn_if_open(is_invited=is_invited)


def _status(where: str, *, json: bool) -> None:
    from rldp.collect.figures import Figures
    from rldp.collect.opening import open_collection

    collection = open_collection(where)
    try:
        told = Figures(collection).now()
    finally:
        collection.store.close()
    if json:
        show.as_json(told)
        return
    show.note(f"{told['store']}: {told['reports']:,} reports of {told['protocol']}")
    show.note(f"protocol {told['fingerprint']}")
    if told["open"]:
        show.note("open: anyone can answer, and as often as they like")
    else:
        show.note(f"{told['spent']:,} of {told['invitations']:,} invitations are used")
    _show_progress(told)


def _show_progress(told: dict[str, Any]) -> None:
    points = f"± {100 * told['margin']:g} percentage points in every cell"
    if told["needed"] is None:
        show.note(f"the reports do not identify every cell: no number of them gives {points}")
    else:
        show.note(f"{told['needed']:,} reports give {points}, if the truth is as it seems now")
    if told["estimates"] is None:
        show.note(told["note"])
        return
    show.note(f"now ± {100 * told['widest']:.2g} or better; rldp estimate shows the cells")
    show.note(f"fit: p = {told['fit']:.2g}; suspected forgeries: at least {told['suspected']:,}")


def invite(
    store: Store,
    n: Annotated[int, typer.Option("-n", metavar="N", help="How many.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="LINKS", help="CSV file to make.")
    ],
    origin: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of the form (default: as it was started)."),
    ] = None,
    json: arguments.Json = False,
) -> None:
    """Make single-use links to the form of a collection, which is then closed to others.

    [dim]Example:  rldp invite race.sqlite -n 5000 -o links.csv[/dim]
    """
    check_target(output, "--output", force=None, kinds=(".csv",), loss="people may have its links")
    if n < 1:
        raise ParameterError(f"Expected -n of 1 or more, got {n}.")
    from rldp.collect.invitations import invite as make
    from rldp.collect.opening import open_collection

    collection = open_collection(store)
    try:
        base = make(collection, n, output, origin)
    finally:
        collection.store.close()
    if json:
        show.as_json({"invitations": n, "origin": base, "output": str(output)})
        return
    show.note(f"{n:,} links to {base}: {output}")
    show.note("Each is a secret that lets one person answer once; the store has only hashes.")
    show.note("Without an invitation no report is taken from now on.")


def export(
    store: Store,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="REPORTS", help="CSV, Parquet or Arrow file.")
    ],
    force: arguments.Force = False,
    json: arguments.Json = False,
) -> None:
    """Write the reports of a collection to a file, in random order.

    [dim]Example:  rldp export race.sqlite -o reports.parquet[/dim]
    """
    check_target(output, "--output", force=force, kinds=_KINDS)
    from rldp.collect.exporting import export as write
    from rldp.collect.opening import open_collection

    collection = open_collection(store)
    try:
        n = write(collection, output)
    finally:
        collection.store.close()
    if json:
        show.as_json({"reports": n, "output": str(output)})
    else:
        show.note(f"{n:,} reports in random order: {output}")
