// Output files are whole or not there.
#include "experiments/atomic_file.hpp"

#include "experiments/io_error.hpp"
#include "tests/experiments/rejection.hpp"
#include "tests/experiments/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>

namespace flashbound {
namespace {

using testing::contains;
using testing::read_file;
using testing::rejection;
using testing::write_file;

TEST_SUITE("experiments.atomic_file") {
  TEST_CASE("a committed file is there whole and nothing else is") {
    const testing::TemporaryFolder folder("atomic");
    const std::string path = folder.file("x.csv");
    {
      AtomicFile file(path, Overwrite::no);
      file.stream() << "half";
      CHECK(!std::filesystem::exists(path));
      CHECK(folder.entries() == 1);  // under its temporary name
      file.stream() << " and half";
      file.commit();
      CHECK(read_file(path) == "half and half");
    }
    CHECK(read_file(path) == "half and half");
    CHECK(folder.entries() == 1);
  }

  TEST_CASE("without commit nothing is left") {
    const testing::TemporaryFolder folder("atomic");
    { AtomicFile(folder.file("x.csv"), Overwrite::no).stream() << "half"; }
    CHECK(folder.entries() == 0);
    try {
      AtomicFile file(folder.file("x.csv"), Overwrite::no);
      file.stream() << "half";
      throw 1;
    } catch (int) {
    }
    CHECK(folder.entries() == 0);
  }

  TEST_CASE("a file that exists is kept unless it may be replaced") {
    const testing::TemporaryFolder folder("atomic");
    const std::string path = folder.file("x.csv");
    write_file(path, "old");
    CHECK(contains(rejection([&] { AtomicFile(path, Overwrite::no); }),
                   "it exists; --force replaces it"));
    CHECK(folder.entries() == 1);
    { AtomicFile(path, Overwrite::yes).stream() << "new"; }
    CHECK(read_file(path) == "old");  // not committed
    AtomicFile file(path, Overwrite::yes);
    file.stream() << "new";
    CHECK(read_file(path) == "old");
    file.commit();
    CHECK(read_file(path) == "new");
    CHECK(folder.entries() == 1);
  }

  TEST_CASE("a folder and a place without one are refused at once") {
    const testing::TemporaryFolder folder("atomic");
    CHECK(contains(rejection([&] { AtomicFile(folder.file(""), Overwrite::yes); }),
                   "must be a file, not a folder"));
    CHECK_THROWS_AS(AtomicFile(folder.file("none/x.csv"), Overwrite::no), IoError);
    CHECK(folder.entries() == 0);
  }

  TEST_CASE("a rename that fails is an IoError and leaves nothing behind") {
    const testing::TemporaryFolder folder("atomic");
    const std::string path = folder.file("x.csv");
    {
      AtomicFile file(path, Overwrite::no);
      file.stream() << "text";
      std::filesystem::create_directories(path + "/inside");  // came in between
      CHECK_THROWS_AS(file.commit(), IoError);
    }
    CHECK(folder.entries() == 1);
    CHECK(std::filesystem::is_directory(path));
  }

  TEST_CASE("a stream that failed is not committed") {
    const testing::TemporaryFolder folder("atomic");
    {
      AtomicFile file(folder.file("x.csv"), Overwrite::no);
      file.stream() << "text";
      file.stream().setstate(std::ios::badbit);
      CHECK_THROWS_AS(file.commit(), IoError);
    }
    CHECK(folder.entries() == 0);
  }
}

}  // namespace
}  // namespace flashbound
