// Measurements as rows.
#pragma once

#include "experiments/numerics/measure.hpp"
#include "experiments/numerics_request.hpp"
#include "experiments/results.hpp"

#include <string>

namespace flashbound {

// Without rows.
Document numerics_document();

// One row: of a measurement, or of a point that is infeasible for a reason.
Row measured_row(const Document& document, const NumericsRequest& request,
                 const NumericsPoint& point, const Measurement& measurement);
Row infeasible_row(const Document& document, const NumericsRequest& request,
                   const NumericsPoint& point, const std::string& reason);

// What a table shows: where its rows differ, and the errors.
void finish_numerics_table(const NumericsRequest& request, Document& document);

}  // namespace flashbound
