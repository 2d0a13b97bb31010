#include "sim/graph.hpp"

#include "core/program_ranges.hpp"

#include <array>
#include <cstddef>
#include <map>

namespace flashbound {
namespace {

constexpr int kConstant = -1;

// Node numbers of a rectangle of words.
struct Words {
  Index cols = 0;
  std::vector<int> nodes{};
  int& at(Index row, Index col) { return nodes[static_cast<std::size_t>(row * cols + col)]; }
};

class GraphMachine {
 public:
  GraphMachine(const Program& program, const Schedule& schedule)
      : program_(program), schedule_(schedule), environment_(program.loops.size(), 0) {
    for (const TensorDecl& tensor : program.tensors) hbm_.push_back(initial(tensor));
  }

  ProgramGraph run() {
    visit_scope(program_.body);
    for (std::size_t t = 0; t < hbm_.size(); ++t) {
      if (program_.tensors[t].role != TensorRole::output) continue;
      for (const auto& [where, node] : hbm_[t]) {
        if (node != kConstant) graph_.nodes[static_cast<std::size_t>(node)].output = true;
      }
    }
    return std::move(graph_);
  }

 private:
  using Place = std::array<Index, 3>;  // split, row, column
  using Tensor = std::map<Place, int>;
  using TileKey = std::pair<int, Index>;  // tile and copy

  // Inputs, and start contents that a program reads without having written them, are inputs.
  Tensor initial(const TensorDecl& tensor) {
    Tensor words;
    const bool exists = tensor.role == TensorRole::input || tensor.initial != Content::undefined;
    if (!exists) return words;
    const std::size_t axes = tensor.axes.size();
    const Index rows = interval_of({tensor.axes[axes - 2], kNone}, schedule_, program_, {}).size();
    const Index cols = interval_of({tensor.axes[axes - 1], kNone}, schedule_, program_, {}).size();
    for (Index r = 0; r < rows; ++r) {
      for (Index c = 0; c < cols; ++c) words[{0, r, c}] = add_node({});
    }
    return words;
  }

  int add_node(std::vector<int> operands) {
    graph_.nodes.push_back({std::move(operands)});
    return static_cast<int>(graph_.nodes.size()) - 1;
  }

  void visit_scope(const std::vector<Statement>& body) {
    const std::size_t outer = resident_.size();
    for (const Statement& statement : body) visit(statement);
    while (resident_.size() > outer) {
      release(resident_.back());
      resident_.pop_back();
    }
  }

  void visit(const Statement& s) {
    switch (s.op) {
      case Op::kernel: return visit_scope(s.body);
      case Op::loop: return visit_loop(s);
      case Op::load: return load(s);
      case Op::store: return store(s);
      case Op::allocate: return make_resident(s.result);
      case Op::release: return release({s.a.tile, copy_of(s.a)});
      default: return compute(s);
    }
  }

  void visit_loop(const Statement& s) {
    const auto loop = static_cast<std::size_t>(s.loop);
    for_each_block(loop_blocks(program_.loops[loop].range, schedule_, environment_),
                   [&](Index block) {
                     environment_[loop] = block;
                     visit_scope(s.body);
                   });
  }

  const TileDecl& declared(const Operand& operand) const {
    return program_.tiles[static_cast<std::size_t>(operand.tile)];
  }
  Interval span(const Extent& extent) const {
    return interval_of(extent, schedule_, program_, environment_);
  }
  Index copy_of(const Operand& operand) const {
    return operand.copy == kNone ? 0 : environment_[static_cast<std::size_t>(operand.copy)];
  }

  void make_resident(const Operand& operand) {
    const TileDecl& tile = declared(operand);
    const auto make = [&](Index copy) {
      const Index cols = span(tile.cols).size();
      const auto size = static_cast<std::size_t>(span(tile.rows).size() * cols);
      tiles_[{operand.tile, copy}] = {cols, std::vector<int>(size, kConstant)};
      resident_.emplace_back(operand.tile, copy);
    };
    if (!tile.copied) return make(0);
    for_each_block(loop_blocks(tile.copies, schedule_, environment_), make);
  }

  Words& words(const Operand& operand) { return tiles_.at({operand.tile, copy_of(operand)}); }

