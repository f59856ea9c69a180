"""Mutants made by rule: operators, constants, comparisons and barriers, one change each.

A mutant's name holds the line it changes, not its number, so that tests/mutants/equivalent.txt outlives other edits.
"""
import re

RULES = [
    (r"(?<= )<(?= )", "<="), (r"(?<= )<=(?= )", "<"), (r"(?<= )>(?= )", ">="), (r"(?<= )>=(?= )", ">"),
    (r"==", "!="), (r"!=(?= )", "=="), (r"&&", "||"), (r"\|\|", "&&"),
    (r"(?<= )\+(?= )", "-"), (r"(?<= )-(?= )", "+"), (r"(?<= )\*(?= )", "+"), (r"(?<= )/(?= )", "*"), (r"(?<= )%(?= )", "/"),
    (r"(?<= )\+=(?= )", "-="), (r"(?<= )/=(?= )", "-="), (r"(?<= )\*=(?= )", "+="), (r"\|=", "="),
    (r"<<(?= )", ">>"), (r">>(?= )", "<<"), (r"(?<= )&(?= )", "|"), (r"(?<= )\|(?= )", "&"),
    (r"block_sync\(\);", ";"), (r"warp_sync\(\);", ";"), (r"\bcontinue;", ";"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"(?<![\w.\"])\d+(?![\w.])", lambda m: str(int(m[0]) + 1)), (r"(?<![\w.\"])[1-9]\d*(?![\w.])", lambda m: str(int(m[0]) - 1)),
    (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r"\bop_min(?=[<(])", "op_max"), (r"\bop_max(?=[<(])", "op_min"),
]
SKIPPED = re.compile(r"\s*(//|#|static_assert|template <(?!.*\})|using |extern \"C\"|\"|namespace|struct |}|$)")
# The outermost extent of an array in shared memory places nothing: what stands behind it has an offset of its own.
OUTERMOST = re.compile(r"SHARED(?:_AT)?\([^[]*\[([^]]*)\]")
# An array that is longer than it need be is no mistake: of its extents only what makes it shorter is tried.
EXTENTS = re.compile(r"^ *(?!return )(?:[\w:]+|[\w:]+<.*>) \w+(?:\[[^]]*\])+(?:, \w+(?:\[[^]]*\])+)*(?: = \{\})?;$")
# Of where a chain of products ends only the last bits of a long sum tell, and any order of evaluation may lose those:
# tests/unit/hal/test_interp.c counts them.
CHAINED = re.compile(r"bool CHAINS = |if \(CHAINS && ")
# Lines that only save work: what more than is needed of it is done for is slower, not wrong, and of any other mistake in them most
# are that. What goes too far the other way is tried by hand.
SAVINGS = {"gemm.cu": ("static constexpr int WIDE = ", "const int order = PAIRED", "return order / (8 / BANKS)",   # conflicts of banks;
                       "constexpr bool LATE = ",   # copies begin before products or behind them
                       "static constexpr int FIT = "),   # how many loads are under way
           "attention.cu": ("constexpr int HELD = ", "constexpr int AT_ONCE = "),   # whether q stays in registers
           "attention_bulk.cu": ("give_registers<", "take_registers<", "if (threadIdx.x == WARP)", "drop_sum("),   # who has which; who asks for maps ahead;
           "matmul.cu": ("static constexpr int FAST = ", ": COPIED && LENGTH % 2 == 0 ", "struct InParts", "static constexpr bool VALUE = ",   # which banks;
                         "constexpr bool DOWN = ",   # the order of sums;
                         "struct FindsRows", "for (int parts = 2;", "threads = line % parts", "return THREADS / threads",
                         "static constexpr int WORKERS = ", "constexpr bool BY_ROWS = ",   # who copies, and finds what once;
                         "constexpr int WORDS = ", "constexpr int ROWS = FIT"),   # how many loads are under way
           "toeplitz.cu": ("constexpr bool ALL_ROWS = ", "constexpr bool SHORT = ", "constexpr int EACH = ", "constexpr int TOGETHER = ", "const bool idle = ",
                           "const int from = op_max(0, -(above", "const int last = idle", "const bool reached = ", "inside(row, op_min(IH, OH",
                           "if (!idle && step", "if (step >= from", "const int tile = turn", "if ((8 * BN / QN % WARP",
                           "if (infinite || totals"),
           "filter_gemm.cu": ("return tap > -AN", "if (first + AK", "if (k + 1 < TK)", "if (step + 1 < STEPS)"),
           "bulk.cu": ("constexpr Index ROWS = PANEL", "constexpr bool MOVES_REGISTERS", "give_registers<", "take_registers<",   # the order of blocks; who has which registers,
                       ": first(corner.tile_n / PHASE)", "Index tap = -1", "return taps * (TAP",   # which taps are left out;
                       "constexpr Index SHARE = ", "constexpr int slabs_ahead(int bytes"),   # how many steps; and slabs asked for ahead
           "prelude/memory.cuh": ("DEVICE constexpr int bits_below", "constexpr int SHIFT = ", "constexpr unsigned FACTOR = ",   # with how many bits,
                                  "return (BY & (BY - 1)) == 0"),   # and how one divides
           "prelude/planes.cuh": ("constexpr int AHEAD = V",),   # how many loads are under way
           "reduce.cu": ("constexpr int ELEMENTS = ", "constexpr bool OPEN = ", "constexpr int ROUNDS = "),   # how many loads are under way
           "skinny.cu": ("constexpr bool JOINS = ", "warp_sync();"),   # who adds up a block's parts; which way lanes take
           "pairs.cu": ("constexpr int POWER = ", "constexpr int TURNS = ", "return column * PIECES",   # which banks
                        "constexpr int REACHED = ", "constexpr int END = ", "if ((i + 1) * THREADS <= COUNT"),
           "strip.cu": ("constexpr bool KNOWN_ENDS = ", "constexpr int WITHIN = ", "constexpr int ROUND = "),   # which code a step goes through
           "filter_strip.cu": ("constexpr int ROUND = ", "if (STEPS % ROUND != 0", "if (TOGETHER > 1)", "bool doubt = false")}
