"""Every wrong word on the command line or in a configuration file: one line, exit code 2."""

import unittest

import numpy

from command import CommandTest

# The words after `count --seqlen 64`, and what the error must name.
COUNT_CASES = {
    "unknown option": (["--sequence-width", "3"], "unknown option --sequence-width"),
    "misspelt option": (["--haed-dim", "3"], "did you mean --head-dim"),
    "misspelt option with a value": (["--block_q=3"], "did you mean --block-q"),
    "abbreviated option": (["--dty", "fp16"], "unknown option --dty"),
    "abbreviation of several options": (["--seq", "5"], "unknown option --seq of count"),
    "option of another verb": (["--lse-out", "x.npy"], "unknown option --lse-out of count"),
    "short option": (["-q"], "-q"),
    "option without its value": (["--dtype"], "dtype.*value"),
    "option whose value is an option": (["--dtype", "--force"], "dtype.*value"),
    "empty value after an equals sign": (["--dtype="], "dtype"),
    "empty value": (["--dtype", ""], "dtype"),
    "flag with a value": (["--force=yes"], "force"),
    "stray word": (["128"], "128"),
    "stray word after two dashes": (["--", "128"], "128"),
    "option given twice": (["--dtype", "fp16", "--dtype", "fp16"], "dtype.*twice"),
    "flag given twice": (["--force", "--force"], "force.*twice"),
    "option and its alias": (["--seqlen-k", "1", "--seqlen-kv", "1"], "seqlen-kv.*twice"),
    "both forms of lengths": (["--seqlen-q", "64"], "seqlen.*seqlen-q"),
    "both forms of heads": (["--num-heads", "2", "--num-heads-kv", "2"], "num-heads.*num-heads-kv"),
    "heads not divisible": (["--num-heads-q", "6", "--num-heads-kv", "4"], "num_heads_q = 6"),
    "no heads": (["--num-heads", "0"], "num_heads_q = 0"),
    "too many heads": (["--num-heads", "65537"], "num_heads_q = 65537.*65536"),
    "no key heads": (["--num-heads-q", "4", "--num-heads-kv", "0"], "num_heads_kv = 0"),
    "no batch": (["--batch", "0"], "batch = 0"),
    "negative batch": (["--batch", "-1"], "batch = -1"),
    "head_dim zero": (["--head-dim", "0"], "head_dim = 0.*576"),
    "head_dim too large": (["--head-dim", "577"], "head_dim = 577.*576"),
    "head_dim_v too large": (["--head-dim-v", "577"], "head_dim_v = 577"),
    "left window below -1": (["--mask", "window", "--window-left", "-2"], "window_left = -2"),
    "right window below -1": (["--mask", "window", "--window-right", "-9"], "window_right = -9"),
    "unknown mask": (["--mask", "diagonal"], "mask = diagonal.*causal"),
    "mask none with a window": (["--mask", "none", "--window-left", "3"], "mask = none"),
    "causal with keys to the right": (
        ["--mask", "causal", "--window-right", "3"],
        "window-right = 3",
    ),
    "window without a side": (["--mask", "window"], "window-left"),
    "unknown dtype": (["--dtype", "fp12"], "dtype = fp12.*fp16"),
    "dtype in capitals": (["--dtype", "FP16"], "dtype = FP16"),
    "no queries in a tile": (["--block-q", "0"], "block_q = 0"),
    "negative keys in a tile": (["--block-kv", "-64"], "block_kv = -64"),
    "panel zero": (["--panel", "0"], "panel = 0"),
    "panel that does not divide": (["--panel", "48"], "panel = 48.*divisor"),
    "no splits": (["--num-splits", "0"], "num_splits = 0"),
    "too many splits": (["--num-splits", "99999999999"], "num_splits = 99999999999"),
    "size of unknown unit": (["--sram", "12QB"], "sram = 12QB"),
    "size without a number": (["--sram", "KiB"], "sram = KiB"),
    "negative size": (["--sram", "-1"], "sram = -1"),
    "size with a sign": (["--sram", "+1KiB"], r"sram = \+1KiB"),
    "size with a fraction": (["--sram", "1.5MB"], r"sram = 1\.5MB"),
    "size with a blank": (["--sram", "1 KiB"], "sram = 1 KiB"),
    "size beyond 64 bits": (["--sram", "9999999999GiB"], "sram = 9999999999GiB"),
    "number of a size beyond 64 bits": (["--sram", "99999999999999999999"], "sram = 9999"),
    "size zero": (["--sram", "0"], "sram = 0"),
    "unknown footprint": (["--footprint", "half"], "footprint = half.*uniform"),
    "no stages": (["--footprint", "kernel", "--stages", "0"], "stages = 0"),
    "stages without a kernel's footprint": (["--stages", "2"], "stages = 2"),
    "unknown method": (["--method", "guess"], "method = guess"),
    "unknown algorithm": (["--algorithm", "flash9"], "algorithm = flash9.*flash2"),
    "unknown format": (["--format", "xml"], "format = xml.*jsonl"),
    "block mask's cell without a mask": (["--block-mask-q", "64"], "block-mask-q"),
    "missing block mask": (["--block-mask", "none.npy"], "none.npy", 3),
    "offsets that fall": (
        ["--cu-seqlens-q", "0,80,64", "--cu-seqlens-kv", "0,8,64"],
        r"cu_seqlens_q = entry 2 = 64.*\(80\)",
    ),
    "offsets that do not begin with 0": (
        ["--cu-seqlens-q", "0,64", "--cu-seqlens-kv", "1,64"],
        "cu_seqlens_kv = first entry 1: must be 0",
    ),
    "offsets of one side only": (["--cu-seqlens-q", "0,64"], "cu_seqlens_kv = 0 entries"),
    "offsets of unlike counts": (
        ["--cu-seqlens-q", "0,64", "--cu-seqlens-kv", "0,32,64"],
        r"cu_seqlens_kv = 3 entries.*\(2 entries\)",
    ),
    "offsets that end elsewhere": (
        ["--cu-seqlens-q", "0,9", "--cu-seqlens-kv", "0,9"],
        "seqlen = 64: must be 9",
    ),
    "softcap negative": (["--softcap", "-1"], "softcap = -1"),
    "softcap not a number": (["--softcap", "nan"], "softcap = nan.*finite"),
    "softcap infinite": (["--softcap", "inf"], "softcap = inf.*finite"),
    "softcap beyond doubles": (["--softcap", "1e999"], "softcap = 1e999"),
    "scale not a number": (["--softmax-scale", "x"], "softmax-scale = x"),
    "scale infinite": (["--softmax-scale", "-inf"], "softmax-scale = -inf"),
    "sinks of unlike count": (["--num-heads", "4", "--sink", "1,2,3"], "sink = 3 values.*4"),
    "sink that is no number": (["--sink", "1,"], "sink = : must be a finite"),
    "sink infinite": (["--sink", "inf"], "sink = inf"),
    "record of all algorithms": (["--record-out", "r.json"], "record-out: needs one --algorithm"),
    "program of all algorithms": (["--program-out", "p.json"], "program-out"),
    "packed sequences in a batch": (
        ["--cu-seqlens-q", "0,64", "--cu-seqlens-kv", "0,64", "--batch", "2"],
        "batch = 2",
    ),
    "output in a missing folder": (["--output", "none/x.csv"], "none/x.csv", 3),
    "output that is a folder": (["--output", "."], "output = ."),
    "one file for two outputs": (
        ["--output", "a.csv", "--report", "./a.csv"],
        r"output = a\.csv: must be a file of its own",
    ),
    "a report in the manifest's place": (
        ["--output", "a.csv", "--report", "a.csv.manifest.json"],
        r"output = a\.csv\.manifest\.json: must be a file of its own",
    ),
    "report in a missing folder": (["--report", "none/x.html"], "none/x.html", 3),
    "output below a file": (["--output", "/dev/null/x.csv"], "/dev/null/x.csv", 3),
    "output in a folder that takes no files": (["--output", "/proc/x.csv"], "/proc/x.csv", 3),
    "missing configuration": (["--config", "none.conf"], "none.conf", 3),
    "configuration that is a folder": (["--config", "."], "config = ."),
}

