"""The default estimators against tuned and untuned peers, on all tables, as a new user finds them.

python -m benchmarks.outofthebox --quick            # at most 20,000 rows of each set
python -m benchmarks.outofthebox                    # all rows; many hours
python -m benchmarks.outofthebox --quick --sets letter,wine_quality --methods default,XGBoost
python -m benchmarks.outofthebox --quick --methods fast,default,best,LightGBM --seeds 3
python -m benchmarks.outofthebox --quick --plot FILE.png

Errors are 1 - accuracy for classes, and for numbers the root mean square error divided by the
standard deviation of the test targets, which is sqrt(1 - R^2). Ratios are the error of the default
divided by that of another method: below one the default is better. For ratios half a wrong row is
added to the errors of classes, so that perfect predictions can be compared. Times are those of the
processor, summed over threads, so that they can be measured on a busy machine.

Gradient-boosted trees are those of scikit-learn, and of LightGBM and XGBoost where these are
installed, with their defaults and without early stopping (`kitchenette.report.boosting`), and those
of CatBoost with its defaults. With --seeds, errors are means over samples of the training rows, or
over splits of the small tables. Tables with strings are left to methods that take them.

Every result is kept in a file (--cache), and only what changed runs again: the default after any
change of the package, another method when its version in benchmarks/contestants.py changes. Each
fit has a process of its own, which is stopped after --limit seconds (not on Windows).
The data sets are read as docs/reproduction.md says.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.contestants import METHODS
from benchmarks.tables import SOURCES, Table, table

TIE = 0.01  # errors that differ by less than this part are ties
CLOCK_SECONDS = 0.2  # that a prediction is repeated for
MEASURED = ("error", "fit_seconds", "predict_seconds")

Result = dict[str, Any]
Results = dict[str, dict[str, Result]]  # by set, then by method


# ------------------------------------------------------------ measuring


def seconds_of(action: Callable[[], object]) -> float:
    """The processor time of one call, from as many as make up for a coarse clock."""
    calls, start = 0, process_time()
    while (spent := process_time() - start) < CLOCK_SECONDS:
        action()
        calls += 1
    return spent / calls


def measured(set_name: str, method: str, quick: bool, seed: int) -> Result:
    """The error of one method on one table, with its times in seconds of the processor."""
    data = table(set_name, quick=quick, seed=seed)
    if data.has_strings and not METHODS[method].takes_strings:
        return {"set": set_name, "method": method, "error": None, "note": "numbers only"}
    result: Result = {
        "set": set_name,
        "method": method,
        "classes": data.n_classes,
        "rows": len(data.X),
        "columns": data.X.shape[1],
        "test_rows": len(data.X_test),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = process_time()
        fitted = METHODS[method].fit(data, quick)
        result["fit_seconds"] = process_time() - start
        predicted = fitted.model.predict(data.X_test)
        result["predict_seconds"] = seconds_of(lambda: fitted.model.predict(data.X_test))
    if data.classes:
        result["error"] = float(np.mean(predicted != data.y_test))
        result["log_loss"] = log_loss_of(fitted.model, data)
    else:
        root_mean_square = np.sqrt(np.mean((predicted - data.y_test) ** 2))
        result["error"] = float(root_mean_square / np.std(data.y_test))
    result["note"] = fitted.note
    result["warnings"] = sorted({str(warning.message)[:300] for warning in caught})
    return result


def log_loss_of(model: Any, data: Table) -> float | None:
    """The mean of minus the logarithm of the probability of the true class; None without any."""
    if not hasattr(model, "predict_proba"):
        return None
    probabilities, labels = np.asarray(model.predict_proba(data.X_test)), np.asarray(model.classes_)
    places = np.searchsorted(labels, data.y_test).clip(max=labels.size - 1)
    of_truth = np.where(
        labels[places] == data.y_test, probabilities[np.arange(places.size), places], 0.0
    )
    return float(-np.log(of_truth.clip(min=np.finfo(float).eps)).mean())


def send_measured(pipe: Any, limit: int, *arguments: Any) -> None:
    """Send what `measured` returns, unless the system ends the process before."""
    if os.name != "nt":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 60))  # a signal, then an end
    pipe.send(measured(*arguments))


def within(limit: int, set_name: str, method: str, quick: bool, seed: int) -> Result:
    """What `measured` returns, from a process of its own with a limit to its time."""
    context: Any = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=send_measured, args=(sender, limit, set_name, method, quick, seed)
    )
    process.start()
    sender.close()
    try:
        return dict(receiver.recv())
    except EOFError:  # the process ended without a result
        process.join()
        stopped = os.name != "nt" and process.exitcode == -signal.SIGXCPU
        note = f"stopped after {limit} s" if stopped else "failed"
        return {"set": set_name, "method": method, "error": None, "note": note}


def cached(
    cache: Path, limit: int, set_name: str, method: str, quick: bool, seed: int = 0
) -> Result:
    """A result of the same version of the method, or a new one."""
    size = ("quick" if quick else "full") + (f"-{seed}" if seed else "")
    path = cache / f"{set_name}-{method}-{size}-{METHODS[method].version()}.json"
    if path.is_file():
        return dict(json.loads(path.read_text()))
    result = within(limit, set_name, method, quick, seed)
    if result.get("note") != "failed":
        path.write_text(json.dumps(result, indent=1) + "\n")
    print(progress(result), flush=True)
    return result


def averaged(results: list[Result]) -> Result:
    """The means of the numbers of several seeds; without an error if one of them has none."""
    first = next((one for one in results if one["error"] is None), results[0])
    if first["error"] is None or len(results) == 1:
        return first
    keys = [key for key in (*MEASURED, "log_loss") if first.get(key) is not None]
    return first | {key: float(np.mean([one[key] for one in results])) for key in keys}


def progress(result: Result) -> str:
    begin = f"{result['set']:18} {result['method']:11}"
    if result["error"] is None:
        return f"{begin} {result['note']}"
    return (
        f"{begin} error {result['error']:8.4f}  fit {result['fit_seconds']:7.2f} s  "
        f"predict {1e6 * result['predict_seconds'] / result['test_rows']:7.1f} us per row"
        f"  {result['note']} {'; '.join(result['warnings'])[:150]}".rstrip()
    )


# ------------------------------------------------------------ comparing


def comparable(result: Result | None) -> float | None:
    """The error, with half a wrong row more if there are classes; None if there is none."""
    if result is None or result["error"] is None:
        return None
    half_row = 0.5 / result["test_rows"] if result["classes"] else 0.0
    return float(result["error"] + half_row)


def ratios(results: Results, method: str, reference: str) -> dict[str, float]:
    """Errors of the reference divided by those of a method, on the sets that have both."""
    found = {}
    for set_name, by_method in results.items():
        ours, theirs = comparable(by_method.get(reference)), comparable(by_method.get(method))
        if ours is not None and theirs is not None:
            found[set_name] = ours / theirs
    return found


def geometric_mean(values: Iterable[float]) -> str:
    logarithms = [np.log(value) for value in values]
    return f"{np.exp(np.mean(logarithms)):.2f}" if logarithms else ""


def markdown(header: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def errors_table(results: Results, methods: list[str], reference: str) -> str:
    """Errors, the smallest in bold, with the ratio of the reference's error to them."""
    header = ["set", "rows", "columns", "classes", *(METHODS[name].label for name in methods)]
    rows = []
    notes: list[str] = []
    for set_name, by_method in results.items():
        known = [result for result in by_method.values() if result["error"] is not None]
        if not known:
            continue
        best = min(result["error"] for result in known)
        shape = [f"{known[0][key]:,}" for key in ("rows", "columns")]
        cells = [set_name, *shape, str(known[0]["classes"] or "")]
        for name in methods:
            result = by_method.get(name)
            if result is None or result["error"] is None:
                cells.append("")
            else:
                error = f"{result['error']:.4f}"
                ratio = ratios({set_name: by_method}, name, reference).get(set_name)
                beside = f" ({ratio:.2f})" if ratio is not None and name != reference else ""
                cells.append((f"**{error}**" if result["error"] == best else error) + beside)
            if result is not None and result["note"] and name != "grid":
                notes.append(f"{set_name}, {METHODS[name].label}: {result['note']}")
        rows.append(cells)
    text = markdown(header, rows)
    return text + ("\n\nLess than all: " + "; ".join(notes) + "." if notes else "")


