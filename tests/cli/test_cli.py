"""The command, run as a user runs it."""

from __future__ import annotations

import json
import os
import re
import shutil

import numpy as np
import pytest
from command import COMMAND, MODULE, assert_one_sentence, run, run_in_a_terminal
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from typer.testing import CliRunner

import kitchenette
from kitchenette import Fastfood, KernelClassifier, KernelRegressor
from kitchenette.cli import demo
from kitchenette.cli.app import app
from kitchenette.cli.outcome import EXPLANATIONS, ExitCode, command_error
from kitchenette.jobs import FitSettings, learn_shard
from kitchenette.report import Measurement
from kitchenette.training import partial, prepare


@pytest.fixture
def models(tmp_path):
    """Two models of different rows with the same map, and one with another map."""
    X, y = load_digits(return_X_y=True)
    shared = FrozenEstimator(Fastfood(n_components=64, random_state=0).fit(X[:200]))
    for name, rows in (("a", slice(0, 600)), ("b", slice(600, 1000))):
        kitchenette.save(KernelClassifier(shared).fit(X[rows], y[rows]), tmp_path / name)
    other = KernelClassifier(Fastfood(n_components=64, random_state=1)).fit(X[:200], y[:200])
    kitchenette.save(other, tmp_path / "other")
    return tmp_path


# ------------------------------------------------------------ the frame


def test_version_and_help():
    version = CliRunner().invoke(app, ["--version"]).output
    assert version.strip() == f"kitchenette {kitchenette.__version__}"
    text = " ".join(CliRunner(env={"COLUMNS": "200"}).invoke(app, ["--help"]).output.split())
    for command in ("inspect", "merge", "demo"):
        assert command in text
    for code, explanation in EXPLANATIONS.items():
        assert f"{int(code)}: {explanation}" in text


@pytest.mark.parametrize(
    "name", sorted(command.name or "demo" for command in app.registered_commands)
)
def test_the_help_of_every_command_has_an_example(name):
    text = CliRunner(env={"COLUMNS": "200"}).invoke(app, [name, "--help"]).output
    assert f"kitchenette {name}" in text
    assert "--json" in text
    assert "--debug" in text


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (["demo", "--n-components", "0"], ["--n-components", "Invalid value"]),
        (["demo", "--seed", str(2**32)], ["--seed"]),
        (["dmeo"], ["No such command", "Did you mean 'demo'?"]),
        (["train", "a.csv"], ["No such command 'train'. Did you mean 'fit'?"]),
        (["bake"], ["No such command 'bake'. Commands are choose, compare, demo, evaluate, fit"]),
        (["merge", "a"], ["--out", "see kitchenette merge --help"]),
        (["fit", "a.csv", "--traget", "y", "--out", "m"], ["No such option", "--target"]),
    ],
    ids=str,
)
def test_mistakes_are_explained(arguments, sentences):
    done = CliRunner(env={"COLUMNS": "120"}).invoke(app, arguments, prog_name="kitchenette")
    assert done.exit_code == ExitCode.USAGE
    assert len(done.output.splitlines()) == 1
    assert isinstance(done.exception, SystemExit)
    for sentence in sentences:
        assert sentence in done.output