  void release(const TileKey& key) {
    const auto found = tiles_.find(key);
    if (found == tiles_.end()) return;  // released before
    for (const int node : found->second.nodes) let_go(node);
    tiles_.erase(found);
  }

  // How many words of fast memory hold a node.
  void hold(int node) {
    if (node != kConstant) ++held_[node];
  }
  void let_go(int node) {
    if (node == kConstant || --held_[node] > 0) return;
    graph_.moves.push_back({PebbleOp::drop, node});
  }

  template <class Visit>
  void for_each_place(const Statement& s, const Operand& operand, const Visit& visit) {
    const TileDecl& tile = declared(operand);
    const Interval rows = span(tile.rows);
    const Interval cols = span(tile.cols);
    const Index split =
        s.region.size() == 3 ? environment_[static_cast<std::size_t>(s.region[0].loop)] : 0;
    for (Index r = rows.begin; r < rows.end; ++r) {
      for (Index c = cols.begin; c < cols.end; ++c) {
        visit(Place{split, r, c}, words(operand).at(r - rows.begin, c - cols.begin));
      }
    }
  }

  void load(const Statement& s) {
    make_resident(s.result);
    Tensor& tensor = hbm_[static_cast<std::size_t>(s.tensor)];
    for_each_place(s, s.result, [&](const Place& place, int& word) {
      word = tensor.at(place);
      if (word == kConstant) return;
      if (held_[word] == 0) graph_.moves.push_back({PebbleOp::load, word});
      hold(word);
    });
  }

  void store(const Statement& s) {
    Tensor& tensor = hbm_[static_cast<std::size_t>(s.tensor)];
    for_each_place(s, s.a, [&](const Place& place, int& word) {
      tensor[place] = word;
      if (word != kConstant) graph_.moves.push_back({PebbleOp::store, word});
    });
  }

  // word = f(word, others): in the word's place, or in a place of its own while it is a constant.
  void step(int& word, std::vector<int> others) {
    std::erase(others, kConstant);
    const bool in_place = word != kConstant;
    if (in_place) others.insert(others.begin(), word);
    const int node = add_node(std::move(others));
    const bool alone = in_place && held_[word] == 1;
    graph_.moves.push_back({PebbleOp::compute, node, alone ? word : -1});
    if (in_place) --held_[word];
    word = node;
    hold(node);
  }

  void compute(const Statement& s) {
    switch (s.op) {
      case Op::multiply_transposed: return multiply(s, Op::multiply_transposed);
      case Op::multiply: return multiply(s, Op::multiply);
      case Op::multiply_left_transposed: return multiply(s, Op::multiply_left_transposed);
      case Op::logits: return mask_scores(s);
      case Op::row_max_update: return row_max_update(s);
      case Op::exponentiate: return for_rows(s, [&](int& w, int a) { step(w, {a}); });
      case Op::rescale:
        return for_rows(s, [&](int& w, int a) {
          if (w != kConstant) step(w, {a});
        });
      case Op::divide:
        return for_rows(s, [&](int& w, int a) {
          if (w != kConstant) step(w, {a});
        });
      case Op::row_sum_update: return row_sum_update(s);
      case Op::scale_add: return scale_add(s);
      case Op::lse: return lse(s);
      case Op::row_dot: return row_dot(s);
      case Op::softmax_gradient: return softmax_gradient(s);
      default: return;  // logits_gradient scales and masks
    }
  }

  void multiply(const Statement& s, Op op) {
    Words& out = words(s.result);
    Words& a = words(s.a);
    Words& b = words(s.b);
    const Index rows = static_cast<Index>(out.nodes.size()) / out.cols;
    const Index inner =
        op == Op::multiply_left_transposed ? static_cast<Index>(a.nodes.size()) / a.cols : a.cols;
    for (Index r = 0; r < rows; ++r) {
      for (Index c = 0; c < out.cols; ++c) {
        for (Index k = 0; k < inner; ++k) {
          const int left = op == Op::multiply_left_transposed ? a.at(k, r) : a.at(r, k);
          const int right = op == Op::multiply_transposed ? b.at(c, k) : b.at(k, c);
          if (left == kConstant || right == kConstant) continue;  // a weight of zero
          step(out.at(r, c), {left, right});
        }
      }
    }
  }

