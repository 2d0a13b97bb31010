#include "experiments/plot_file.hpp"

namespace flashbound {

void add_plot_file(const Options& options, Outcome& outcome) {
  if (!options.given("plot")) return;
  const Overwrite overwrite = options.flag("force") ? Overwrite::yes : Overwrite::no;
  outcome.files.push_back(std::make_unique<AtomicFile>(options.text("plot"), overwrite));
  outcome.files.back()->stream() << outcome.document.figure_svg;
}

}  // namespace flashbound
