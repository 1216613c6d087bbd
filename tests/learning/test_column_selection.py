"""Tools of scikit-learn that choose columns take the importances, not the weights of features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.inspection import permutation_importance

from kitchenette import AutoMap, Fastfood, KernelClassifier, KernelRegressor, RandomMaclaurin
from kitchenette.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6))
Y = X[:, 1] + np.sin(X[:, 4])


def models():
    fastfood = Fastfood(Gaussian(4.0), n_components=128, random_state=0)
    return [(KernelRegressor(fastfood), Y), (KernelClassifier(fastfood), Y > 0)]


@pytest.mark.parametrize(("model", "y"), models(), ids=["regressor", "classifier"])
def test_select_from_model_and_rfe_find_the_columns_of_the_signal(model, y):
    for chosen in (
        SelectFromModel(model, threshold="mean").fit(X, y),
        RFE(model, n_features_to_select=2).fit(X, y),
    ):
        assert chosen.get_support(indices=True).tolist() == [1, 4]
        assert chosen.transform(X).shape == (400, 2)


@pytest.mark.slow
def test_rfecv_finds_how_many_columns_matter():
    model, y = models()[0]
    assert RFECV(model, step=1, cv=3).fit(X, y).get_support(indices=True).tolist() == [1, 4]


@pytest.mark.parametrize(("model", "y"), models(), ids=["regressor", "classifier"])
def test_importances_are_one_for_each_column_and_weights_one_for_each_random_feature(model, y):
    model = model.fit(X, y)
    assert not hasattr(model, "coef_")
    assert model.feature_weights_.shape[-1] == 128
    assert model.feature_importances_.shape == (6,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    by_permutation = permutation_importance(model, X, y, random_state=0).importances_mean
    assert {*np.argsort(by_permutation)[-2:]} == {*np.argsort(model.feature_importances_)[-2:]}


def test_importances_of_a_frame_are_one_for_each_column_also_for_strings():
    pd = pytest.importorskip("pandas")
    colors = np.array(["red", "green", "blue"])[RNG.integers(0, 3, 400)]
    frame = pd.DataFrame(X[:, :3], columns=[*"abc"]).assign(color=colors)
    y = X[:, 1] + 2 * (colors == "red")
    for feature_map in (AutoMap(32, random_state=0), models()[0][0].feature_map):
        model = KernelRegressor(feature_map).fit(frame, y)
        assert model.feature_importances_.shape == (4,)
        assert {*np.argsort(model.feature_importances_)[-2:]} == {1, 3}
    chosen = SelectFromModel(model, threshold=-np.inf, max_features=2).fit(frame, y)
    assert chosen.get_feature_names_out().tolist() == ["b", "color"]


def test_where_there_are_no_importances_a_sentence_says_why():
    model = KernelRegressor(RandomMaclaurin(n_components=64, random_state=0)).fit(X, Y)
    with pytest.raises(AttributeError, match="feature map must be AutoMap, Fastfood"):
        _ = model.feature_importances_
    model = KernelRegressor(Fastfood(n_components=64, random_state=0), solver="iterative").fit(X, Y)
    with pytest.raises(AttributeError, match="needs the statistics of one pass"):
        _ = model.feature_importances_


def test_the_choice_of_the_default_map_is_in_one_place_for_arrays_and_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    import kitchenette

    frame = pd.DataFrame(X, columns=[*"abcdef"]).assign(color=["red", "green"] * 200)
    missing = X.copy()
    missing[3, 1] = np.nan
    for rows in (X, frame, missing):
        model = KernelRegressor(AutoMap(32, random_state=0)).fit(rows[:150], Y[:150])
        assert "rows" in model.feature_map_.choice_.sentence
        kitchenette.save(model, tmp_path / "model")
        again = kitchenette.load(tmp_path / "model")
        assert again.feature_map_.choice_.sentence == model.feature_map_.choice_.sentence
    told = KernelRegressor(Fastfood(n_components=64, random_state=0)).fit(frame, Y)
    assert not hasattr(told.feature_map_, "choice_")
