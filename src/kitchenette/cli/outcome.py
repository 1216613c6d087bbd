"""Exit codes, and errors as one sentence."""

from __future__ import annotations

import errno
import math
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from kitchenette.cli.terminal import visible
from kitchenette.estimators import KernelClassifier, KernelRegressor
from kitchenette.files import ModelFileError, load
from kitchenette.jobs import CheckpointError
from kitchenette.jobs.outputs import OutputError

UsageError: Any = typer.BadParameter.__base__  # of typer's parser, whichever version it has


class ExitCode(IntEnum):
    """What the exit status of the command means."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    DATA = 3
    MODEL = 4
    RESOURCES = 5
    CHECKPOINT = 6
    INTERRUPTED = 130


EXPLANATIONS = {
    ExitCode.DONE: "done",
    ExitCode.UNEXPECTED: "an error of the program: please report it, with the output of --debug",
    ExitCode.USAGE: (
        "options or arguments that do not exist, are not allowed or do not fit together"
    ),
    ExitCode.DATA: "data that cannot be read, fitted or predicted",
    ExitCode.MODEL: "a model file that is missing, damaged or of another kind",
    ExitCode.RESOURCES: "not enough memory, a full disk, or an output that cannot be written",
    ExitCode.CHECKPOINT: "a checkpoint that does not belong to these inputs and options",
    ExitCode.INTERRUPTED: "interrupted, by Ctrl-C for example; fit leaves a checkpoint",
}


# Names that similar commands of other programs have.
SYNONYMS = {
    "train": "fit",
    "learn": "fit",
    "apply": "predict",
    "infer": "predict",
    "score": "evaluate",
    "test": "evaluate",
    "info": "inspect",
    "show": "inspect",
    "combine": "merge",
    "benchmark": "compare",
    "help": "--help",
}


class CommandError(Exception):
    """An error that is explained to the user by one sentence, with an exit status."""

    def __init__(self, sentence: str, code: ExitCode):
        super().__init__(sentence)
        self.code = code


class OneSentence(TyperGroup):
    """A group of commands whose errors of usage are one sentence, too."""

    def main(self, args: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """Parse the arguments and run a command."""
        if not options.pop("standalone_mode", True):
            return super().main(args, **options, standalone_mode=False)
        try:
            code = super().main(args, **options, standalone_mode=False)
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                sys.exit(int(ExitCode.USAGE))  # the help was printed
            asked = "kitchenette" if error.ctx is None else error.ctx.command_path
            sentence = " ".join(error.format_message().split()).rstrip(".")
            if (wanted := re.fullmatch(r"No such command '(\w+)'", sentence)) is not None:
                meant = SYNONYMS.get(wanted[1])
                listed = f"Commands are {', '.join(sorted(self.commands))}"
                sentence += f". {listed if meant is None else f'Did you mean {meant!r}?'}"
            print(f"kitchenette: {visible(sentence)} (see {asked} --help).", file=sys.stderr)
            sys.exit(int(ExitCode.USAGE))
        except BrokenPipeError:
            sys.exit(int(ExitCode.UNEXPECTED))  # who read the output has gone
        sys.exit(code or 0)


@contextmanager
def as_usage() -> Iterator[None]:
    """Report invalid values as errors of usage."""
    try:
        yield
    except ValueError as error:
        raise CommandError(in_options(str(error)), ExitCode.USAGE) from error


@contextmanager
def explained(debug: bool) -> Iterator[None]:
    """Turn errors into one sentence on the standard error stream, and an exit status.

    With debug, print the traceback as well.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _shown
        try:
            yield
        except (typer.Exit, typer.BadParameter, BrokenPipeError):
            raise
        except KeyboardInterrupt as interrupt:
            end = CommandError(str(interrupt) or "Interrupted.", ExitCode.INTERRUPTED)
        except Exception as error:
            end = command_error(error)
            if debug or end.code == ExitCode.UNEXPECTED:
                end.__cause__ = error
        else:
            return
    if debug:
        for line in "".join(traceback.format_exception(end.__cause__ or end)).splitlines():
            print(visible(line), file=sys.stderr)
    print(f"kitchenette: {visible(str(end))}", file=sys.stderr)
    raise typer.Exit(int(end.code))