NUMBERS = ["0", "-5", "1.5", "64x", "", " 64", "64 ", "0x40", "1e3", "+64", "--5", "x", "∞"]
NUMBERS += ["4294967297", "9223372036854775808", "-9223372036854775809", "9" * 400]

# The content of a configuration file for count, and what the error must name.
CONFIG_CASES = {
    "unknown key": ("seqlne = 64\n", "seqlne.*did you mean --seqlen"),
    "key of another verb": ("lse-out = x.npy\n", "lse-out"),
    "key with an underscore": ("head_dim = 64\n", "head_dim.*head-dim"),
    "bad value": ("seqlen = many\n", "seqlen = many"),
    "no value": ("seqlen =\n", "seqlen"),
    "no equals sign": ("seqlen 64\n", "seqlen"),
    "key given twice": ("seqlen = 64\nseqlen = 64\n", "seqlen.*twice"),
    "flag that is neither": ("seqlen = 64\nforce = maybe\n", "force = maybe"),
    "a configuration within": ("config = other.conf\n", "config"),
    "print-config within": ("print-config = true\n", "print-config"),
    "section": ("[count]\nseqlen = 64\n", "count"),
    "both forms": ("seqlen = 64\nseqlen-q = 64\n", "seqlen"),
    "binary": (bytes(range(256)), "bytes.conf|case.conf|unrecognised|unknown|option"),
}

