"""The Python and the command line that go on from what the page saved.

A search that ends by the clock may find another protocol the next time. So everything after the
design begins from the protocol file; only the first steps begin from the data.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from rldp.decimals import shortest
from rldp.designing.catalogue import BEST
from rldp.designing.closed_forms import FAMILIES
from rldp.designing.stack import AUTO
from rldp.studio.choices import NONE, Choice
from rldp.studio.uploads import ADULT
from rldp.uncertainty.registry import DEFAULT, set_class
from rldp.utility.goal import CELLS

_AGAIN = "# a search may find another protocol each time; the saved file is the one of the page"
_S_ALONE = "# without --useful, all other columns are U: give it a file with the S columns alone"
REPORTS = "reports.csv"
_NEED_F = ("tradeoff", "promises", "mergings", "protocol")  # steps that make the set F


def protocol_name(choice: Choice) -> str:
    """What the page saves the protocol as."""
    return f"{choice.stem}.rldp.json"


def needs_records(choice: Choice) -> bool:
    """Whether the records to release are in no file yet: bundled counts, or some were dropped."""
    return choice.data == ADULT or choice.missing == "drop"


def records_name(choice: Choice, file: str) -> str:
    """The file to release: the one that was loaded, or what the page saves."""
    return f"{choice.stem}-records.parquet" if needs_records(choice) else file


def snippets(step: str, choice: Choice, file: str) -> dict[str, str]:
    """What one step takes, in both languages."""
    table, chosen_set, name = _table(choice, file), _set(choice), protocol_name(choice)
    needed = [*_imports(choice), ""] if step in _NEED_F else ["import rldp", ""]
    again = [] if choice.protocol in FAMILIES else [_AGAIN]
    load = f"p = rldp.load({name!r})"
    python = {
        "data": [table, "print(table)", "print(table.counts)"],
        "tradeoff": [
            table,
            chosen_set,
            f"for record in rldp.compare(F, [{shortest(choice.epsilon)}]{_wished(choice)}):",
            "    print(record)",
        ],
        "promises": [table, chosen_set, *_priced("promise_prices", choice)],
        "mergings": [table, chosen_set, *_priced("merging_prices", choice)],
        "protocol": [
            table,
            chosen_set,
            *again,
            _design(choice),
            "print(p, p.parameters, p.optimality_gap)",
        ],
        "risk": [load, "print(rldp.risk(p))", "print(rldp.verify(p))"],
        "use": [load, *_use_lines(choice, file)],
    }[step]
    command = {
        "data": [_command("compare", choice, file, _epsilon(choice))],
        "tradeoff": [
            _command(
                "compare",
                choice,
                file,
                f"{_epsilon(choice)}{_wished_options(choice)} --plot tradeoff.png",
            )
        ],
        "promises": [_command("compare", choice, file, _priced_options(choice, "prices"))],
        "mergings": [_command("compare", choice, file, _priced_options(choice, "mergings"))],
        "protocol": [*again, _design_command(choice, file)],
        "risk": [f"rldp verify {_path(name)}", f"rldp audit {_path(name)}"],
        "use": _use_commands(choice, file),
    }[step]
    return {"python": "\n".join([*needed, *python]), "command": "\n".join(command)}


def script(choice: Choice, file: str, fingerprint: str) -> str:
    """From the saved protocol on, as one program."""
    lines = [
        '"""From a saved protocol to released records and estimates."""',
        "",
        "import rldp",
        "",
        f"p = rldp.load({protocol_name(choice)!r})",
        f"assert p.fingerprint == {fingerprint!r}, 'another protocol'",
        "print(p)",
        "print(rldp.verify(p))",
        "print(rldp.risk(p))",
        "",
        *_use_lines(choice, file),
    ]
    return "\n".join(lines) + "\n"


def commands(choice: Choice, file: str) -> str:
    """The same on the command line."""
    name = _path(protocol_name(choice))
    lines = [f"rldp verify {name}", f"rldp audit {name}", *_use_commands(choice, file)]
    return "\n".join(lines) + "\n"


def _use_lines(choice: Choice, file: str) -> list[str]:
    return [
        f"rldp.release_file(p, {records_name(choice, file)!r}, {REPORTS!r}, shuffle=True)",
        f"e = p.estimate({REPORTS!r})",
        "print(e.estimate.round(4), e.low.round(4), e.high.round(4), sep='\\n')",
        "print(rldp.plan(p, margin=0.01).needed)",
    ]


def _use_commands(choice: Choice, file: str) -> list[str]:
    name, records = _path(protocol_name(choice)), _path(records_name(choice, file))
    return [
        f"rldp release {name} {records} -o {REPORTS} --shuffle",
        f"rldp estimate {name} {REPORTS}",
        f"rldp plan {name} --margin 0.01",
    ]


def _table(choice: Choice, file: str) -> str:
    if choice.data == ADULT:
        s, u = (*choice.sensitive, "")[0], (*choice.useful, "")[0]
        return f"table = rldp.datasets.adult(sensitive={s!r}, useful={u!r})"
    missing = "" if choice.missing == "error" else f", missing={choice.missing!r}"
    return (
        f"table = rldp.read_table({file!r}, sensitive={list(choice.sensitive)!r}, "
        f"useful={list(choice.useful)!r}{missing})"
    )


def _imports(choice: Choice) -> list[str]:
    """The package, and the module of a set that is not its own."""
    cls = set_class(choice.kind)
    if cls.__module__.startswith("rldp."):
        return ["import rldp"]
    return ["import rldp", f"from {cls.__module__} import {cls.__name__}"]


def _set(choice: Choice) -> str:
    return f"F = {set_class(choice.kind).code(choice.arguments)}"


def _design(choice: Choice) -> str:
    wish = _wished(choice) if choice.has_goal else ""
    return (
        f"p = rldp.design(F, epsilon={shortest(choice.epsilon)}, protocol={choice.protocol!r}"
        f"{wish})"
    )


def _wishes(choice: Choice) -> dict[str, Any]:
    """Goal and layers, but for those that the best protocol has anyway."""
    if choice.has_goal and choice.protocol != BEST:
        return choice.wishes
    found = {"goal": choice.goal} if choice.goal != CELLS else {}
    return found | {name: level for name, level in choice.layers.items() if level != AUTO}


def _priced(function: str, choice: Choice) -> list[str]:
    wished = _wished(replace(choice, protocol=BEST))
    return [
        f"for price in rldp.{function}(F, {shortest(choice.epsilon)}{wished}):",
        "    print(price)",
    ]


def _priced_options(choice: Choice, option: str) -> str:
    wished = _wished_options(replace(choice, protocol=BEST))
    return f"{_epsilon(choice)} --protocol best{wished} --{option}"


def _wished(choice: Choice) -> str:
    return "".join(f", {name}={_value(value)}" for name, value in _wishes(choice).items())


def _value(value: Any) -> str:
    return shortest(value) if isinstance(value, float) else repr(value)


def _wished_options(choice: Choice) -> str:
    words = {
        name: NONE if value is None else value if isinstance(value, str) else shortest(value)
        for name, value in _wishes(choice).items()
    }
    return "".join(f" --{name.replace('_', '-')} {word}" for name, word in words.items())


def _epsilon(choice: Choice) -> str:
    return f"--epsilon {shortest(choice.epsilon)}"


def _command(name: str, choice: Choice, file: str, rest: str) -> str:
    data = ADULT if choice.data == ADULT else _path(file)
    words = [f"rldp {name} {data}", *(f"--sensitive={_word(s)}" for s in choice.sensitive)]
    words += [f"--useful={_word(u)}" for u in choice.useful]
    words.append(rest)
    words += [] if choice.kind == DEFAULT else [f"--set {choice.kind}"]
    for parameter in set_class(choice.kind).parameters:
        text = parameter.text(choice.arguments[parameter.name])
        words.append(f"--{parameter.name.replace('_', '-')} {_word(text)}")
    if choice.missing != "error":
        words.append(f"--missing {choice.missing}")
    return "\n".join([*([] if choice.useful else [_S_ALONE]), " ".join(words)])


def _design_command(choice: Choice, file: str) -> str:
    rest = f"{_epsilon(choice)} --protocol {choice.protocol}"
    if choice.has_goal:
        rest += _wished_options(choice)
    return _command("design", choice, file, f"{rest} -o {_path(protocol_name(choice))}")


def _word(text: str) -> str:
    return shlex.quote(text)


def _path(name: str) -> str:
    """A file of this folder, also one whose name looks like an option."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