def times_table(results: Results, methods: list[str]) -> str:
    header = ["fit in seconds / prediction of a row in microseconds"]
    header += [METHODS[name].label for name in methods]
    rows = []
    for set_name, by_method in results.items():
        cells = [set_name]
        for name in methods:
            result = by_method.get(name)
            if result is None or result["error"] is None:
                cells.append("")
                continue
            row = 1e6 * result["predict_seconds"] / result["test_rows"]
            cells.append(f"{result['fit_seconds']:.2f} / {row:.0f}")
        rows.append(cells)
    return markdown(header, rows)


def log_losses_table(results: Results, methods: list[str]) -> str:
    header = ["log loss", *(METHODS[name].label for name in methods)]
    rows = []
    for set_name, by_method in results.items():
        losses = [by_method.get(name, {}).get("log_loss") for name in methods]
        if any(loss is not None for loss in losses):
            cells = ["" if loss is None else f"{loss:.3f}" for loss in losses]
            rows.append([set_name, *cells])
    return markdown(header, rows)


def summary_table(results: Results, methods: list[str], reference: str) -> str:
    """Geometric means of the ratios, wins and losses, and the worst set."""
    header = [f"error of {METHODS[reference].label} / error of", "all", "classes", "numbers"]
    header += ["wins", "ties", "losses", "worst"]
    rows = []
    for name in methods:
        if name == reference or not (found := ratios(results, name, reference)):
            continue
        classes = [ratio for key, ratio in found.items() if SOURCES[key].classes]
        numbers = [ratio for key, ratio in found.items() if not SOURCES[key].classes]
        wins = sum(ratio < 1 - TIE for ratio in found.values())
        losses = sum(ratio > 1 + TIE for ratio in found.values())
        worst = max(found, key=lambda key: found[key])
        means = [geometric_mean(part) for part in (found.values(), classes, numbers)]
        counts = [str(wins), str(len(found) - wins - losses), str(losses)]
        rows.append([METHODS[name].label, *means, *counts, f"{worst} {found[worst]:.2f}"])
    return markdown(header, rows)


