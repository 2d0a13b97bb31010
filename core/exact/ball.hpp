// Owners of Arb's numbers, so that values and containers free them. Arb itself (Johansson 2017,
// "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic") stays inside core's
// sources: no public header includes this one.
#pragma once

#include "core/int128.hpp"

#include <arb.h>
#include <flint/fmpq.h>
#include <utility>

namespace flashbound {

// A real number enclosed by midpoint and radius.
class Ball {
 public:
  Ball() { arb_init(value_); }
  Ball(const Ball& other) : Ball() { arb_set(value_, other.value_); }
  Ball(Ball&& other) noexcept : Ball() { arb_swap(value_, other.value_); }
  Ball& operator=(const Ball& other) {
    arb_set(value_, other.value_);
    return *this;
  }
  Ball& operator=(Ball&& other) noexcept {
    arb_swap(value_, other.value_);
    return *this;
  }
  ~Ball() { arb_clear(value_); }
  arb_ptr get() { return value_; }
  arb_srcptr get() const { return value_; }

 private:
  arb_t value_;
};

// Balls in rows and columns, row-major and zero at first.
class BallMatrix {
 public:
  BallMatrix() = default;
  BallMatrix(Index rows, Index cols)
      : rows_(rows), cols_(cols), balls_(_arb_vec_init(rows * cols)) {}
  BallMatrix(BallMatrix&& other) noexcept { swap(other); }
  BallMatrix& operator=(BallMatrix&& other) noexcept {
    swap(other);
    return *this;
  }
  BallMatrix(const BallMatrix&) = delete;
  BallMatrix& operator=(const BallMatrix&) = delete;
  ~BallMatrix() {
    if (balls_ != nullptr) _arb_vec_clear(balls_, rows_ * cols_);
  }
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  arb_ptr operator()(Index r, Index c) { return balls_ + r * cols_ + c; }
  arb_srcptr operator()(Index r, Index c) const { return balls_ + r * cols_ + c; }

 private:
  void swap(BallMatrix& other) noexcept {
    std::swap(rows_, other.rows_);
    std::swap(cols_, other.cols_);
    std::swap(balls_, other.balls_);
  }
  Index rows_ = 0;
  Index cols_ = 0;
  arb_ptr balls_ = nullptr;
};

// An exact dyadic number, or an infinity.
class Dyadic {
 public:
  Dyadic() { arf_init(value_); }
  explicit Dyadic(double value) : Dyadic() { arf_set_d(value_, value); }
  Dyadic(const Dyadic& other) : Dyadic() { arf_set(value_, other.value_); }
  Dyadic(Dyadic&& other) noexcept : Dyadic() { arf_swap(value_, other.value_); }
  Dyadic& operator=(const Dyadic& other) {
    arf_set(value_, other.value_);
    return *this;
  }
  Dyadic& operator=(Dyadic&& other) noexcept {
    arf_swap(value_, other.value_);
    return *this;
  }
  ~Dyadic() { arf_clear(value_); }
  arf_ptr get() { return value_; }
  arf_srcptr get() const { return value_; }
  bool is_zero() const { return arf_is_zero(value_) != 0; }
  void operator+=(const Dyadic& other) {
    arf_add(value_, value_, other.value_, ARF_PREC_EXACT, ARF_RND_DOWN);
  }
  void operator-=(const Dyadic& other) {
    arf_sub(value_, value_, other.value_, ARF_PREC_EXACT, ARF_RND_DOWN);
  }
  void operator*=(const Dyadic& other) {
    arf_mul(value_, value_, other.value_, ARF_PREC_EXACT, ARF_RND_DOWN);
  }
  void add_product(const Dyadic& a, const Dyadic& b) {
    arf_addmul(value_, a.value_, b.value_, ARF_PREC_EXACT, ARF_RND_DOWN);
  }
  friend bool operator==(const Dyadic& a, const Dyadic& b) {
    return arf_equal(a.value_, b.value_) != 0;
  }
  friend bool operator<(const Dyadic& a, const Dyadic& b) {
    return arf_cmp(a.value_, b.value_) < 0;
  }

 private:
  arf_t value_;
};

// An exact fraction.
class Rational {
 public:
  Rational() { fmpq_init(value_); }
  explicit Rational(const Dyadic& value) : Rational() { arf_get_fmpq(value_, value.get()); }
  Rational(const Rational& other) : Rational() { fmpq_set(value_, other.value_); }
  Rational(Rational&& other) noexcept : Rational() { fmpq_swap(value_, other.value_); }
  Rational& operator=(const Rational& other) {
    fmpq_set(value_, other.value_);
    return *this;
  }
  Rational& operator=(Rational&& other) noexcept {
    fmpq_swap(value_, other.value_);
    return *this;
  }
  ~Rational() { fmpq_clear(value_); }
  const fmpq* get() const { return value_; }
  bool is_zero() const { return fmpq_is_zero(value_) != 0; }
  void operator+=(const Rational& other) { fmpq_add(value_, value_, other.value_); }
  // Adds a dyadic number over a positive integer.
  void add_quotient(const Dyadic& numerator, Index denominator) {
    Rational quotient(numerator);
    fmpq_div_ui(quotient.value_, denominator);
    *this += quotient;
  }

 private:
  static void fmpq_div_ui(fmpq_t value, Index denominator) {
    fmpz_t divisor;
    fmpz_init_set_si(divisor, denominator);
    fmpq_div_fmpz(value, value, divisor);
    fmpz_clear(divisor);
  }
  fmpq_t value_;
};

// FLINT keeps constants and free memory for each thread; a part of parallel work gives them back.
// Declared before the part's numbers, so that it ends after them.
class FlintThread {
 public:
  FlintThread() = default;
  FlintThread(const FlintThread&) = delete;
  FlintThread& operator=(const FlintThread&) = delete;
  ~FlintThread() { flint_cleanup(); }
};

}  // namespace flashbound
