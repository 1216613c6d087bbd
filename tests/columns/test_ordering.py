"""The order of strings that stand for numbers, months, weekdays or sizes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kitchenette import SRHT
from kitchenette.columns.ordering import in_order
from kitchenette.columns.table_columns import prepared_names
from kitchenette.data import source
from kitchenette.maps.table_map import TableMap

ORDERS = {
    "digits": ["-3", "-0.5", "0", "2", "10", "1e3"],
    "numbers inside": ["v0", "v1", "v9", "v10", "v100"],
    "intervals": ["2 to 5", "5 to 20", "10 to 12", "more"],
    "letters": ["a", "b", "c", "h"],
    "months": ["Jan", "feb", "March", "DEC"],
    "weekdays": ["Mon", "Tuesday", "wed", "Sun"],
    "sizes": ["XS", "S", "M", "L", "XL", "XXL"],
    "levels": ["very low", "low", "Medium", "high", "very_high"],
    "no order": ["Berlin", "Oslo", "jan", "low"],
    "none": [],
}


@pytest.mark.parametrize("name", ORDERS)
def test_words_have_the_order_of_what_they_stand_for(name):
    words = ORDERS[name]
    rng = np.random.default_rng(0)
    for _ in range(3):
        assert in_order(rng.permutation(words).tolist()) == words


def test_indicators_of_a_table_are_in_this_order():
    words = np.array(["10", "9", "8", "11"])[np.arange(40) % 4]
    frame = pd.DataFrame({"floor": words, "y": np.arange(40.0)})
    rows = source(frame, target="y", kinds={"floor": "category"})
    fitted = TableMap.fitted_on(
        SRHT(n_components=1, random_state=0), rows.schema.some(["floor"]), rows.sample(None, 0)
    )
    specification = fitted.specification_
    names = prepared_names(["floor"], specification.preparation, specification.vocabularies)
    assert names == [f"floor = {number}" for number in (8, 9, 10, 11)]
    prepared = specification.preparation.prepared(fitted.rows(frame[["floor"]]))
    np.testing.assert_array_equal(prepared[:4].argmax(axis=1), [2, 1, 0, 3])