  void mask_scores(const Statement& s) {
    const Interval rows = span(declared(s.result).rows);
    const Interval keys = span(declared(s.result).cols);
    for (Index r = rows.begin; r < rows.end; ++r) {
      for (Index k = keys.begin; k < keys.end; ++k) {
        if (schedule_.visible(r, k)) continue;
        int& word = words(s.result).at(r - rows.begin, k - keys.begin);
        let_go(word);
        word = kConstant;
      }
    }
  }

  template <class Each>
  void for_rows(const Statement& s, const Each& each) {
    Words& out = words(s.result);
    Words& a = words(s.a);
    for (std::size_t w = 0; w < out.nodes.size(); ++w) {
      const bool score = s.op == Op::exponentiate && out.nodes[w] == kConstant;
      if (!score) each(out.nodes[w], a.nodes[w / static_cast<std::size_t>(out.cols)]);
    }
  }

  // The new maximum grows in a word of its own, that of the factor; the factor then takes the word
  // of the old maximum.
  void row_max_update(const Statement& s) {
    Words& max = words(s.result);
    Words& scores = words(s.a);
    for (std::size_t r = 0; r < max.nodes.size(); ++r) {
      const int old = max.nodes[r];
      int grown = kConstant;
      for (Index c = 0; c < scores.cols; ++c) {
        const int score = scores.at(static_cast<Index>(r), c);
        if (score == kConstant) continue;
        step(grown, grown == kConstant ? std::vector<int>{old, score} : std::vector<int>{score});
      }
      if (grown == kConstant) continue;  // nothing seen
      max.nodes[r] = grown;
      if (old == kConstant) continue;  // the factor is zero
      if (!s.b.present()) {
        let_go(old);
        continue;
      }
      int factor = old;
      step(factor, {grown});
      words(s.b).nodes[r] = factor;
    }
  }

  void row_sum_update(const Statement& s) {
    Words& sum = words(s.result);
    Words& a = words(s.a);
    for (std::size_t r = 0; r < sum.nodes.size(); ++r) {
      for (Index c = 0; c < a.cols; ++c) {
        const int weight = a.at(static_cast<Index>(r), c);
        if (weight != kConstant) step(sum.nodes[r], {weight});
      }
    }
  }

  void scale_add(const Statement& s) {
    Words& out = words(s.result);
    Words& a = words(s.a);
    Words& b = words(s.b);
    for (std::size_t w = 0; w < out.nodes.size(); ++w) {
      const int factor = a.nodes[w / static_cast<std::size_t>(out.cols)];
      if (factor != kConstant && b.nodes[w] != kConstant) step(out.nodes[w], {factor, b.nodes[w]});
    }
  }

  void lse(const Statement& s) {
    Words& out = words(s.result);
    for (std::size_t r = 0; r < out.nodes.size(); ++r) {
      const int max = words(s.a).nodes[r];
      if (max != kConstant) step(out.nodes[r], {max, words(s.b).nodes[r]});
    }
  }

  void row_dot(const Statement& s) {
    Words& out = words(s.result);
    Words& a = words(s.a);
    for (std::size_t r = 0; r < out.nodes.size(); ++r) {
      for (Index c = 0; c < a.cols; ++c) {
        const auto row = static_cast<Index>(r);
        step(out.nodes[r], {a.at(row, c), words(s.b).at(row, c)});
      }
    }
  }

  void softmax_gradient(const Statement& s) {
    Words& out = words(s.result);
    Words& p = words(s.a);
    Words& delta = words(s.b);
    for (std::size_t w = 0; w < out.nodes.size(); ++w) {
      step(out.nodes[w], {p.nodes[w], delta.nodes[w / static_cast<std::size_t>(out.cols)]});
    }
  }

  const Program& program_;
  const Schedule& schedule_;
  Environment environment_;
  ProgramGraph graph_;
  std::vector<Tensor> hbm_;
  std::map<TileKey, Words> tiles_;
  std::vector<TileKey> resident_;  // in order of arrival
  std::map<int, int> held_;
};

}  // namespace

ProgramGraph program_graph(const Program& program, const Schedule& schedule) {
  return GraphMachine(program, schedule).run();
}

}  // namespace flashbound