# ------------------------------------------------------------ a picture

# Okabe and Ito's colors, which color-blind readers can tell apart; shapes differ as well.
LOOKS = {
    "before": ("#999999", "v"),
    "grid": ("#009E73", "D"),
    "HistGradientBoosting": ("#D55E00", "s"),
    "LightGBM": ("#D55E00", "d"),
    "XGBoost": ("#D55E00", "p"),
    "svm": ("#0072B2", "^"),
    "nystroem": ("#56B4E9", "P"),
    "neighbors": ("#CC79A7", "X"),
    "linear": ("#E69F00", "<"),
}


def draw(results: Results, methods: list[str], reference: str, path: str) -> None:
    """Errors relative to those of the reference, a line for each set."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = [name for name in results if comparable(results[name].get(reference)) is not None]
    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.27 * len(shown)), layout="constrained")
    for name in methods:
        if name == reference:
            continue
        found = ratios(results, name, reference)
        places = [i for i, set_name in enumerate(shown) if set_name in found]
        values = [1 / found[shown[i]] for i in places]
        color, marker = LOOKS.get(name, ("black", "o"))
        axes.plot(values, places, marker, color=color, label=METHODS[name].label, alpha=0.85)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    candidates = [*2.0 ** np.arange(-6, 7), 0.75, 1.5]
    ticks = sorted(float(tick) for tick in candidates if low <= tick <= high)
    labels = [f"{tick:g}" if tick >= 0.5 else f"1/{1 / tick:g}" for tick in ticks]
    axes.set_xticks(ticks, labels)
    axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.set_yticks(range(len(shown)), shown)
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.set_xlabel(f"error / error of {METHODS[reference].label} (right of 1: it is better)")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


# ------------------------------------------------------------ the command


def names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """A converter of names with commas between them."""

    def convert(text: str) -> list[str]:
        given = text.split(",")
        if unknown := [name for name in given if name not in known]:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)} is not among {', '.join(known)}"
            )
        return given

    return convert


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="at most 20,000 rows of each set")
    parser.add_argument("--sets", type=names(SOURCES), default=list(SOURCES), metavar="A,B,...")
    parser.add_argument("--methods", type=names(METHODS), default=list(METHODS), metavar="A,B,...")
    parser.add_argument(
        "--cache", type=Path, default=Path("build/outofthebox"), help="a directory for results"
    )
    parser.add_argument(
        "--limit", type=int, default=3600, metavar="SECONDS", help="for one method on one set"
    )
    parser.add_argument("--times", action="store_true", help="print a table of times as well")
    parser.add_argument("--log-losses", action="store_true", help="and a table of log losses")
    parser.add_argument("--seeds", type=int, default=1, help="samples or splits, averaged")
    parser.add_argument("--plot", metavar="FILE", help="draw a picture of the ratios")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    results: Results = {name: {} for name in options.sets}
    for set_name in options.sets:
        for method in options.methods:
            results[set_name][method] = averaged(
                [
                    cached(options.cache, options.limit, set_name, method, options.quick, seed)
                    for seed in range(options.seeds)
                ]
            )
    reference = "default" if "default" in options.methods else options.methods[0]
    print(f"\n{errors_table(results, options.methods, reference)}")
    if options.times:
        print(f"\n{times_table(results, options.methods)}")
    if options.log_losses:
        print(f"\n{log_losses_table(results, options.methods)}")
    print(f"\n{summary_table(results, options.methods, reference)}")
    if options.plot:
        draw(results, options.methods, reference, options.plot)


if __name__ == "__main__":
    main()