def command_error(error: Exception) -> CommandError:
    """The sentence and the exit status for an error."""
    # scikit-learn adds advice about other estimators to the sentence.
    said, _, _ = " ".join(str(error).split()).partition(" For supervised learning, you might")
    sentence = in_options(said)
    if isinstance(error, CommandError):
        return error
    if isinstance(error, CheckpointError):
        return CommandError(sentence, ExitCode.CHECKPOINT)
    if isinstance(error, ModelFileError):
        return CommandError(sentence, ExitCode.MODEL)
    if isinstance(error, OutputError):
        return CommandError(sentence, ExitCode.USAGE)
    if isinstance(error, MemoryError):
        return CommandError(sentence or "There is not enough memory.", ExitCode.RESOURCES)
    if isinstance(error, OSError):
        return CommandError(_about_files(error, sentence), ExitCode.RESOURCES)
    if isinstance(error, ValueError):
        return CommandError(sentence, ExitCode.DATA)
    if isinstance(error, ModuleNotFoundError):
        needed = f"This command needs {error.name}, which is not installed. Install it with: "
        return CommandError(needed + "pip install 'kitchenette[cli]'", ExitCode.RESOURCES)
    what = f"{type(error).__name__}: {sentence}"
    return CommandError(f"An unexpected error, {what} (see --debug)", ExitCode.UNEXPECTED)


# Options of the command as error messages for users of Python write them.
KEYWORD = re.compile(
    r"\b(alpha|array|dates|decimal|delimiter|format|header|ignore|kinds|loss|missing|newlines|solver)"
    r"=(\[?'[^']*'\]?|\{'[^']*': '[^']*'\}|True|False|\.\.\.)"
)


def in_options(sentence: str) -> str:
    """An error message with options of the command instead of parameters of Python.

    Examples
    --------
    >>> from kitchenette.cli.outcome import in_options
    >>> in_options("Leave it out by ignore=['when'], or use dates='days'.")
    'Leave it out by --ignore when, or use --dates days.'
    >>> in_options("Line breaks need newlines=True, or kinds={'zip': 'category'}.")
    'Line breaks need --newlines, or --kind zip=category.'
    """
    return KEYWORD.sub(_option, sentence)


def _option(match: re.Match[str]) -> str:
    name, value = match[1].replace("kinds", "kind"), match[2]
    for opening, closing in (("{'", "'}"), ("['", "']"), ("'", "'")):
        if value.startswith(opening):
            value = value[len(opening) : -len(closing)].replace("': '", "=")
            break
    if value in ("True", "False"):
        return f"--{name}" if value == "True" else f"--no-{name}"
    return f"--{name} {value}"


def _about_files(error: OSError, sentence: str) -> str:
    full = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    if error.errno in full:
        return "The disk is full or the file too large; what was there before is unchanged."
    if error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror}."
    return sentence


def _shown(message: Any, *args: Any, **kwargs: Any) -> None:
    sentence = in_options(" ".join(str(message).split()))
    print(f"kitchenette: note: {visible(sentence)}", file=sys.stderr)


def loaded(path: Path, *, trusted: bool = True) -> Any:
    """The model in a file; a map that needs much memory or time only if the file is trusted."""
    try:
        return load(path, max_bytes=math.inf, max_operations=math.inf) if trusted else load(path)
    except OSError as error:
        raise CommandError(f"Cannot load {path}: {error.strerror}.", ExitCode.MODEL) from error


def predicting(path: Path) -> KernelClassifier | KernelRegressor:
    """The model in a file, which must predict targets."""
    model = loaded(path)
    if not isinstance(model, KernelClassifier | KernelRegressor):
        raise CommandError(f"{path} is not a model that predicts targets.", ExitCode.MODEL)
    return model
