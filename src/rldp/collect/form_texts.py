"""The texts of a form in one language: its questions, and what people read for each label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rldp.tables.schema import Column, Schema

DEFAULT = "en"
TEXTS = ("title", "introduction", "contact")


@dataclass(frozen=True)
class Question:
    """How a column is asked for.

    Args:
        column: its name in the schema.
        text: the question.
        hint: a line below it.
        labels: what people read for each label; the label itself where nothing else is said.
    """

    column: str
    text: str
    hint: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Texts:
    """A form in one language.

    Args:
        language: such as "en" or "pt-BR".
        title: of the survey.
        introduction: what people read first.
        contact: whom they can ask.
        questions: in the order in which they are asked.
        page: texts of the page itself that are to be other than its own.
    """

    language: str
    title: str = ""
    introduction: str = ""
    contact: str = ""
    questions: tuple[Question, ...] = ()
    page: Mapping[str, str] = field(default_factory=dict)

    def document(self, schema: Schema, own: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """The texts as JSON, with a question for every column: those without a text come last.

        Args:
            schema: with the columns.
            own: texts of the page by language; those of the default language stand in for others.
        """
        language = self.language.partition("-")[0]
        columns = {column.name: column for column in (*schema.sensitive, *schema.useful)}
        asked = {question.column: question for question in self.questions}
        order = [*asked, *(name for name in columns if name not in asked)]
        questions = [_asked(columns[name], asked.get(name, Question(name, name))) for name in order]
        return {
            "language": self.language,
            **{name: getattr(self, name) for name in TEXTS},
            "questions": questions,
            "page": {**own[DEFAULT], **own.get(language, {}), **self.page},
        }


def _asked(column: Column, question: Question) -> dict[str, Any]:
    answers = [{"label": x, "text": question.labels.get(x, x)} for x in column.labels]
    return {"column": column.name, "text": question.text, "hint": question.hint, "answers": answers}