# Templates whose survivors have all been looked at. Run a new one with --only; then it belongs here.
TRIAGED = ("attention.cu", "attention_bulk.cu", "bulk.cu", "channelwise.cu", "elementwise.cu", "filter_strip.cu", "gemm.cu", "loopnest.cu",
           "matmul.cu", "permute.cu", "reduce.cu", "rowwise.cu", "strip.cu", "window.cu", "depthwise.cu",
           "filter_direct.cu", "filter_gemm.cu", "skinny.cu", "toeplitz.cu", "pairs.cu",
           "prelude/arithmetic.cuh", "prelude/async.cuh", "prelude/bits.cuh", "prelude/functions.cuh",
           "prelude/half.cuh", "prelude/language.cuh", "prelude/memory.cuh", "prelude/mma.cuh", "prelude/planes.cuh",
           "prelude/reductions.cuh", "prelude/row_tiles.cuh", "prelude/types.cuh", "prelude/wgmma.cuh", "prelude/words.cuh")
TRUE_IN_INTERPRETER = {"ROLLERC_INTERP"}


def holds(condition):
    """What the preprocessor makes of `condition` in the interpreter; names it does not know are undefined."""
    text = re.sub(r"defined\((\w+)\)", lambda m: str(m[1] in TRUE_IN_INTERPRETER), condition.split("//")[0])
    text = re.sub(r"\b(?!True|False)[A-Za-z_]\w*", "0", text).replace("&&", " and ").replace("||", " or ").replace("!", " not ")
    return bool(eval(text))   # our own templates only


def live_lines(text):
    """Numbers of the lines that the interpreter compiles, without the default parameters, the launcher's part and macros: those of
    several lines write instructions, of which the interpreter has its own."""
    stack, live, parameters, macro = [], [], False, False
    for number, line in enumerate(text.split("\n")):
        word = line.strip()
        inside_macro, macro = macro, word.endswith("\\") and (macro or word.startswith("#define"))
        parameters = (parameters or word.startswith("// <rollerc: parameters>")) and not word.startswith("// </rollerc>")
        if word.startswith("#ifdef"):
            stack.append([word.split()[1] in TRUE_IN_INTERPRETER] * 2)
        elif word.startswith("#ifndef"):
            stack.append([word.split()[1] not in TRUE_IN_INTERPRETER] * 2)
        elif word.startswith("#if "):
            stack.append([holds(word[4:])] * 2)
        elif word.startswith("#elif"):
            now = not stack[-1][1] and holds(word[6:])
            stack[-1] = [now, stack[-1][1] or now]
        elif word.startswith("#else"):
            stack[-1][0] = not stack[-1][1]
        elif word.startswith("#endif"):
            stack.pop()
        elif all(now for now, _ in stack) and not (parameters or inside_macro or SKIPPED.match(line) or CHAINED.search(line)):
            live.append(number)
    return live


def is_longer(before, old, new):
    """Whether an extent is longer with `new`: it is divided by less, less is taken from it, or it has one more."""
    more = old in "/-" or (old.isdigit() and int(new) > int(old))
    return more != bool(re.search(r"[-/%] $", before))


def automatic(name, text):
    """[(name of the mutant, changed text)] of one template."""
    lines, found, names = text.split("\n"), [], {}
    for number in live_lines(text):
        code = lines[number].split("//")[0].rstrip()
        if "__launch_bounds__" in code or "static_assert" in code or code.strip().startswith(SAVINGS.get(name, ())):
            continue
        outermost = OUTERMOST.search(code)
        skipped = range(*outermost.span(1)) if outermost else ()
        for pattern, replacement in RULES:
            for place, match in enumerate(re.finditer(pattern, code), 1):
                if match.start() in skipped:
                    continue
                new = replacement(match) if callable(replacement) else replacement
                if EXTENTS.match(code) and is_longer(code[:match.start()], match[0], new):
                    continue
                changed = code[:match.start()] + new + code[match.end():]
                label = f"{name}: {code.strip()} | {match[0]} -> {new}, {place}"
                names[label] = names.get(label, 0) + 1
                if names[label] > 1:
                    label += f", line {names[label]}"
                found.append((label, "\n".join(lines[:number] + [changed] + lines[number + 1:])))
    return found