@pytest.mark.parametrize("command", [[], ["fit"], ["inspect"]], ids=str)
def test_short_and_long_options_give_the_same_help(command):
    short, long = (CliRunner().invoke(app, [*command, option]) for option in ("-h", "--help"))
    assert short.exit_code == ExitCode.DONE
    assert short.output == long.output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_are_refused_before_anybody_waits(tmp_path):
    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    fit = ["fit", str(pipe), "--target", "t", "--out", str(tmp_path / "model")]
    for arguments, code in ((fit, ExitCode.DATA), (["inspect", str(pipe)], ExitCode.MODEL)):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == code
        assert len(done.output.splitlines()) == 1
        assert "a pipe" in done.output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_outputs_never_replace_a_pipe(models):
    pipe, link, rows = models / "pipe.csv", models / "link.csv", models / "rows.csv"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    rows.write_text("a,t\n" + "".join(f"{i},{i % 7}\n" for i in range(60)))
    a, b = str(models / "a"), str(models / "b")
    digits = models / "digits.npy"
    np.save(digits, load_digits().data[:5])
    for out in (pipe, link):
        for arguments in (
            ["fit", str(rows), "--target", "t", "--map", "Fastfood", "--components", "16"],
            ["merge", a, b],
            ["predict", a, str(digits)],
        ):
            done = CliRunner().invoke(app, [*arguments, "--out", str(out)])
            assert done.exit_code == ExitCode.RESOURCES, done.output
            assert "it is a pipe or a device" in done.output
        with pytest.raises(OSError, match="it is a pipe or a device"):
            kitchenette.save(kitchenette.load(a), out)
        assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("a,when,t\n1,2020-01-01,3\n2,2020-01-02,4\n", "--ignore when, or.*--dates days"),
        ("a,t\n1,3\n2,\n", "'t' is a target or a weight, and a value is missing in row 1"),
        ("a,a,t\n1,2,3\n4,5,6\n", r"line 1: names are repeated: \['a'\]"),
    ],
    ids=["dates", "missing target", "equal names"],
)
def test_mistakes_in_files_name_the_column_and_the_option(rows, sentence, tmp_path):
    (tmp_path / "rows.csv").write_text(rows)
    out = str(tmp_path / "model")
    done = CliRunner().invoke(
        app, ["fit", str(tmp_path / "rows.csv"), "--target", "t", "--out", out]
    )
    assert done.exit_code == ExitCode.DATA
    assert re.search(sentence, done.output)


def test_no_arguments_give_the_help():
    done = CliRunner().invoke(app, [])
    assert done.exit_code == ExitCode.USAGE
    assert "Commands" in done.output


def test_without_its_libraries_the_command_says_what_to_install(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    done = run(COMMAND, "demo", path_first=tmp_path)
    assert done.returncode != 0
    assert "pip install 'kitchenette[cli]'" in done.stderr


def test_an_interrupt_while_libraries_are_loaded_gets_a_sentence(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    done = run(COMMAND, "demo", path_first=tmp_path)
    assert done.returncode == ExitCode.INTERRUPTED
    assert done.stderr == "kitchenette: Interrupted.\n"


@pytest.mark.slow
def test_completion_for_shells():
    done = run(MODULE, "--show-completion", "bash")
    assert done.returncode == 0
    assert "complete" in done.stdout


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "No such file"),
        (b"", "not a model file"),
        (b"\x80\x04 a pickle", "not a model file"),
        ("cut", "cut short"),
    ],
    ids=["missing", "empty", "pickle", "cut"],
)
@pytest.mark.slow
def test_bad_model_files_get_one_sentence(models, content, sentence):
    path = models / "bad"
    if content == "cut":
        path.write_bytes((models / "a").read_bytes()[:-100])
    elif content is not None:
        path.write_bytes(content)
    assert_one_sentence(run(MODULE, "inspect", str(path)), ExitCode.MODEL, sentence)


@pytest.mark.slow
def test_debug_shows_where_an_error_came_from(tmp_path):
    done = run(MODULE, "inspect", str(tmp_path / "nothing"), "--debug")
    assert done.returncode == ExitCode.MODEL
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("kitchenette: ")


# ------------------------------------------------------------ inspect


def test_inspect_tells_what_a_model_is(models):
    done = run(MODULE, "inspect", str(models / "a"))
    assert done.returncode == 0
    assert done.stderr == ""
    for text in ("KernelClassifier", "classification", "Fastfood", "600", "64", "Importance"):
        assert text in done.stdout
    assert "█" in done.stdout
    assert "\x1b[" not in done.stdout  # no colors, as it is not a terminal


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="terminals are made with pty, on Unix only")
def test_colors_on_a_terminal_obey_no_color(models):
    colored = re.compile(r"\x1b\[[0-9;]*[349][0-7]m")
    arguments = ("inspect", str(models / "a"))
    assert colored.search(run_in_a_terminal(MODULE, *arguments))
    assert not colored.search(run_in_a_terminal(MODULE, *arguments, NO_COLOR="1"))


