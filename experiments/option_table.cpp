#include "experiments/option_table.hpp"

#include <array>

namespace flashbound {
namespace {

constexpr std::array<VerbText, 10> kVerbs{{
    {kVerify, "verify",
     "Cross-checks every part that this machine can run, on published shapes and on real input.",
     "verify [options]",
     "flashbound verify --report verify.html\n"
     "flashbound verify --problem llama-2-7b --format json --output verify.json"},
    {kCount, "count",
     "Counts what an algorithm reads, writes, holds and computes: closed form and machine.",
     "count --seqlen N [options]",
     "flashbound count --seqlen 4096 --num-heads 32 --head-dim 128 --mask causal --sram 192KiB\n"
     "flashbound count --algorithm flash2 --seqlen-q 1 --seqlen-kv 8192 --format json"},
    {kTile, "tile",
     "Finds the tile of each algorithm that moves least in a fast memory of a given size.",
     "tile --seqlen N --sram SIZE [options]",
     "flashbound tile --seqlen 8192 --head-dim 128 --sram 192KiB\n"
     "flashbound tile --seqlen 4096 --sram 228KiB --footprint kernel --algorithm flash2"},
    {kEnvelope, "envelope",
     "Finds the least that any tile of any algorithm moves, for every size of fast memory.",
     "envelope --seqlen N [options]",
     "flashbound envelope --seqlen 16384 --head-dim 128 --report envelope.html\n"
     "flashbound envelope --seqlen 4096 --algorithm flash1,flash2 --points all --format csv"},
    {kCurve, "curve",
     "Draws HBM bytes against fast memory for one algorithm, all sizes in one pass.",
     "curve --algorithm NAME --seqlen N [options]",
     "flashbound curve --algorithm flash2 --seqlen 4096 --policy lru --report curve.html\n"
     "flashbound curve --algorithm flash2 --seqlen 2048 --policy plru --ways 16 --cache "
     "256KiB,1MiB"},
    {kSweep, "sweep", "Runs count or tile at every combination of options, in shards that resume.",
     "sweep --of VERB --seqlen N,... [options of VERB]",
     "flashbound sweep --of count --seqlen 1024:65536:x2 --block-q 64,128 --method closed-form\n"
     "flashbound sweep --of tile --seqlen 8192 --sram 32KiB:1MiB:x2 --shard 2/8 --output 2.jsonl"},
    {kMerge, "merge",
     "Joins the files of a sweep's shards into the one that a single shard would have written.",
     "merge --input FILE,FILE,... --output FILE",
     "flashbound merge --input 1.jsonl,2.jsonl --output all.jsonl\n"
     "flashbound merge --input $(ls shard-*.jsonl | paste -sd,) --output all.jsonl"},
    {kAttend, "attend",
     "Computes attention on .npy inputs of shape (batch, heads, seqlen, head_dim).",
     "attend --q FILE --k FILE --v FILE --o FILE [options]",
     "flashbound attend --q q.npy --k k.npy --v v.npy --o o.npy --mask causal\n"
     "flashbound attend --q q.npy --k k.npy --v v.npy --o o.npy --lse-out lse.npy --alibi"},
    {kNumerics, "numerics",
     "Measures the error of an algorithm in a chosen arithmetic against exact attention.",
     "numerics (--seqlen N | --q FILE --k FILE --v FILE | --claim ID) [options]",
     "flashbound numerics --seqlen 1024 --recipe all-bf16,flash2-bf16 --distribution outliers\n"
     "flashbound numerics --q q.npy --k k.npy --v v.npy --recipe mine.json --seed 1,2,3"},
    {kList, "list",
     "Lists algorithms, kernels, formats, recipes, distributions, claims and verify's problems.",
     "list [options]",
     "flashbound list\n"
     "flashbound list --format json"},
}};

constexpr unsigned kStairs = kTile | kEnvelope | kCurve;  // least bytes by size of fast memory
constexpr unsigned kModels =
    kCount | kAttend | kNumerics | kStairs | kSweep;  // verbs that take a problem
constexpr unsigned kTiled = kCount | kAttend | kNumerics | kCurve | kSweep;  // and a tile
constexpr unsigned kAll =
    kVerify | kCount | kAttend | kList | kNumerics | kStairs | kSweep | kMerge;

constexpr std::string_view kProblem = "Problem";
constexpr std::string_view kArithmetic = "Arithmetic";
constexpr std::string_view kSchedule = "Schedule";
constexpr std::string_view kFiles = "Files";
constexpr std::string_view kRun = "Run and output";

constexpr auto kOptions = std::to_array<OptionText>({
    {"algorithm", "NAME", "forward", "algorithm to count, or forward, backward, all (see list)",
     kCount | kSweep, kProblem},
    {"algorithm", "NAME", "forward",
     "algorithms of one pass: names, forward or backward (see list)", kTile | kEnvelope, kProblem},
    {"algorithm", "NAME", "flash2", "algorithm (see list)", kCurve, kProblem},
    {"problem", "NAME", "all", "one of verify's problems, or all (see list)", kVerify, kProblem},
    {"batch", "N", "1", "sequences in the batch, 1 to 2^24", kModels, kProblem, kNumerics},
    {"num-heads", "N", "1", "query and key/value heads, 1 to 65536", kModels, kProblem, kNumerics},
    {"num-heads-q", "N", "", "query heads, a multiple of --num-heads-kv", kModels, kProblem,
     kNumerics},
    {"num-heads-kv", "N", "", "key/value heads", kModels, kProblem, kNumerics},
    {"seqlen", "N", "", "queries and keys, 1 to 2^32", kModels, kProblem, kNumerics},
    {"seqlen-q", "N", "", "queries", kModels, kProblem, kNumerics},
    {"seqlen-kv", "N", "", "keys and values (also --seqlen-k)", kModels, kProblem, kNumerics},
    {"head-dim", "N", "64", "columns of Q and K, 1 to 576", kModels, kProblem, kNumerics},
    {"head-dim-v", "N", "", "columns of V and O (default: head-dim)", kModels, kProblem, kNumerics},
    {"mask", "KIND", "none", "none, causal (bottom-right) or window", kModels, kProblem, kNumerics},
    {"window-left", "N", "-1", "keys seen before the diagonal, -1 = all", kModels, kProblem,
     kNumerics},
    {"window-right", "N", "-1", "keys seen after the diagonal, -1 = all", kModels, kProblem,
     kNumerics},
    {"block-mask", "FILE", "", ".npy of cells (rows, cols), nonzero = visible", kModels, kProblem},
    {"block-mask-q", "N", "", "queries in a cell (default: block-q)", kModels, kProblem},
    {"block-mask-kv", "N", "", "keys in a cell (default: block-kv)", kModels, kProblem},
    {"cu-seqlens-q", "LIST", "", "packed sequences: 0,n1,n1+n2,... or a .npy", kModels, kProblem},
    {"cu-seqlens-kv", "LIST", "", "the same of keys", kModels, kProblem},
    {"softmax-scale", "X", "", "factor of q.k (default: 1/sqrt(head-dim))", kModels, kProblem},
    {"softcap", "X", "0", "c tanh(s/c) on the scaled scores; 0 = none", kModels, kProblem},
    {"alibi", "", "", "bias -slope |distance|, slopes of Press et al. 2022", kModels, kProblem},
    {"sink", "LIST", "", "a logit without a value: one, or one a query head", kModels, kProblem},
    {"distribution", "NAME", "normal", "of random inputs (see list)", kNumerics, kArithmetic,
     kNumerics},
    {"seed", "N", "1", "of inputs, rotation and stochastic rounding, 0 to 2^63-1", kNumerics,
     kArithmetic, kNumerics},
    {"recipe", "NAME", "flash2-bf16", "arithmetic (see list), all-FORMAT or a file.json", kNumerics,
     kArithmetic, kNumerics},
    {"algorithm", "NAME", "flash2", "algorithm to run, or all (see list)", kNumerics, kArithmetic,
     kNumerics},
    {"reference", "KIND", "exact", "exact (certified to the last bit) or fp64", kNumerics,
     kArithmetic},
    {"reference-inputs", "KIND", "rounded", "rounded (those of the run) or unrounded (given ones)",
     kNumerics, kArithmetic},
    {"claim", "ID", "", "recompute published claims instead: ids, or all (see list)", kNumerics,
     kArithmetic},
    {"block-q", "N", "64", "queries in a tile (B_r)", kTiled, kSchedule, kNumerics},
    {"block-kv", "N", "64", "keys in a tile (B_c)", kTiled, kSchedule, kNumerics},
    {"panel", "N", "1", "small-cache's contraction panel, divides block-kv",
     kCount | kNumerics | kSweep, kSchedule, kNumerics},
    {"num-splits", "N", "1", "split-kv's parts of the keys", kCount | kNumerics | kSweep, kSchedule,
     kNumerics},
    {"dtype", "FORMAT", "fp16", "width of an element (see list)", kCount | kStairs | kSweep,
     kSchedule},
    {"sram", "SIZE", "", "fast memory, e.g. 192KiB, 20MB; what exceeds it is infeasible",
     kCount | kSweep, kSchedule},
    {"sram", "SIZE", "", "size of the fast memory, e.g. 192KiB, 20MB", kTile, kSchedule},
    {"boundary", "NAME", "hbm", "between which memories: hbm = HBM and one fast memory",
     kCount | kStairs | kSweep, kSchedule},
    {"footprint", "KIND", "uniform", "uniform (words of dtype) or kernel (its buffers)",
     kCount | kStairs | kSweep, kSchedule},
    {"stages", "N", "1", "buffers for operands in flight (kernel footprint)",
     kCount | kStairs | kSweep, kSchedule},
    {"policy", "LIST", "lru", "of scratchpad, and caches lru, opt, fifo, random, plru", kCurve,
     kSchedule},
    {"cache", "LIST", "", "capacities of the cache, e.g. 32KiB:4MiB:x2 (default: along the curve)",
     kCurve, kSchedule},
    {"ways", "N", "0", "ways of the cache, 0 = fully associative; needs --cache", kCurve,
     kSchedule},
    {"line-size", "SIZE", "64", "line of the cache, a power of two", kCurve, kSchedule},
    {"layout", "KIND", "contiguous", "of heads in memory: contiguous, strided or padded", kCurve,
     kSchedule},
    {"granularity", "KIND", "auto", "of the trace: tile (where exact), line or auto", kCurve,
     kSchedule},
    {"leave-out", "LIST", "", "tensors that are not traced, e.g. lse", kCurve, kSchedule},
    {"points", "N", "64", "rows, spread evenly in log M, or all", kEnvelope | kCurve, kSchedule},
    {"method", "KIND", "both", "both, closed-form or machine", kCount | kSweep, kSchedule},
    {"q", "FILE", "", "queries, .npy (batch, num_heads_q, seqlen_q, head_dim)", kAttend | kNumerics,
     kFiles},
    {"k", "FILE", "", "keys, .npy (batch, num_heads_kv, seqlen_kv, head_dim)", kAttend | kNumerics,
     kFiles},
    {"v", "FILE", "", "values, .npy (batch, num_heads_kv, seqlen_kv, head_dim_v)",
     kAttend | kNumerics, kFiles},
    {"o", "FILE", "", "output, .npy of Q's dtype", kAttend, kFiles},
    {"lse-out", "FILE", "", "natural-log lse, .npy (batch, num_heads_q, seqlen_q, 1)", kAttend,
     kFiles},
    {"grad-o", "FILE", "", "for gradients: dO, .npy of O's shape and Q's dtype", kAttend, kFiles},
    {"grad-q", "FILE", "", "gradient of Q, .npy of Q's shape and dtype", kAttend, kFiles},
    {"grad-k", "FILE", "", "gradient of K", kAttend, kFiles},
    {"grad-v", "FILE", "", "gradient of V", kAttend, kFiles},
    {"record-out", "FILE", "", "event log of one head as JSON (one algorithm)", kCount, kFiles},
    {"program-out", "FILE", "", "the algorithm's program as JSON", kCount, kFiles},
    {"activations", "DIR", "", "recorded Q, K, V (default: those of the source tree)", kVerify,
     kFiles},
    {"kernel", "NAME", "reference", "who computes (see list)", kAttend, kRun},
    {"precision-cap", "BITS", "16384",
     "of the kernel exact: what is in doubt there stays undecided", kAttend, kRun},
    {"seed", "N", "1", "of random inputs, 0 to 2^63-1", kVerify, kRun},
    {"of", "VERB", "count", "verb that is swept: count or tile", kSweep, kRun},
    {"shard", "I/N", "1/1", "the I-th of N parts of the points, every N-th one", kSweep, kRun},
    {"input", "LIST", "", "files of all shards of one sweep", kMerge, kRun},
    {"threads", "N", "0", "threads, 1 to 1024; 0 = as many as the machine has",
     kVerify | kAttend | kNumerics | kStairs | kSweep, kRun},
    {"format", "KIND", "table", "table, csv, json or jsonl", kAll, kRun},
    {"output", "FILE", "-", "results go there; - = standard output", kAll, kRun},
    {"plot", "FILE", "", "the chart as SVG", kEnvelope | kCurve, kFiles},
    {"report", "FILE", "", "the table as a self-contained HTML page", kAll, kRun},
    {"force", "", "", "replace output files that exist", kAll, kRun},
    {"config", "FILE", "", "options as key = value lines; the command line wins", kAll, kRun},
    {"print-config", "", "", "print the merged options, readable by --config, and stop", kAll,
     kRun},
    {"quiet", "", "", "no progress", kAll, kRun},
});

constexpr std::array<ExitCode, 5> kExitCodes{{
    {0, "done"},
    {1, "a verification failed"},
    {2, "usage or configuration"},
    {3, "the environment failed (files, disk, memory)"},
    {130, "interrupted"},
}};

}  // namespace

std::span<const VerbText> verb_texts() { return kVerbs; }

const VerbText* verb_named(std::string_view name) {
  for (const VerbText& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

std::span<const OptionText> option_texts() { return kOptions; }

std::span<const ExitCode> exit_codes() { return kExitCodes; }

}  // namespace flashbound
