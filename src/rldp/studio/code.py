"""The Python and the command line that do what the page does."""

from __future__ import annotations

import shlex

from rldp.studio.choices import Choice

_SET_CALLS = {
    "chi-square": "rldp.ChiSquareSet(table, alpha={alpha:g})",
    "all": "rldp.AllDistributions(table)",
    "known": "rldp.KnownDistribution(table)",
}


def snippets(step: str, choice: Choice, file: str) -> dict[str, str]:
    """What one step takes, in both languages."""
    table, chosen_set, design = _table(choice, file), _set(choice), _design(choice)
    python = {
        "data": [table, "print(table)", "print(table.counts)"],
        "tradeoff": [
            table,
            chosen_set,
            "for record in rldp.compare(F, epsilons=[0.5, 1, 2, 4]):",
            "    print(record)",
        ],
        "protocol": [table, chosen_set, design, "print(p, p.parameters, p.optimality_gap)"],
        "risk": [table, chosen_set, design, "print(rldp.risk(p))", "print(rldp.verify(p))"],
        "use": [
            f"p = rldp.load({_protocol_file(choice)!r})",
            f"rldp.release_file(p, {_records(choice, file)!r}, 'reports.csv', shuffle=True)",
            "e = p.estimate('reports.csv')",
            "print(e.estimate, e.low, e.high)",
            "print(rldp.plan(p, margin=0.01).needed)",
        ],
    }[step]
    command = {
        "data": [_command("compare", choice, file, "--epsilon 1")],
        "tradeoff": [_command("compare", choice, file, "--epsilon 0.5 1 2 4 --plot tradeoff.png")],
        "protocol": [_design_command(choice, file)],
        "risk": [
            f"rldp audit  {_quoted(_protocol_file(choice))}",
            f"rldp verify {_quoted(_protocol_file(choice))}",
        ],
        "use": _use_commands(choice, file),
    }[step]
    return {"python": "\n".join(["import rldp", "", *python]), "command": "\n".join(command)}


def script(choice: Choice, file: str) -> str:
    """The whole way as one program."""
    lines = [
        '"""From records to a proven protocol, a release and estimates."""',
        "",
        "import rldp",
        "",
        _table(choice, file),
        _set(choice),
        "for record in rldp.compare(F, epsilons=[0.5, 1, 2, 4]):",
        "    print(record)",
        "",
        _design(choice),
        "print(p)",
        "print(p.parameters)",
        "print(rldp.verify(p))",
        "print(rldp.risk(p))",
        f"p.save({_protocol_file(choice)!r})",
        f"p.public().save({_protocol_file(choice).replace('.rldp.json', '.client.json')!r})",
        "",
        *_release_lines(choice, file),
        "print(e.estimate.round(4), e.low.round(4), e.high.round(4), sep='\\n')",
    ]
    return "\n".join(lines) + "\n"


def commands(choice: Choice, file: str) -> str:
    """The whole way on the command line."""
    name = _quoted(_protocol_file(choice))
    lines = [
        _command("compare", choice, file, "--epsilon 0.5 1 2 4"),
        _design_command(choice, file),
        f"rldp verify {name}",
        f"rldp audit {name}",
        *_use_commands(choice, file),
    ]
    return "\n".join(lines) + "\n"


def _release_lines(choice: Choice, file: str) -> list[str]:
    if choice.data == "adult":  # counts only: the people behind them, as codes
        return [
            "import numpy as np",
            "",
            "codes = np.repeat(np.indices(table.counts.shape).reshape(2, -1).T,",
            "                  table.counts.ravel(), axis=0)",
            "e = p.estimate(p.release(codes))",
        ]
    return [
        f"rldp.release_file(p, {file!r}, 'reports.csv', shuffle=True)",
        "e = p.estimate('reports.csv')",
    ]


def _table(choice: Choice, file: str) -> str:
    if choice.data == "adult":
        s, u = (*choice.sensitive, "")[0], (*choice.useful, "")[0]
        return f"table = rldp.datasets.adult(sensitive={s!r}, useful={u!r})"
    missing = "" if choice.missing == "error" else f", missing={choice.missing!r}"
    return (
        f"table = rldp.read_table({file!r}, sensitive={list(choice.sensitive)!r}, "
        f"useful={list(choice.useful)!r}{missing})"
    )


def _set(choice: Choice) -> str:
    return "F = " + _SET_CALLS[choice.kind].format(alpha=choice.alpha)


def _design(choice: Choice) -> str:
    identifiable = ", identifiable=True" if choice.identifiable else ""
    return (
        f"p = rldp.design(F, epsilon={choice.epsilon:g}, protocol={choice.protocol!r}"
        f"{identifiable})"
    )


def _command(name: str, choice: Choice, file: str, rest: str) -> str:
    data = "adult" if choice.data == "adult" else _quoted(file)
    words = [f"rldp {name} {data} --sensitive {' '.join(map(_quoted, choice.sensitive))}"]
    if choice.useful:
        words.append(f"--useful {' '.join(map(_quoted, choice.useful))}")
    words.append(rest)
    if choice.kind == "chi-square":
        words.append(f"--alpha {choice.alpha:g}")
    else:
        words.append(f"--set {choice.kind}")
    if choice.missing != "error":
        words.append(f"--missing {choice.missing}")
    return " ".join(words)


def _design_command(choice: Choice, file: str) -> str:
    rest = f"--epsilon {choice.epsilon:g} --protocol {choice.protocol}"
    rest += " --identifiable" if choice.identifiable else ""
    return _command("design", choice, file, f"{rest} -o {_quoted(_protocol_file(choice))}")


def _use_commands(choice: Choice, file: str) -> list[str]:
    name = _quoted(_protocol_file(choice))
    return [
        f"rldp release  {name} {_quoted(_records(choice, file))} -o reports.csv --shuffle",
        f"rldp estimate {name} reports.csv",
        f"rldp plan     {name} --margin 0.01",
    ]


def _records(choice: Choice, file: str) -> str:
    return "people.csv" if choice.data == "adult" else file


def _protocol_file(choice: Choice) -> str:
    return f"{choice.stem}.rldp.json"


def _quoted(text: str) -> str:
    return shlex.quote(text)