@pytest.mark.slow
def test_inspect_as_json(models):
    done = run(MODULE, "inspect", str(models / "a"), "--json")
    found = json.loads(done.stdout)
    assert found["kind"] == "KernelClassifier"
    assert found["training_rows"] == 600
    assert found["classes"] == [*range(10)]
    assert found["bytes"] == (models / "a").stat().st_size
    assert sum(found["importances"].values()) == pytest.approx(1)


@pytest.mark.slow
def test_inspect_of_a_model_without_statistics_and_with_names(tmp_path):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["left", "right"])
    model = KernelRegressor(random_state=0).fit(X, X["left"] ** 2)
    kitchenette.save(model, tmp_path / "small", statistics=False)
    found = json.loads(run(MODULE, "inspect", str(tmp_path / "small"), "--json").stdout)
    assert found["column_names"] == ["left", "right"]
    assert found["can_be_updated"] is False
    assert found["importances"]["left"] > found["importances"]["right"]
    assert "kernel" in found["choice"]


@pytest.mark.slow
def test_inspect_of_a_kernel(tmp_path):
    kitchenette.save(kitchenette.kernels.Gaussian(2.0), tmp_path / "kernel")
    found = json.loads(run(MODULE, "inspect", str(tmp_path / "kernel"), "--json").stdout)
    assert found["kind"] == "Gaussian"
    assert "2.0" in found["parameters"]


