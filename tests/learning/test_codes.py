"""Output codes: separation, decoding, and that they cost no statistics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitchenette import LeastSquares
from kitchenette.learning import OutputCode


def hamming_distances(code):
    return [int(np.sum(a != b)) for i, a in enumerate(code.codewords) for b in code.codewords[:i]]


def column_kinds(code):
    """Columns, with complements made equal."""
    return {tuple(column * column[0]) for column in code.codewords.T}


def test_weights_for_a_code_are_those_of_one_hot_targets_times_the_code():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 300)
    Z = rng.normal(size=(300, 12)) + rng.normal(size=(6, 12))[labels] + 4
    code = OutputCode.random(6, 40, seed=0)
    one_hot = LeastSquares(12, 6).update(Z, np.eye(6)[labels])
    every_bit = LeastSquares(12, 40).update(Z, code.codewords[labels])
    for fit_intercept in (True, False):
        a = one_hot.solve(0.7, fit_intercept=fit_intercept)
        b = every_bit.solve(0.7, fit_intercept=fit_intercept)
        np.testing.assert_allclose(a.coef @ code.codewords, b.coef, atol=1e-12)
        np.testing.assert_allclose(a.intercept @ code.codewords, b.intercept, atol=1e-12)
        outputs = a.predict(Z) @ code.codewords
        for decoding in ("soft", "hamming"):
            decoded = code.decode(outputs, decoding)
            assert np.array_equal(decoded, code.decode(b.predict(Z), decoding))
    # One set of statistics even gives what the bits' own targets vary by.
    np.testing.assert_allclose(
        code.codewords.T @ one_hot.target_gram @ code.codewords, every_bit.target_gram, atol=1e-9
    )


@given(st.integers(2, 40), st.integers(0, 60), st.integers(0, 5))
@settings(deadline=None, max_examples=25)
def test_random_codes_have_distinct_words_of_the_length_asked_for(n_classes, more, seed):
    length = int(np.ceil(np.log2(n_classes))) + more
    code = OutputCode.random(n_classes, length, seed=seed)
    assert code.codewords.shape == (n_classes, length)
    assert set(np.unique(code.codewords)) == {-1, 1}
    assert code.distance == min(hamming_distances(code)) >= 1
    again = OutputCode.random(n_classes, length, seed=seed)
    assert np.array_equal(code.codewords, again.codewords)


def test_random_codes_are_well_separated_and_waste_no_column():
    code = OutputCode.random(10, seed=3)
    assert code.code_length == 200
    assert code.distance >= 84  # a single draw has 80 or so
    assert len(column_kinds(code)) == 200
    assert not np.any(np.all(code.codewords == code.codewords[0], axis=0))
    assert not np.array_equal(code.codewords, OutputCode.random(10, seed=4).codewords)


def test_columns_repeat_only_when_different_ones_run_out():
    code = OutputCode.random(4, 20, seed=0)
    assert len(column_kinds(code)) == 7
    assert (1, 1, 1, 1) not in column_kinds(code)
    assert len(column_kinds(OutputCode.random(4, 6, seed=0))) == 6


def test_many_classes_and_few_bits():
    assert OutputCode.random(64, 6, seed=0).distance == 1
    assert OutputCode.random(1000, 18, seed=0).distance >= 1
    assert OutputCode.random(2000, seed=0).code_length == 220


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 8, 10, 16, 17])
def test_hadamard_codes_are_equidistant(n_classes):
    code = OutputCode.hadamard(n_classes)
    order = code.code_length + 1
    assert order // 2 < n_classes <= order
    assert set(hamming_distances(code)) == {order // 2}
    assert len(column_kinds(code)) == code.code_length
    assert (1,) * n_classes not in column_kinds(code)


@pytest.mark.parametrize("decoding", ["soft", "hamming"])
def test_decoding_corrects_errors_up_to_half_the_distance(decoding):
    code = OutputCode.random(8, 31, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        outputs = code.codewords.astype(float)
        for row in outputs:
            row[rng.choice(31, (code.distance - 1) // 2, replace=False)] *= -1
        assert np.array_equal(code.decode(outputs, decoding), np.arange(8))


def test_decoding_equals_its_definitions():
    code = OutputCode.random(5, 12, seed=1)
    outputs = np.random.default_rng(0).normal(size=(200, 12))
    words = code.codewords.astype(float)
    squared = np.sum((outputs[:, None] - words) ** 2, axis=2)
    assert np.array_equal(code.decode(outputs), np.argmin(squared, axis=1))
    differing = np.sum(np.sign(outputs)[:, None] != words, axis=2)
    np.testing.assert_allclose(
        code.scores(outputs, "hamming"), 1 - 2 * differing / 12, rtol=0, atol=0.4 / 12 + 1e-12
    )
    decoded = code.decode(outputs, "hamming")
    assert np.array_equal(differing[np.arange(200), decoded], differing.min(axis=1))
    assert any(np.sum(row == row.min()) > 1 for row in differing)


def test_ties_go_to_the_soft_score_and_then_to_the_first_class():
    code = OutputCode([[1, 1, 1], [1, -1, -1], [-1, 1, -1]])
    # Signs + + -: one bit from the first and from the third word.
    assert code.decode([[0.1, 1.0, -0.9]], "hamming") == [2]
    assert code.decode([[0.9, 1.0, -0.1]], "hamming") == [0]
    assert code.decode([[0.0, 0.0, 0.0]], "hamming") == [0]
    assert code.decode([[0.0, 0.0, 0.0]]) == [0]
    assert code.decode([[0.0, -1.0, -1.0]], "hamming") == [1]


def test_a_code_may_be_given_as_zeros_and_ones():
    code = OutputCode([[0, 1, 1], [1, 0, 1]])
    assert np.array_equal(code.codewords, [[-1, 1, 1], [1, -1, 1]])
    assert code.codewords.dtype == np.int8
    assert np.array_equal(
        OutputCode([[True, False], [False, False]]).codewords, [[1, -1], [-1, -1]]
    )


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[1, -1]], "a row for each class, at least two"),
        ([1, -1], "A code is a matrix"),
        ([[1, 0], [-1, 1]], r"entries \+1 and -1, or 1 and 0"),
        ([[1, np.nan], [-1, 1]], "and no others"),
        ([["a", "b"], ["c", "d"]], "and no others"),
        ([[1, -1], [1, -1]], "Two classes have the same codeword"),
    ],
)
def test_bad_codes_get_a_sentence(matrix, sentence):
    with pytest.raises(ValueError, match=sentence):
        OutputCode(matrix)


def test_bad_arguments_get_a_sentence():
    with pytest.raises(ValueError, match="9 classes need at least 4 bits"):
        OutputCode.random(9, 3, seed=0)
    with pytest.raises(ValueError, match="n_classes must be a whole number of at least 2; got 1"):
        OutputCode.hadamard(1)
    code = OutputCode.hadamard(4)
    with pytest.raises(ValueError, match=r"outputs must have 3 columns.*shape \(2, 4\)"):
        code.decode(np.ones((2, 4)))
    with pytest.raises(ValueError, match="decoding must be one of 'soft', 'hamming'; got 'hard'"):
        code.decode(np.ones((2, 3)), "hard")
