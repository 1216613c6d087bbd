"""The model of a Dask collection is the model of one machine, whatever the partitions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from kitchenette import TEFM, Fastfood, KernelClassifier, KernelPCA, KernelRegressor
from kitchenette.backends.plan import PartitionError, number_of_partitions, tree
from kitchenette.data import DataError
from kitchenette.data import source as local_source
from kitchenette.kernels import Gaussian

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from kitchenette.dask import DaskSource, source  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4))
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1]
SEVERAL = np.stack([NUMBERS, X[:, 2]], axis=1)
LABELS = np.array(["low", "middle", "high"])[np.digitize(NUMBERS, [-0.8, 0.8])]
WEIGHTS = RNG.uniform(0.5, 2.0, size=900)
FRAME = pd.DataFrame(X, columns=[*"abcd"]).assign(
    city=np.array(["Oslo", "Rome", "Lima"])[RNG.integers(0, 3, 900)], target=NUMBERS
)
FRAME.loc[::7, "b"] = np.nan
CHUNKS = [(900,), (300, 300, 300), (1, 499, 0, 399, 1)]


def fastfood():
    return Fastfood(Gaussian(2.0), n_components=32, random_state=0)


@pytest.fixture(autouse=True)
def _one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


def chunked(values, chunks=CHUNKS[1]):
    return da.from_array(values, chunks=(chunks, *((n,) for n in values.shape[1:])))


CASES = {
    "regressor": (KernelRegressor(fastfood()), NUMBERS, None),
    "weights": (KernelRegressor(fastfood()), NUMBERS, WEIGHTS),
    "several targets": (KernelRegressor(fastfood()), SEVERAL, None),
    "classifier": (KernelClassifier(fastfood()), LABELS, None),
    "balanced": (KernelClassifier(fastfood(), class_weight="balanced"), LABELS, WEIGHTS),
    "iterative": (KernelRegressor(fastfood(), solver="iterative"), NUMBERS, WEIGHTS),
    "logistic": (KernelClassifier(fastfood(), loss="logistic", max_iter=20), LABELS, None),
}


def outputs(model, rows):
    if isinstance(model, KernelClassifier):
        return model.decision_function(rows)
    return model.predict(rows)


MANY_PASSES = {"iterative", "logistic"}


@pytest.mark.parametrize(
    ("case", "chunks"),
    [
        pytest.param(
            case,
            chunks,
            id=f"{case}-{len(chunks)}",
            marks=[pytest.mark.slow] if case in MANY_PASSES and len(chunks) < 5 else [],
        )
        for case in CASES
        for chunks in CHUNKS
    ],
)
def test_partitions_give_the_model_of_one_machine(case, chunks):
    model, y, weights = CASES[case]
    whole = model.fit(local_source(X, target=y, weight=weights))
    expected, alpha = outputs(whole, X), whole.alpha_
    theirs = None if weights is None else chunked(weights, (450, 450))
    found = model.fit(chunked(X, chunks), chunked(y, chunks), theirs)
    assert found.alpha_ == pytest.approx(alpha, rel=1e-9)
    assert_allclose(outputs(found, X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.3])
def test_predictions_differ_by_rounding_errors_times_the_condition_number(noise):
    y = np.sin(X[:, 0]) + X[:, 1] + noise * np.random.default_rng(1).normal(size=900)
    model = KernelRegressor(Fastfood(Gaussian(3.0), n_components=256, random_state=0))
    expected, alpha = model.fit(X, y).predict(X), model.alpha_
    values = np.linalg.eigvalsh(model.statistics_.gram.full(), "L")
    condition = (values[-1] + alpha) / (max(values[0], 0) + alpha)
    found = model.fit(chunked(X), chunked(y))
    assert found.alpha_ == pytest.approx(alpha, rel=1e-9)
    difference = np.abs(found.predict(X) - expected).max() / y.std()
    assert difference < 1e-15 * condition
    assert difference < 1e-9 or condition > 1e8
    assert (condition > 1e8) == (noise == 0)  # so that both sides of the promise are seen


def test_chunks_that_rows_targets_and_weights_share_are_computed_once_in_a_pass(tmp_path):
    log = tmp_path / "computed"  # a file, because tasks have copies of all objects

    def computed(number):
        with log.open("a") as lines:
            lines.write(f"{number}\n")
        return np.random.default_rng(number).normal(size=(100, 5))

    blocks = [da.from_delayed(dask.delayed(computed)(i), (100, 5), dtype=float) for i in range(3)]
    whole = da.concatenate(blocks)
    KernelRegressor(fastfood()).fit(whole[:, :-1], whole[:, -1], sample_weight=abs(whole[:, 0]))
    assert sorted(log.read_text().split()) == [*"001122"]  # for the sample, and to be learned


def test_the_order_of_partitions_does_not_matter():
    order = [slice(600, 900), slice(0, 10), slice(10, 600)]
    moved = da.concatenate([da.from_array(X[part]) for part in order])
    y = da.concatenate([da.from_array(NUMBERS[part]) for part in order])
    found = KernelRegressor(fastfood()).fit(moved, y)
    whole = KernelRegressor(fastfood()).fit(X, NUMBERS)
    assert_allclose(found.predict(X), whole.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_the_automatic_choice_is_that_of_one_machine():
    whole = KernelRegressor(random_state=0).fit(local_source(X, target=NUMBERS))
    found = KernelRegressor(random_state=0).fit(chunked(X), chunked(NUMBERS))
    assert found.feature_map_.choice_.sentence == whole.feature_map_.choice_.sentence
    assert_allclose(found.feature_map_.length_scale_, whole.feature_map_.length_scale_, rtol=1e-9)
    assert found.alpha_ == pytest.approx(whole.alpha_, rel=1e-9)
    assert_allclose(found.predict(X), whole.predict(X), rtol=1e-9, atol=1e-9)


def test_columns_may_be_in_several_chunks_and_rows_sparse():
    S = sp.random(400, 30, 0.2, format="csr", random_state=0)
    y = np.asarray(S.sum(axis=1)).ravel()
    whole = KernelRegressor(fastfood()).fit(S, y)
    split = da.from_array(S.toarray(), chunks=(100, 7))
    parts = [dask.delayed(S[i : i + 100]) for i in range(0, 400, 100)]
    meta = sp.csr_matrix((0, 30))
    sparse = da.concatenate([da.from_delayed(part, (100, 30), meta=meta) for part in parts])
    for rows in (split, sparse):
        found = KernelRegressor(fastfood()).fit(rows, da.from_array(y, chunks=100))
        assert_allclose(found.predict(rows).compute(), whole.predict(S), rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------ data frames


def test_frames_with_strings_and_missing_values():
    frame = dd.from_pandas(FRAME, npartitions=4)
    whole = KernelRegressor(fastfood()).fit(local_source(FRAME, target="target"))
    expected = whole.predict(FRAME)
    named = KernelRegressor(fastfood()).fit(source(frame, target="target"))
    given = KernelRegressor(fastfood()).fit(frame.drop(columns="target"), frame["target"])
    for found in (named, given):
        assert_allclose(found.predict(FRAME), expected, rtol=1e-9, atol=1e-9)
        assert_allclose(found.predict(frame).compute(), expected, rtol=1e-9, atol=1e-9)


@pytest.fixture
def parquet(tmp_path):
    """A data frame of five Parquet files."""
    for number in range(5):
        rows = FRAME[180 * number : 180 * (number + 1)]
        rows.assign(label=LABELS[rows.index]).to_parquet(tmp_path / f"{number}.parquet")
    return dd.read_parquet(tmp_path)


@pytest.mark.parametrize("columns", [["a", "c"], ["a", "b", "city"]])
def test_rows_and_targets_may_be_columns_of_several_parquet_files(parquet, columns):
    rows, y = parquet[columns], parquet["target"]
    weight = parquet["c"].abs()
    model = KernelRegressor(fastfood(), alpha=1e-3)
    whole = model.fit(local_source(FRAME[[*columns, "target"]], target="target"))
    expected = whole.predict(FRAME[columns])
    found = model.fit(rows, y)
    assert found.statistics_.n_rows == 900
    assert_allclose(found.predict(FRAME[columns]), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(found.predict(rows).compute(), expected, rtol=1e-9, atol=1e-9)
    weighted = model.fit(rows, y, sample_weight=weight).predict(FRAME[columns])
    whole = model.fit(local_source(FRAME[columns], target=NUMBERS, weight=FRAME["c"].abs()))
    assert_allclose(weighted, whole.predict(FRAME[columns]), rtol=1e-9, atol=1e-9)


def test_differences_are_rounding_errors_times_the_condition_of_the_problem():
    rows = X[:, [0, 2]]  # 32 smooth features of two columns without noise are nearly dependent
    smooth = np.sin(rows[:, 0]) + rows[:, 1]
    whole = KernelRegressor(fastfood()).fit(rows, smooth)
    found = KernelRegressor(fastfood()).fit(chunked(rows), chunked(smooth))
    Z = whole.feature_map_.transform(rows)
    sizes = np.linalg.eigvalsh(np.cov(Z.T) * 900)
    condition = sizes[-1] / (sizes[0] + whole.alpha_)
    assert condition > 1e8
    assert found.alpha_ == pytest.approx(whole.alpha_, rel=1e-9)
    difference = np.abs(found.predict(rows) - whole.predict(rows)).max()
    assert difference <= condition * np.finfo(float).eps * smooth.std()


def test_predictions_of_parquet_files_have_the_partitions_of_the_rows(parquet):
    model = KernelRegressor(fastfood()).fit(FRAME[["a", "c"]], NUMBERS)
    found = model.predict(parquet[["a", "c"]])
    assert found.numblocks == (parquet.npartitions,) == (5,)
    expected = model.predict(FRAME[["a", "c"]])
    assert np.array_equal(found.blocks[1].compute(), expected[180:360])
    assert np.array_equal(
        model.predict(parquet[["a", "c"]].partitions[4]).compute(), expected[720:]
    )


def test_score_of_collections_is_that_of_arrays(parquet):
    rows = FRAME[["a", "c"]]
    regressor = KernelRegressor(fastfood()).fit(rows, SEVERAL)
    classifier = KernelClassifier(fastfood()).fit(rows, LABELS)
    several = chunked(SEVERAL, (180,) * 5)
    lazy = parquet[["a", "c"]]
    assert regressor.score(lazy, several) == pytest.approx(regressor.score(rows, SEVERAL))
    assert classifier.score(lazy, parquet["label"]) == pytest.approx(classifier.score(rows, LABELS))
    weights = chunked(WEIGHTS, (180,) * 5)
    assert regressor.score(lazy, several, weights) == pytest.approx(
        regressor.score(rows, SEVERAL, WEIGHTS)
    )
    assert classifier.score(lazy, parquet["label"], weights) == pytest.approx(
        classifier.score(rows, LABELS, WEIGHTS)
    )
    plain = KernelRegressor(fastfood()).fit(X, NUMBERS)
    assert plain.score(chunked(X), chunked(NUMBERS)) == pytest.approx(plain.score(X, NUMBERS))
    with pytest.raises(DataError, match="no target"):
        plain.score(chunked(X))
    with pytest.raises(PartitionError, match=r"partition 1: Input target contains missing values"):
        plain.score(chunked(X), chunked(np.where(np.arange(900) == 400, np.nan, NUMBERS)))


def test_partitions_of_unknown_length():
    frame = dd.from_pandas(FRAME, npartitions=4).query("a > 0")
    local = FRAME.query("a > 0")
    found = KernelRegressor(fastfood()).fit(source(frame, target="target"))
    whole = KernelRegressor(fastfood()).fit(local_source(local, target="target"))
    assert found.statistics_.n_rows == len(local)
    assert_allclose(found.predict(FRAME), whole.predict(FRAME), rtol=1e-9, atol=1e-9)
    predicted = found.predict(frame)
    assert np.isnan(predicted.shape[0])
    assert predicted.compute().shape == (len(local),)


# ------------------------------------------------------------ predictions


def test_predictions_are_lazy_collections():
    rows = chunked(X)
    classifier = KernelClassifier(fastfood()).fit(X, LABELS)
    regressor = KernelRegressor(fastfood()).fit(X, NUMBERS)
    pca = KernelPCA(3, fastfood()).fit(X)
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
        lazy = {
            "labels": classifier.predict(rows),
            "probabilities": classifier.predict_proba(rows),
            "scores": classifier.decision_function(rows),
            "numbers": regressor.predict(rows),
            "components": pca.transform(rows),
            "features": regressor.feature_map_.transform(rows.astype(np.float32)),
        }
        spread = regressor.predict(rows, return_std=True)[1]
    expected = {
        "labels": classifier.predict(X),
        "probabilities": classifier.predict_proba(X),
        "scores": classifier.decision_function(X),
        "numbers": regressor.predict(X),
        "components": pca.transform(X),
        "features": regressor.feature_map_.transform(X.astype(np.float32)),
    }
    for name, found in lazy.items():
        assert isinstance(found, da.Array)
        assert found.chunks[0] == rows.chunks[0]
        assert (found.shape, found.dtype) == (expected[name].shape, expected[name].dtype), name
        assert found.compute().dtype == found.dtype
        assert np.array_equal(found.compute(), expected[name]), name
    assert_allclose(spread.compute(), regressor.predict(X, return_std=True)[1])


def test_empty_partitions_are_predicted():
    model = KernelRegressor(fastfood()).fit(X, NUMBERS)
    rows = chunked(X, (100, 0, 800))
    assert np.array_equal(model.predict(rows).compute(), model.predict(X))


# ------------------------------------------------------------ partitions that are not as others


def with_part(number, part):
    """Three partitions, one of which is replaced."""
    parts = [X[:300], X[300:600], X[600:]]
    parts[number] = part
    return da.concatenate(
        [da.from_delayed(dask.delayed(rows), (300, 4), dtype=float) for rows in parts]
    )


STRANGE = {
    "contains infinity": np.where(np.arange(1200).reshape(300, 4) == 7, np.inf, X[300:600]),
    "3 columns, where other partitions have 4": X[300:600, :3],
    "must be numbers": X[300:600].astype(str),
    "299": X[300:599],
}


@pytest.mark.parametrize("sentence", STRANGE)
def test_a_bad_partition_is_named_and_nothing_is_lost(sentence):
    model = KernelRegressor(fastfood()).fit(X, NUMBERS)
    before = pickle.dumps(model)
    with pytest.raises(PartitionError, match=rf"(?s)^partition 1: .*{sentence}"):
        model.fit(with_part(1, STRANGE[sentence]), chunked(NUMBERS))
    assert pickle.dumps(model) == before
    model.fit(with_part(1, X[300:600]), chunked(NUMBERS))
    assert model.statistics_.n_rows == 900


@pytest.mark.parametrize("solver", ["onepass", "iterative"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_partition_of_a_missing_target_is_named(bad, solver):
    numbers = chunked(np.where(np.arange(900) == 700, bad, NUMBERS))
    with pytest.raises(PartitionError, match=r"^partition 2: .*(NaN|infinity)"):
        KernelRegressor(fastfood(), solver=solver).fit(chunked(X), numbers)
    labels = chunked(np.where(np.arange(900) == 300, bad, NUMBERS > 0))
    with pytest.raises(PartitionError, match=r"^partition 1: .*(NaN|infinity)"):
        KernelClassifier(fastfood(), solver=solver).fit(chunked(X), labels)
    weights = chunked(np.where(np.arange(900) == 2, bad, WEIGHTS))
    with pytest.raises(PartitionError, match=r"^partition 0: .*sample_weight"):
        KernelRegressor(fastfood(), solver=solver).fit(chunked(X), chunked(NUMBERS), weights)


def test_other_precisions_and_single_classes_are_no_error():
    mixed = with_part(1, X[300:600].astype(np.float32))
    rounded = np.concatenate([X[:300], X[300:600].astype(np.float32), X[600:]])
    found = KernelRegressor(fastfood()).fit(mixed, chunked(NUMBERS))
    whole = KernelRegressor(fastfood()).fit(rounded, NUMBERS)
    assert_allclose(found.predict(X), whole.predict(X), rtol=1e-9, atol=1e-9)
    order = np.argsort(LABELS, kind="stable")
    sizes = tuple(np.unique(LABELS, return_counts=True)[1].tolist())
    sorted_rows = chunked(X[order], sizes), chunked(LABELS[order], sizes)
    found = KernelClassifier(fastfood()).fit(*sorted_rows)
    whole = KernelClassifier(fastfood()).fit(X, LABELS)
    assert_allclose(found.decision_function(X), whole.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_missing_values_of_arrays_are_filled_as_on_one_machine(chunks):
    gaps = np.where(np.arange(3600).reshape(900, 4) % 7 == 0, np.nan, X)
    whole = KernelRegressor(fastfood()).fit(gaps, NUMBERS)
    found = KernelRegressor(fastfood()).fit(chunked(gaps, chunks), chunked(NUMBERS, chunks))
    assert_allclose(found.predict(gaps), whole.predict(gaps), rtol=1e-9, atol=1e-9)
    assert_allclose(found.predict(chunked(gaps, chunks)).compute(), found.predict(gaps))


def test_partitions_of_other_types_are_explained_in_predictions():
    model = KernelRegressor(fastfood()).fit(FRAME[[*"acd"]], NUMBERS)
    parts = [FRAME[:450], FRAME[450:].assign(c="many")]
    frame = dd.from_map(lambda i: parts[i], [0, 1], meta=FRAME)
    with pytest.raises(DataError, match=r"'c' has values of the type .*string.*on numbers"):
        model.predict(frame).compute()


def test_columns_of_frames_are_checked():
    parts = [FRAME[:450], FRAME[450:].rename(columns={"c": "z"})]
    frame = dd.from_delayed([dask.delayed(part) for part in parts], meta=FRAME, verify_meta=False)
    with pytest.raises(PartitionError, match="partition 1: columns are missing: c"):
        KernelRegressor(fastfood()).fit(source(frame, target="target"))
    parts[1] = FRAME[450:].assign(c="many")
    frame = dd.from_delayed([dask.delayed(part) for part in parts], meta=FRAME, verify_meta=False)
    with pytest.raises(PartitionError, match="partition 1: the column 'c' has values of the type"):
        KernelRegressor(fastfood()).fit(source(frame, target="target"))


@pytest.mark.parametrize(
    ("rows", "y", "sentence"),
    [
        (chunked(X), chunked(NUMBERS[:800], (800,)), "900 rows, but 800"),
        (chunked(X), NUMBERS[:5], "900 rows, but 5"),
        (chunked(NUMBERS), chunked(NUMBERS), "two axes"),
        (dask.delayed(X), NUMBERS, "Dask array with two axes or a Dask data frame"),
        (dd.from_pandas(FRAME, npartitions=3), chunked(NUMBERS, (900,)), "3 partitions"),
    ],
)
def test_what_does_not_belong_together_is_refused(rows, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        KernelRegressor(fastfood()).fit(rows, y)


def test_rows_do_not_come_one_after_the_other():
    rows = source(chunked(X), target=chunked(NUMBERS))
    with pytest.raises(DataError, match="on a cluster"):
        rows.blocks()
    assert isinstance(rows, DaskSource)
    assert (rows.n_partitions, rows.shape) == (3, (900, 4))


# ------------------------------------------------------------ the tree


def test_the_tree_depends_on_the_number_of_leaves_alone():
    for n in range(1, 40):
        assert tree(map(str, range(n)), lambda a, b: f"{a} {b}") == " ".join(map(str, range(n)))
    assert tree([], min) is None
    depth = tree([0] * 1000, lambda a, b: 1 + max(a, b))
    assert depth <= 14
    waiting = []

    def leaves():
        for number in range(1000):
            waiting.append(number)
            yield {number}

    most = 0

    def combine(a, b):
        nonlocal most
        most = max(most, len(waiting))
        waiting.pop()
        return a | b

    assert len(tree(leaves(), combine)) == 1000
    assert most <= 11


def test_files_are_cut_into_partitions_of_bounded_size():
    sizes = {n: number_of_partitions(n) for n in (0, 1, 4096, 10**5, 10**7, 10**9)}
    assert sizes[0] == sizes[1] == sizes[4096] == 1
    assert all(n / parts <= 2**18 for n, parts in sizes.items())


def test_weights_of_the_client_are_those_of_the_same_rows_in_every_partition():
    weights = (np.arange(900) % 7).astype(float)
    rows = source(chunked(X), target=chunked(NUMBERS)).with_weights(weights)
    expected = KernelRegressor(fastfood()).fit(X, NUMBERS, weights)
    found = KernelRegressor(fastfood()).fit(rows)
    assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------ maps of all rows


@pytest.mark.parametrize("power_iterations", [0, 1])
def test_tefm_sees_all_rows_of_all_partitions(power_iterations):
    tefm = TEFM(fastfood(), 12, power_iterations=power_iterations, random_state=0)
    whole = tefm.fit(X).transform(X)
    found = tefm.fit(chunked(X)).transform(X)
    assert_allclose(found @ found.T, whole @ whole.T, atol=1e-9)
    model = KernelRegressor(tefm).fit(chunked(X), chunked(NUMBERS))
    expected = KernelRegressor(tefm).fit(X, NUMBERS).predict(X)
    assert_allclose(model.predict(X), expected, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------ dask_ml


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of dask_ml itself, about its imports
def test_the_wrappers_of_dask_ml_work():
    wrappers = pytest.importorskip("dask_ml.wrappers", reason="dask_ml is not installed")
    whole = KernelRegressor(fastfood()).fit(X, NUMBERS)
    wrapped = wrappers.ParallelPostFit(KernelRegressor(fastfood())).fit(X, NUMBERS)
    assert_allclose(wrapped.predict(chunked(X)).compute(), whole.predict(X))
    classifier = wrappers.ParallelPostFit(KernelClassifier(fastfood())).fit(X, LABELS)
    expected = KernelClassifier(fastfood()).fit(X, LABELS).predict_proba(X)
    assert_allclose(classifier.predict_proba(chunked(X)).compute(), expected)
    step_by_step = wrappers.Incremental(KernelRegressor(fastfood()), shuffle_blocks=False)
    step_by_step.fit(chunked(X), chunked(NUMBERS))
    assert step_by_step.estimator_.statistics_.n_rows == 900
    assert_allclose(step_by_step.predict(chunked(X)).compute(), whole.predict(X), atol=1e-8)
