// What has been published about a problem's IO, evaluated without the constants that the
// publications leave open: in elements a head, for square heads without a mask.
#pragma once

#include "core/number_format.hpp"
#include "core/problem.hpp"
#include "core/units.hpp"

#include <optional>
#include <string>

namespace flashbound {

// ", \"published\": [...]", a member of a JSON row; empty where nothing is about such a problem.
std::string published_json(const Problem& problem, NumberFormat dtype, Bytes sram);

// Bytes of all heads: N^2 d^2 / M from M = d^2 on, N^2 d / sqrt(M) below (Saha and Ye 2024),
// without constants. nullopt where they are not about such a problem.
std::optional<double> published_bytes(const Problem& problem, NumberFormat dtype, Bytes sram);

}  // namespace flashbound
