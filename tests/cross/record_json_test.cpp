// The event log as JSON: what it says of a problem small enough to write the answer down.
#include "core/programs.hpp"
#include "core/record.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace flashbound {
namespace {

using Json = nlohmann::json;

// Three keys in blocks of two, two queries in one block, causal: the second block of keys is seen
// in part, by the last query only.
Schedule small_schedule() {
  Schedule schedule;
  schedule.shape = {2, 3, 4, 5};
  schedule.mask.window_right = 0;
  schedule.tile = {.block_q = 2, .block_kv = 2};
  return schedule;
}

Json small_log() {
  return Json::parse(record_json(flash2_program(), small_schedule(), NumberFormat::fp16));
}

}  // namespace

TEST_SUITE("cross.record") {
  TEST_CASE("the log of flash2 on two queries and three keys is the listing executed by hand") {
    const std::vector<std::string> expected = {
        "kernel attention",
        "load q[0,2)x[0,4) 16 B",
        "allocate acc_o[0,2)x[0,5)",
        "allocate row_max[0,2)x[0,1)",
        "allocate row_sum[0,2)x[0,1)",
        // j = 0: keys 0 and 1, which both queries see
        "load k[0,2)x[0,4) 16 B",
        "allocate scores[0,2)x[0,2)",
        "multiply_transposed scores[0,2)x[0,2)",
        "logits scores[0,2)x[0,2) full",
        "load v[0,2)x[0,5) 20 B",
        "allocate rescale_factor[0,2)x[0,1)",
        "row_max_update row_max[0,2)x[0,1)",
        "exponentiate scores[0,2)x[0,2)",
        "rescale row_sum[0,2)x[0,1)",
        "row_sum_update row_sum[0,2)x[0,1)",
        "rescale acc_o[0,2)x[0,5)",
        "multiply acc_o[0,2)x[0,5)",
        "release rescale_factor[0,2)x[0,1)",
        "release v[0,2)x[0,5)",
        "release scores[0,2)x[0,2)",
        "release k[0,2)x[0,4)",
        // j = 1: key 2, ragged, for the last query alone
        "load k[2,3)x[0,4) 8 B",
        "allocate scores[0,2)x[2,3)",
        "multiply_transposed scores[0,2)x[2,3)",
        "logits scores[0,2)x[2,3) partial",
        "load v[2,3)x[0,5) 10 B",
        "allocate rescale_factor[0,2)x[0,1)",
        "row_max_update row_max[0,2)x[0,1)",
        "exponentiate scores[0,2)x[2,3)",
        "rescale row_sum[0,2)x[0,1)",
        "row_sum_update row_sum[0,2)x[0,1)",
        "rescale acc_o[0,2)x[0,5)",
        "multiply acc_o[0,2)x[0,5)",
        "release rescale_factor[0,2)x[0,1)",
        "release v[2,3)x[0,5)",
        "release scores[0,2)x[2,3)",
        "release k[2,3)x[0,4)",
        "divide acc_o[0,2)x[0,5)",
        "store acc_o[0,2)x[0,5) 20 B",
        "allocate lse[0,2)x[0,1)",
        "lse lse[0,2)x[0,1)",
        "store lse[0,2)x[0,1) 8 B",
        "release lse[0,2)x[0,1)",
        "release row_sum[0,2)x[0,1)",
        "release row_max[0,2)x[0,1)",
        "release acc_o[0,2)x[0,5)",
        "release q[0,2)x[0,4)",
    };
    const auto interval = [](const Json& ends) {
      return "[" + std::to_string(ends[0].get<int>()) + "," + std::to_string(ends[1].get<int>()) +
             ")";
    };
    std::vector<std::string> events;
    const Json log = small_log();
    for (const Json& event : log["events"]) {
      std::string line = event["op"].get<std::string>() + " ";
      if (event.contains("label")) {
        events.push_back(line + event["label"].get<std::string>());
        continue;
      }
      line += event["tile"].get<std::string>() + interval(event["rows"]) + "x" +
              interval(event["cols"]);
      if (event.contains("bytes")) line += " " + std::to_string(event["bytes"].get<int>()) + " B";
      if (event.contains("coverage")) line += " " + event["coverage"].get<std::string>();
      events.push_back(line);
    }
    REQUIRE(events.size() == expected.size());
    for (std::size_t at = 0; at < expected.size(); ++at) CHECK(events[at] == expected[at]);
  }

  TEST_CASE("the log names its program, its schedule and the running loops") {
    const Json log = small_log();
    CHECK(log["schema_version"] == 1);
    CHECK(log["algorithm"] == "flash2");
    CHECK(log["dtype"] == "fp16");
    CHECK(log["schedule"]["seqlen_kv"] == 3);
    CHECK(log["schedule"]["window_right"] == 0);
    const Json& last_load_of_v = log["events"][25];
    CHECK(last_load_of_v["tensor"] == "v");
    CHECK(last_load_of_v["loops"] == Json{{"i", 0}, {"j", 1}});
    CHECK(log["events"].back()["resident_elements"] == 0);
  }

  TEST_CASE("a split is named where a tensor has one") {
    Schedule schedule = small_schedule();
    schedule.tile.num_splits = 2;
    const Json log = Json::parse(record_json(split_kv_program(), schedule, NumberFormat::fp16));
    std::vector<int> splits;
    for (const Json& event : log["events"]) {
      if (event["op"] == "store" && event["tensor"] == "part_o") splits.push_back(event["split"]);
    }
    CHECK(splits == std::vector<int>{0, 1});
  }
}

}  // namespace flashbound