HOSTILE = "\x1b[2J\x1b]0;title\x07[red]bold[/red]\r\nkitchenette: all is well\u202e"
HOSTILE_LABEL = "yes [bold]\x9b31m"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model file and a table whose names of columns and labels are chosen by somebody else."""
    pd, tmp_path = pytest.importorskip("pandas"), tmp_path_factory.mktemp("hostile")
    X = np.random.default_rng(0).normal(size=(200, 2))
    frame = pd.DataFrame({HOSTILE: X[:, 0], "[link=http://a]b[/link]": X[:, 1]})
    frame["target [/]\x1b[1m"] = np.where(X[:, 0] > 0, HOSTILE_LABEL, "no")
    frame.to_parquet(tmp_path / "rows.parquet")
    rows = kitchenette.data.source(tmp_path / "rows.parquet", target="target [/]\x1b[1m")
    model = KernelClassifier(kitchenette.AutoMap(16), random_state=0).fit(rows)
    kitchenette.save(model, tmp_path / "model")
    return tmp_path


@pytest.mark.parametrize("command", ["inspect", "evaluate", "predict", "fit", "missing", "choose"])
def test_names_from_files_are_shown_and_obeyed_by_no_terminal(hostile, command):
    model, rows, out = (str(hostile / name) for name in ("model", "rows.parquet", "out.csv"))
    other = str(hostile / "other.csv")
    (hostile / "other.csv").write_text("a,\x1b[31m[red]c\n1,2\n")
    target = "target [/]\x1b[1m"
    arguments = {
        "inspect": ["inspect", model],
        "evaluate": ["evaluate", model, rows],
        "predict": ["predict", model, rows, "--out", out],
        "fit": ["fit", rows, "--target", target, "--out", out, "--components", "16"],
        "missing": ["predict", model, other, "--out", out],
        "choose": ["choose", rows, "--target", target, "--components", "16"],
    }
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments[command])
    assert done.exit_code == (ExitCode.DATA if command == "missing" else 0), done.output
    printed = done.stdout + done.stderr
    assert not [c for c in printed if not c.isprintable() and c not in "\n\t"]
    assert not any(line.startswith("kitchenette: all is well") for line in printed.splitlines())
    if command == "inspect":
        for text in (r"\x1b[2J", "[red]bold[/red]", r"\u202e", "[link=http://a]b[/link]"):
            assert text in printed
        assert r"yes [bold]\x9b31m" in printed
    if command == "evaluate":
        assert r"yes [bold]\x9b31m" in printed


def test_titles_of_tables_are_no_markup(tmp_path):
    path = tmp_path / "a [red]b"
    kitchenette.save(kitchenette.kernels.Gaussian(2.0), path)
    printed = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["inspect", str(path)]).stdout
    assert "a [red]b" in printed


def test_inspect_of_a_shard_says_what_it_is(tmp_path):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    rows = kitchenette.data.source(X, target=np.sin(X[:, 0]))
    settings = FitSettings(map="Fastfood", kernel="gaussian", components=16)
    learn_shard(rows, tmp_path / "shard", settings, shard=(2, 3))
    found = inspected(tmp_path / "shard")
    assert (found["kind"], found["shard"], found["shards"]) == ("Checkpoint", 2, 3)
    assert (found["estimator"], found["task"]) == ("KernelRegressor", "regression")
    assert (found["rows_of_the_source"], found["rows_read"]) == (1000, 666)
    assert found["training_rows"] == 333
    assert (found["columns"], found["features"]) == (2, 16)
    printed = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["inspect", str(tmp_path / "shard")])
    assert printed.exit_code == 0
    assert len(printed.stdout.splitlines()) < 40
    assert "LeastSquares(" not in printed.stdout
    assert "array(" not in printed.stdout


def inspected(path):
    return json.loads(CliRunner().invoke(app, ["inspect", str(path), "--json"]).stdout)


def test_inspect_of_other_parts_of_a_model_says_what_they_are(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 2))
    estimator = KernelClassifier(Fastfood(n_components=16, random_state=0))
    prepared = prepare(estimator, X, X[:, 0] > 0)
    kitchenette.save(prepared, tmp_path / "prepared")
    found = inspected(tmp_path / "prepared")
    assert (found["kind"], found["training_rows"]) == ("KernelClassifier", 0)
    kitchenette.save(partial(prepared, X, X[:, 0] > 0), tmp_path / "partial")
    found = inspected(tmp_path / "partial")
    assert (found["kind"], found["estimator"]) == ("Partial", "KernelClassifier")
    assert (found["training_rows"], found["features"]) == (100, 16)
    assert found["classes"] == [False, True]


# ------------------------------------------------------------ merge


def test_inspect_does_not_spend_much_on_a_file_that_nobody_trusts(tmp_path):
    # A dense orthogonal map whose drawing takes 5e8 operations, and little to store.
    wide = kitchenette.RandomKitchenSinks(
        kitchenette.kernels.Gaussian(1.0), 1000, frequencies="orthogonal", random_state=0
    )
    kitchenette.save(wide.fit(np.ones((2, 700))), tmp_path / "wide")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kitchenette.load, "__kwdefaults__", load_limits(1e6))
        refused = CliRunner().invoke(app, ["inspect", str(tmp_path / "wide")])
        trusted = CliRunner().invoke(app, ["inspect", str(tmp_path / "wide"), "--trust"])
    assert refused.exit_code == ExitCode.MODEL
    assert "Say --trust if you trust it." in refused.stderr
    assert trusted.exit_code == 0


def load_limits(n_operations):
    """The defaults of `load`, with a smaller limit of work."""
    return kitchenette.load.__kwdefaults__ | {"max_operations": n_operations}


@pytest.mark.filterwarnings("default:Both models")
def test_a_file_is_not_merged_with_itself(models):
    arguments = ["merge", str(models / "a"), str(models / ".." / models.name / "a")]
    done = CliRunner().invoke(app, [*arguments, "--out", str(models / "both")])
    assert done.exit_code == ExitCode.USAGE
    assert "is given twice: its rows would count twice" in done.stderr
    shutil.copy(models / "a", models / "copy")
    arguments = ["merge", str(models / "a"), str(models / "copy"), "--out", str(models / "both")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    assert "note: Both models have the same statistics of 600 rows" in done.stderr


def test_merge_is_the_model_of_all_rows(models):
    out = models / "both"
    done = run(MODULE, "merge", str(models / "a"), str(models / "b"), "--out", str(out), "--json")
    assert json.loads(done.stdout) == {"out": str(out), "models": 2, "rows": 1000}
    X, y = load_digits(return_X_y=True)
    merged = kitchenette.load(out)
    a, b = (kitchenette.load(models / name) for name in "ab")
    np.testing.assert_array_equal(merged.predict(X), a.merge(b).predict(X))
    assert merged.score(X, y) > 0.9


@pytest.mark.slow
def test_models_of_different_maps_are_not_merged(models):
    out = models / "both"
    out.write_text("as it was")
    done = run(MODULE, "merge", str(models / "a"), str(models / "other"), "--out", str(out))
    assert done.returncode == ExitCode.MODEL
    assert "feature maps differ" in done.stderr
    assert "other" in done.stderr
    assert out.read_text() == "as it was"


@pytest.mark.slow
def test_an_output_that_cannot_be_written_is_named(models):
    out = models / "nowhere" / "both"
    done = run(MODULE, "merge", str(models / "a"), str(models / "b"), "--out", str(out))
    assert done.returncode == ExitCode.RESOURCES
    assert "nowhere" in done.stderr


# ------------------------------------------------------------ demo


@pytest.mark.slow
def test_the_demo_learns_a_stream_and_writes_a_page(tmp_path):
    page = tmp_path / "page.html"
    done = run(
        COMMAND, "demo", "--rows", "20000", "--n-components", "128", "--page", str(page), "--json"
    )
    assert done.returncode == 0
    assert done.stderr == ""
    found = json.loads(done.stdout)
    ours, trees, exact, extrapolated = found["measurements"]
    assert ours["error"] < exact["error"]
    assert ours["n_rows"] == trees["n_rows"] == extrapolated["n_rows"] == 20_000
    assert extrapolated["extrapolated"]
    assert extrapolated["fit_seconds"] > exact["fit_seconds"]
    assert 0.9 < found["coverage"] < 0.99
    assert found["sure_right"] > 0.85
    assert found["recommended"].endswith(", 128 features")  # the size of the stream's model
    assert "<svg" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_has_one_figure_for_one_thing(tmp_path):
    page = tmp_path / "page.html"
    options = ("--rows", "20000", "--n-components", "64", "--page", str(page))
    said = " ".join(run(COMMAND, "demo", *options).stdout.split())
    assert len(re.findall(r"rows/s, [\d.]+ MB of memory", said)) <= 1
    assert len(re.findall(r"of memory", said)) <= 1
    assert {*re.findall(r"(\d+) features", said)} == {"64"}
    error = re.search(r"Kitchenette │ 20,000 │ ([\d.]+)%", said)
    again = re.search(r"AutoMap with 64 features on all 20,000 rows is ([\d.]+)%", said)
    assert error[1] == again[1]


def demo_row(name: str, error: float) -> Measurement:
    return Measurement(name, "any", 200_000, error=error, standard_error=0.004)


@pytest.mark.parametrize(
    ("ours", "trees", "verdict"),
    [
        (0.160, 0.140, "LightGBM has a lower error than Kitchenette"),
        (0.140, 0.160, "Kitchenette has a lower error than LightGBM"),
        (0.160, 0.158, "Kitchenette and LightGBM have the same error up to chance"),
    ],
)
def test_the_demo_says_who_wins(ours, trees, verdict):
    said = demo.verdict(demo_row("Kitchenette", ours), demo_row("LightGBM", trees))
    assert said.startswith(verdict)
    assert "a kernel matrix of 200,000 rows has 320 GB" in said


def test_a_missing_library_is_named_with_how_to_install_it():
    error = command_error(ModuleNotFoundError("No module named 'jinja2'", name="jinja2"))
    assert error.code == ExitCode.RESOURCES
    assert "needs jinja2, which is not installed" in str(error)
    assert "pip install 'kitchenette[cli]'" in str(error)
