// The rows of one point of a sweep.
#pragma once

#include "experiments/options.hpp"
#include "experiments/results.hpp"

namespace flashbound {

// count and tile: closed forms and searches, whose rows depend on their options alone.
bool can_sweep(const VerbText& verb);

// Throws ConfigError for options that the verb refuses, and for those that a sweep cannot take:
// files that a point would write.
void require_sweepable(const Options& options);

// The columns of the verb's rows, `point` among them.
Document sweep_document(const VerbText& verb);

// Appends the rows of a point. A combination that the verb refuses is a row with status infeasible
// and the reason.
void append_point(const Options& options, Index point, Document& document);

}  // namespace flashbound
