"""The errors a user may see. Each says what happened, where, and what to do next."""

from __future__ import annotations


class TraceInsightError(Exception):
    """Base of all errors that end a command with a message instead of a traceback.

    ``exit_code`` is what the command line returns (see docs: 2 usage, 3 unreadable input).
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, what_to_do: str | None = None) -> None:
        self.what = what
        self.where = where
        self.what_to_do = what_to_do
        super().__init__(what)

    def __str__(self) -> str:
        """All of it in one line: where, what, and what to do."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} {self.what_to_do}" if self.what_to_do else text


class UsageError(TraceInsightError):
    """The call itself is wrong: an unknown option value, a path that is not there."""

    exit_code = 2


class UnreadableInputError(TraceInsightError):
    """No usable trace could be read from the input."""

    exit_code = 3


class GateFailedError(TraceInsightError):
    """What ``--fail-on`` guards has become worse, or could not be judged."""

    exit_code = 1
