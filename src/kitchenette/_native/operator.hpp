// Operators, which compute features of rows.
//
// An operator is immutable and thread-safe. Its features are divided into parts that can be
// computed independently of each other. The features of a row are bitwise independent of the
// number of threads, of the other rows of a call and of the parts that are computed together.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "drivers.hpp"

namespace kitchenette {

// The division of rows into units that are computed together: groups of Pace::rows rows, and the
// last few rows one by one.
class Units {
  public:
    Units(Size n_rows, const Pace& pace)
        : n_rows_(n_rows),
          size_(pace.rows),
          last_rows_(n_rows % pace.rows <= pace.few ? n_rows % pace.rows : 0),
          groups_(ceil_divide(n_rows - last_rows_, pace.rows)) {}
    Size count() const { return groups_ + last_rows_; }
    Size first_row(Size unit) const {
        return unit < groups_ ? unit * size_ : n_rows_ - last_rows_ + (unit - groups_);
    }
    Size rows(Size unit) const {
        return unit < groups_ ? std::min(size_, n_rows_ - last_rows_ - unit * size_) : 1;
    }

  private:
    Size n_rows_, size_, last_rows_, groups_;
};

template <class T> class Operator {
  public:
    Operator(Size n_columns, Size n_features) : n_columns_(n_columns), n_features_(n_features) {}
    virtual ~Operator() = default;
    Operator(const Operator&) = delete;
    Operator& operator=(const Operator&) = delete;

    Size n_columns() const { return n_columns_; }
    Size n_features() const { return n_features_; }
    virtual Size n_parts() const = 0;
    virtual Size first_feature(Size part) const = 0;  // of part n_parts: n_features
    virtual Size work() const = 0;                    // numbers per row, to weigh the work

    // False if writing part after part (see Piece::continued) repeats work that they share.
    virtual bool resumes() const { return true; }

    // The methods below take the vector code as an argument, because scratch memory must fit the
    // code that uses it, even if another instruction set is selected meanwhile.
    using Code = VectorCode<T>;
    virtual Pace pace(const Code& code) const = 0;

    // The size of the scratch memory that `write` needs for `count` rows.
    Size scratch_size(const Code& code, Size count, bool sparse) const {
        return unit_scratch_size(code, std::min(count, pace(code).rows), sparse);
    }

    // Writes a piece of any number of rows in the calling thread; false if a number is not finite.
    bool write(const Code& code, const Rows<T>& rows, const Piece& piece, const Output<T>& out,
               T* scratch) const;

    // Writes the features of all rows with all threads; false if a number is not finite.
    virtual bool run(const Code& code, const Rows<T>& rows, const Output<T>& out) const;

  protected:
    // The same for a piece of at most pace(code).rows rows.
    virtual Size unit_scratch_size(const Code& code, Size count, bool sparse) const = 0;
    virtual bool write_unit(const Code& code, const Rows<T>& rows, const Piece& piece,
                            const Output<T>& out, T* scratch) const = 0;

  private:
    Size n_columns_, n_features_;
};

template <class T> using SharedOperator = std::shared_ptr<const Operator<T>>;

// True if all numbers of these rows are finite.
template <class T> bool all_finite(const Rows<T>& rows, Size row, Size count);

// ---------------------------------------------------------------- operators with vector code

// Arrays that an operator keeps alive.
using Arrays = std::vector<std::shared_ptr<const void>>;

// An operator of one of the kinds in operator_kinds.hpp.
template <class T, template <class> class Parameters> class VectorOperator : public Operator<T> {
  public:
    using typename Operator<T>::Code;
    VectorOperator(const Parameters<T>& parameters, Arrays arrays)
        : Operator<T>(parameters.n_columns, parameters.n_features),
          parameters_(parameters),
          arrays_(std::move(arrays)) {}

    Size n_parts() const override { return parameters_.n_parts(); }
    Size first_feature(Size part) const override {
        return std::min(parameters_.n_features, part * parameters_.features_per_part());
    }
    Size work() const override { return parameters_.work(); }
    Pace pace(const Code& code) const override { return parameters_.pace(code.lanes); }

  protected:
    Size unit_scratch_size(const Code& code, Size count, bool sparse) const override {
        const OperatorCode<T, Parameters>& mine = code;
        return mine.scratch_size(parameters_, count, sparse);
    }
    bool write_unit(const Code& code, const Rows<T>& rows, const Piece& piece, const Output<T>& out,
                    T* scratch) const override {
        const bool fine = piece.first_part > 0 || !parameters_.checks_rows() ||
                          all_finite(rows, piece.row, piece.count);
        const OperatorCode<T, Parameters>& mine = code;
        return mine.write(parameters_, rows, piece, out, scratch) && fine;
    }

  private:
    Parameters<T> parameters_;
    Arrays arrays_;
};

// ---------------------------------------------------------------- operators made of others

// The second operator applied to the features of the first.
template <class T> class Chain : public Operator<T> {
  public:
    using typename Operator<T>::Code;
    Chain(SharedOperator<T> first, SharedOperator<T> second);
    Size n_parts() const override { return second_->n_parts(); }
    Size first_feature(Size part) const override { return second_->first_feature(part); }
    Size work() const override { return first_->work() + second_->work(); }
    bool resumes() const override { return false; }  // units of the second may be smaller
    Pace pace(const Code& code) const override;
    bool run(const Code& code, const Rows<T>& rows, const Output<T>& out) const override;

  protected:
    Size unit_scratch_size(const Code& code, Size count, bool sparse) const override;
    bool write_unit(const Code& code, const Rows<T>& rows, const Piece& piece, const Output<T>& out,
                    T* scratch) const override;

  private:
    Size stride() const;
    SharedOperator<T> first_, second_;
};

// The features of several operators side by side.
template <class T> class Concatenation : public Operator<T> {
  public:
    using typename Operator<T>::Code;
    explicit Concatenation(std::vector<SharedOperator<T>> operators);
    Size n_parts() const override { return first_parts_.back(); }
    Size first_feature(Size part) const override;
    Size work() const override;
    bool resumes() const override;
    Pace pace(const Code& code) const override;
    bool run(const Code& code, const Rows<T>& rows, const Output<T>& out) const override;

  protected:
    Size unit_scratch_size(const Code& code, Size count, bool sparse) const override;
    bool write_unit(const Code& code, const Rows<T>& rows, const Piece& piece, const Output<T>& out,
                    T* scratch) const override;

  private:
    Output<T> part_of(const Output<T>& out, std::size_t k) const;
    std::vector<SharedOperator<T>> operators_;
    std::vector<Size> first_parts_, first_features_;  // of each operator, and of the end
};

}  // namespace kitchenette