# Whole command lines.
LINE_CASES = {
    "no verb": ([], "verb"),
    "unknown verb": (
        ["simulate"],
        "verify, count, tile, envelope, curve, sweep, merge, attend, numerics, list",
    ),
    "misspelt verb": (["cuont", "--seqlen", "1"], "did you mean count"),
    "option before the verb": (["--seqlen", "1"], "--seqlen"),
    "empty verb": ([""], "verb"),
    "no length": (["count"], "seqlen"),
    "no length of keys": (["count", "--seqlen-q", "4"], "seqlen"),
    "verify of an unknown problem": (
        ["verify", "--problem", "gpt-9"],
        "problem = gpt-9.*llama-2-7b",
    ),
    "negative seed": (["verify", "--seed", "-1"], "seed = -1"),
    "seed that is no number": (["verify", "--seed", "now"], "seed = now"),
    "negative threads": (["verify", "--threads", "-1"], "threads = -1"),
    "too many threads": (["verify", "--threads", "1025"], "threads = 1025.*1024"),
    "threads that are no number": (["verify", "--threads", "two"], "threads = two"),
    "activations that are not there": (["verify", "--activations", "none"], "none/", 3),
    "list of an unknown option": (["list", "--seqlen", "3"], "unknown option --seqlen of list"),
    "record of too many events": (
        [*"count --algorithm flash2 --record-out r.json --seqlen 4194304 --method".split()]
        + ["closed-form"],
        "record-out = over 200000 events",
    ),
    "missing inputs": (["attend"], "q: is required by attend"),
    "missing output": ([*"attend --q q.npy --k k.npy --v v.npy".split()], r"q\.npy", 3),
    "unknown kernel": (
        [*"attend --q q.npy --k k.npy --v v.npy --o o.npy --kernel cudnn".split()],
        "kernel = cudnn.*reference",
    ),
    "help of an unknown verb": (["measure", "--help"], "measure"),
}


class BadOptions(CommandTest):
    def test_an_error_with_line_breaks_stays_one_line(self):
        self.refuses(["count", "--seqlen", "6\n4\r\x1b[31m"], 2, r"seqlen = 6\?4\?\?")

    def test_a_configuration_that_never_ends_is_refused(self):
        words = ["count", "--seqlen", "64", "--config", "/dev/zero"]
        self.refuses(words, 2, "config = /dev/zero.*1 MiB")

    def test_an_error_in_a_configuration_names_the_file(self):
        self.write("my.conf", "seqlne = 64\n")
        self.refuses(["count", "--config", "my.conf"], 2, "error: my.conf: unknown option seqlne")

    def test_a_block_mask_must_fit(self):
        self.save("mask.npy", [[True, False], [True, True]])
        words = ["count", "--seqlen", "64", "--block-mask", "mask.npy"]
        self.refuses(words, 2, "block_mask = 2 x 2 cells.*1 x 1")
        self.refuses([*words, "--block-mask-q", "0"], 2, "block_mask.block_q = 0")

    def test_a_block_mask_must_be_a_matrix_of_integers(self):
        self.save("floats.npy", [[0.0]])
        self.save("cube.npy", [[[True]]])
        for name in ("floats.npy", "cube.npy"):
            self.refuses(
                ["count", "--seqlen", "64", "--block-mask", name], 2, f"block-mask = {name}"
            )

    def test_offsets_in_a_file_must_be_a_list_of_integers(self):
        self.save("floats.npy", [0.0, 64.0])
        self.save("matrix.npy", [[0, 64]])
        self.save("none.npy", numpy.zeros(0, "<i8"))
        for name in ("floats.npy", "matrix.npy", "none.npy"):
            words = ["count", "--cu-seqlens-q", name, "--cu-seqlens-kv", name]
            self.refuses(words, 2, f"cu-seqlens-q = {name}")

    def test_block_masks_and_packed_sequences_exclude_each_other(self):
        self.save("mask.npy", [[True]])
        words = ["count", "--cu-seqlens-q", "0,64", "--cu-seqlens-kv", "0,64"]
        self.refuses([*words, "--block-mask", "mask.npy"], 2, "block_mask.*cu_seqlens")


def add_cases(cases, words_of, prefix):
    for name, (given, pattern, *code) in cases.items():

        def test(self, given=given, pattern=pattern, code=code):
            words = words_of(self, given)
            self.refuses(words, code[0] if code else 2, pattern)

        setattr(BadOptions, f"test_{prefix}_{name.replace(' ', '_')}", test)


def config_words(test, content):
    test.write("case.conf", content)
    return ["count", "--config", "case.conf"]


add_cases(COUNT_CASES, lambda _, given: ["count", "--seqlen", "64", *given], "count")
add_cases(CONFIG_CASES, config_words, "configuration")
add_cases(LINE_CASES, lambda _, given: given, "line")
add_cases(
    {f"{at}_{text[:20]}": (text, "seqlen") for at, text in enumerate(NUMBERS)},
    lambda _, text: ["count", "--seqlen", text],
    "length",
)

if __name__ == "__main__":
    unittest.main()
