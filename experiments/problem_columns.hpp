// The columns that say which problem a row is about.
#pragma once

#include "core/problem.hpp"
#include "experiments/results.hpp"

#include <initializer_list>

namespace flashbound {

// A document with the problem's columns and `others`.
Document document_with_problem(std::initializer_list<std::string_view> others);

// Fills the problem's columns of a row.
void set_problem(const Document& document, Row& row, const Problem& problem);

}  // namespace flashbound
