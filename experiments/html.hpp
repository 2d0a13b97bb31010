// Results as one self-contained page.
#pragma once

#include "experiments/results.hpp"

#include <iosfwd>
#include <string>
#include <string_view>

namespace flashbound {

// Text as it may stand in HTML and SVG.
std::string escaped(std::string_view text);

// A page without scripts or outside references: the document's figure and table, what each column
// means, and the manifest. Everything that comes from data is escaped.
void write_html(std::ostream& out, const std::string& title, const Document& document,
                const std::string& manifest_json);

}  // namespace flashbound
