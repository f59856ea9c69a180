#include "codegen/cuda/reads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/cuda/pieces.h"
#include "rtile/space.h"

enum {
    ROW_VECTORS = 4   // of a row that is read in lines, at least
};

// ---- how they lie in memory ----

static bool others_are_multiples(const Affine *offset, int except, int64_t vector)
{
    for (int a = 0; a < MAX_AXES; a++)
        if (a != except && offset->coef[a] % vector)
            return false;
    return offset->constant % vector == 0;
}

static Pattern pattern_of_unaligned(const Walk *walk, const Access *access, const Affine *offset)
{
    if (offset->coef[walk->axis] == 0)
        return PATTERN_BROADCAST;
    Affine apart = *offset;   // from the position of a vector that begins where all tensors are aligned
    int64_t stride = 1;
    for (int a = walk->fusion->axis_count - 1; a >= 0; a--) {
        apart.coef[a] -= stride;
        stride *= walk->fusion->axes[a].extent;
    }
    bool is_line = offset->coef[walk->axis] == 1;
    if (is_line && others_are_multiples(&apart, walk->axis, walk->vector))
        return PATTERN_ROW;
    bool whole_pieces = walk->vector * dtype_info[access->tensor->dtype].bits >= 8 * VECTOR_BYTES;
    return is_line && walk->lines && whole_pieces ? PATTERN_LINE : PATTERN_GATHER;
}

/* Places are the same for a vector, which lies in a row and begins where it is aligned; or it is gathered. */
static Pattern pattern_of_fetch(const Walk *walk, const Fetch *fetch)
{
    Affine offset = access_offset(&fetch->access);
    bool whole = walk->fusion->axes[walk->axis].extent % walk->vector == 0, aligned = true;
    uint32_t moving = 0;
    for (int i = 0; i < fetch->count; i++) {
        moving |= expr_axes(fetch->places[i].value);
        aligned &= fetch->places[i].stride % walk->vector == 0;
    }
    int64_t step = offset.coef[walk->axis];
    if (!whole || moving >> walk->axis & 1 || walk->vector == 1)
        return PATTERN_GATHER;
    if (step == 0)
        return PATTERN_BROADCAST;
    return step == 1 && aligned && others_are_multiples(&offset, walk->axis, walk->vector) ? PATTERN_ROW
                                                                                           : PATTERN_GATHER;
}

/* Vectors of a flat walk, each in one row. */
static bool is_every_second(const Walk *walk, const Access *access, const Affine *offset)
{
    int64_t all = 2 * walk->vector;
    bool vectors = walk->flat && walk->lines && walk->vector > 1 && access->tensor->dtype != DTYPE_B1;
    return vectors && offset->coef[walk->axis] == 2 && others_are_multiples(offset, walk->axis, all) &&
           tensor_elements(access->tensor) % all == 0;
}

static Pattern pattern_of(const Walk *walk, const Access *access)
{
    Affine offset = access_offset(access);
    if (walk->unaligned)
        return pattern_of_unaligned(walk, access, &offset);
    if (walk->flat && access_is_flat(access, walk->fusion))
        return PATTERN_FLAT;
    if (affine_is_constant(&offset))
        return PATTERN_BROADCAST;
    int64_t step = offset.coef[walk->axis];
    bool whole = walk->fusion->axes[walk->axis].extent % walk->vector == 0;   // vectors stay in their rows
    if (whole && step == 0)
        return PATTERN_BROADCAST;
    if (whole && step == 1 && others_are_multiples(&offset, walk->axis, walk->vector))
        return PATTERN_ROW;
    if (whole && is_every_second(walk, access, &offset))
        return PATTERN_SECOND;
    bool is_line = step == 0 || (step == 1 && access->tensor->dtype != DTYPE_B1);
    /* Rows are long enough for most vectors to lie in one. */
    is_line &= walk->lines && walk->fusion->axes[walk->axis].extent >= ROW_VECTORS * walk->vector;
    return is_line ? PATTERN_LINE : PATTERN_GATHER;
}

/* A vector of it stays in one row and lies in pieces of 16 bytes, which are read wherever they are inside the
   tensor. */
static bool is_padded(const Walk *walk, const Access *access)
{
    int64_t bits = walk->vector * (int64_t)dtype_info[access->tensor->dtype].bits;
    return walk->padded && walk->axis >= 0 && access_offset(access).coef[walk->axis] == 1 &&
           walk->fusion->axes[walk->axis].extent % walk->vector == 0 && bits % (8 * VECTOR_BYTES) == 0;
}

/* What reads the access under a guard, before its place of use; PATTERN_GATHER: nothing. */
static Pattern pattern_of_guarded(const Walk *walk, const Access *access)
{
    if (is_padded(walk, access))
        return PATTERN_PADDED;
    bool whole = walk->axis >= 0 && walk->fusion->axes[walk->axis].extent % walk->vector == 0;
    bool same = whole && walk->vector > 1 && access_offset(access).coef[walk->axis] == 0;
    return walk->padded && !walk->flat && same && access->tensor->dtype != DTYPE_B1 ? PATTERN_PADDED_BROADCAST
                                                                                    : PATTERN_GATHER;
}

static int find_read(const Reads *reads, const Access *access, const Fetch *fetch)
{
    Affine offset = access_offset(access);
    for (int i = 0; i < reads->count; i++)
        if (!reads->reads[i].pieces && reads->reads[i].access->tensor == access->tensor &&
            fetch_places_equal(reads->reads[i].fetch, fetch) &&
            memcmp(&reads->reads[i].offset, &offset, sizeof offset) == 0)
            return i;
    return -1;
}

int reads_index(const Reads *reads, const Access *access) { return find_read(reads, access, NULL); }

static int find_pieces(const Reads *reads, const Expr *expr)
{
    for (int i = 0; i < reads->count; i++)
        if (reads->reads[i].pieces && expr_equal(reads->reads[i].pieces, expr))
            return i;
    return -1;
}

static int find_expr(const Reads *reads, const Expr *expr)
{
    switch (expr->kind) {
    case EXPR_ACCESS: return find_read(reads, &expr->access, NULL);
    case EXPR_FETCH: return find_read(reads, &expr->fetch.access, &expr->fetch);
    case EXPR_APPLY: return find_pieces(reads, expr);
    default: return -1;
    }
}

/* Points along some axis share an element. */
static bool is_reused(const Fusion *fusion, const Affine *offset)
{
    for (int a = 0; a < fusion->spatial_count; a++)
        if (!offset->coef[a])
            return true;
    return false;
}

static bool is_value(const Expr *expr, const void *unused) { return (void)unused, expr->kind == EXPR_VALUE; }

/* A place is made of what the kernel makes at the point: it is not known before. */
static bool waits_for_a_value(const Fetch *fetch)
{
    for (int i = 0; fetch && i < fetch->count; i++)
        if (expr_find(fetch->places[i].value, is_value, NULL))
            return true;
    return false;
}

static bool is_a_piece(const Reads *reads, const Access *access)
{
    for (int i = 0; i < reads->count; i++)
        if (reads->reads[i].pieces && pieces_hold(reads->reads[i].pieces, access))
            return true;
    return false;
}

/* A concatenation that is no part of one that was found. */
static void pieces_visit(Expr *expr, void *context)
{
    Reads *reads = context;
    const Walk *walk = &reads->walk;
    Pieces pieces;
    if (reads->count == MAX_LOADED || expr->kind != EXPR_APPLY ||
        !pieces_find(walk->fusion, walk->axis, walk->vector, expr, &pieces) ||
        is_a_piece(reads, pieces.piece[0].access))
        return;
    const Access *first = pieces.piece[0].access;
    reads->reads[reads->count++] =
        (Read){first, NULL, pieces.piece[0].offset, pieces.piece[0].offset, PATTERN_ROW, false, expr};
}

Reads reads_find(Walk walk)
{
    Reads reads = {.walk = walk};
    for (int i = 0; i < walk.ops && walk.padded; i++)
        expr_visit(walk.fusion->ops[i].body, pieces_visit, &reads);
    FusedAccess found[4 * MAX_LOADED];
    int count = fusion_accesses(walk.fusion, found, 4 * MAX_LOADED);
    for (int i = 0; i < count && reads.count < MAX_LOADED; i++) {
        const Fetch *fetch = found[i].fetch;
        Pattern guarded = fetch ? PATTERN_GATHER : pattern_of_guarded(&walk, found[i].access);
        if (found[i].in_place || waits_for_a_value(fetch) || found[i].op >= walk.ops ||
            is_a_piece(&reads, found[i].access) || (found[i].guarded && guarded == PATTERN_GATHER) ||
            find_read(&reads, found[i].access, fetch) >= 0)
            continue;
        if (walk.along && !(access_axes(found[i].access) & walk.along))
            continue;
        Affine seen = fused_offset(walk.fusion, &found[i]);
        Pattern pattern = found[i].guarded ? guarded
                          : fetch          ? pattern_of_fetch(&walk, fetch)
                                           : pattern_of(&walk, found[i].access);
        reads.reads[reads.count++] = (Read){found[i].access,
                                            fetch,
                                            access_offset(found[i].access),
                                            seen,
                                            pattern,
                                            is_reused(walk.fusion, &seen),
                                            NULL};
    }
    return reads;
}

/* Is it of the part, and of one of the patterns? */
static bool is_chosen(const Reads *reads, int index, uint32_t patterns)
{
    const Read *read = &reads->reads[index];
    return patterns >> read->pattern & 1 &&
           (reads->part == READS_ALL || read->reused == (reads->part == READS_REUSED));
}

bool reads_have(const Reads *reads, Pattern pattern)
{
    for (int i = 0; i < reads->count; i++)
        if (is_chosen(reads, i, 1u << pattern))
            return true;
    return false;
}

const char *reads_loaded(void *context, const Expr *expr)
{
    Reads *reads = context;
    int index = find_expr(reads, expr);
    if (index < 0)
        return NULL;
    snprintf(reads->text, sizeof reads->text, "in.x%d[e]", index);
    return reads->text;
}

// ---- what they leave to be done ----

static uint32_t read_axes(const Read *read)
{
    uint32_t axes = read->pieces ? expr_axes(read->pieces) : access_axes(read->access);
    for (int i = 0; read->fetch && i < read->fetch->count; i++)
        axes |= expr_axes(read->fetch->places[i].value);
    return axes;
}

uint32_t reads_axes_of(const Reads *reads, uint32_t patterns)
{
    uint32_t axes = 0;
    for (int i = 0; i < reads->count; i++)
        if (is_chosen(reads, i, patterns))
            axes |= read_axes(&reads->reads[i]);
    return axes;
}

uint32_t reads_axes(const Reads *reads) { return reads_axes_of(reads, UINT32_MAX); }

static bool is_read(const void *reads, const Expr *read) { return find_expr(reads, read) >= 0; }

uint32_t reads_axes_left(const Reads *reads, const Expr *expr)
{
    return expr_axes_left(expr, is_read, reads);
}

// ---- device code ----

/* Held as it lies in memory. */
static bool is_held(const Read *read, const Walk *walk)
{
    return read->pattern == PATTERN_LINE && read->offset.coef[walk->axis] == 1;
}

/* A vector may hang over the end of the tensor. */
static bool overhangs(const Read *read, const Walk *walk)
{
    return read->pattern == PATTERN_LINE || read->pattern == PATTERN_PADDED ||
           (walk->unaligned && tensor_elements(read->access->tensor) % walk->vector != 0);
}

bool read_is_whole(const Read *read, const Walk *walk)
{
    return read->pattern == PATTERN_PADDED && others_are_multiples(&read->offset, walk->axis, walk->vector) &&
           tensor_elements(read->access->tensor) % walk->vector == 0;
}

/* In whole words; wider elements are in registers as they are. */
static bool is_held_vector(const Read *read, const Walk *walk)
{
    int bits = dtype_info[read->access->tensor->dtype].bits;
    bool is_words = bits == 1 || (bits < 32 && bits * walk->vector % 32 == 0);
    return walk->held && is_words && (read->pattern == PATTERN_FLAT || read->pattern == PATTERN_ROW) &&
           !overhangs(read, walk);
}

void reads_emit_member(StrBuf *out, const Reads *reads, int index)
{
    const Read *read = &reads->reads[index];
    DType type = read->access->tensor->dtype;
    if (!is_held_vector(read, &reads->walk))
        strbuf_printf(out, "    %s x%d[VECTOR];\n", value_type(type), index);
    else if (type == DTYPE_B1)
        strbuf_printf(out, "    PackedBits<VECTOR> x%d;\n", index);
    else
        strbuf_printf(out, "    Packed<%s, VECTOR> x%d;\n", memory_type(type), index);
}

void reads_emit_inputs(StrBuf *out, const Reads *reads)
{
    strbuf_puts(out, "struct Inputs {\n");
    for (int i = 0; i < reads->count; i++) {
        if (is_held(&reads->reads[i], &reads->walk))
            strbuf_printf(out, "    Line<%s, VECTOR> x%d;\n",
                          memory_type(reads->reads[i].access->tensor->dtype), i);
        else
            reads_emit_member(out, reads, i);
    }
    strbuf_puts(out, "};\n");
}

void reads_emit_one(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads, int index,
                    const char *element)
{
    const Read *read = &reads->reads[index];
    if (read->pieces) {
        const char *call = arena_printf(out->arena, "in.x%d[%s] = load(from, at)", index, element);
        pieces_emit(out, indent, scope, reads->walk.axis, reads->walk.vector, read->pieces, call);
        return;
    }
    const Tensor *tensor = read->access->tensor;
    int position = input_position(scope->fusion, tensor);
    const char *offset = element_text(out->arena, scope, read->fetch, &read->offset);
    if (is_held(read, &reads->walk))
        strbuf_printf(out, "%sin.x%d.set(%s, t.in%d[%s]);\n", indent, index, element, position, offset);
    else
        strbuf_printf(out, "%sin.x%d[%s] = %s;\n", indent, index, element,
                      load_text(out->arena, tensor->dtype, position, offset));
}

static void emit_vector(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads, int index,
                        const char *flat)
{
    const Read *read = &reads->reads[index];
    const Tensor *tensor = read->access->tensor;
    bool overhanging = overhangs(read, &reads->walk), is_bits = tensor->dtype == DTYPE_B1;
    bool once = reads->walk.once && !is_bits;
    bool held = is_held_vector(read, &reads->walk), whole = read_is_whole(read, &reads->walk);
    if (read->pieces) {
        const char *call =
            arena_printf(out->arena, "%s_vector<VECTOR>(from, at, in.x%d)", once ? "read" : "load", index);
        pieces_emit(out, indent, scope, reads->walk.axis, reads->walk.vector, read->pieces, call);
        return;
    }
    const char *function = is_bits                           ? "load_bits"
                           : read->pattern == PATTERN_SECOND ? "read_second"
                           : whole                           ? "load_if_inside"
                           : read->pattern == PATTERN_LINE   ? "load_anywhere"
                           : read->pattern == PATTERN_PADDED ? "load_anywhere"
                           : overhanging                     ? reads->walk.ends_later ? "load_before_end" : "load_inside"
                           : once                            ? "read_vector"
                                                             : "load_vector";
    if (held)
        strbuf_printf(out, "%s%s_packed(t.in%d, ", indent, once ? "read" : "load",
                      input_position(scope->fusion, tensor));
    else
        strbuf_printf(out, "%s%s<VECTOR>(%st.in%d, ", indent, function,
                      !overhanging || is_bits || whole  ? ""
                      : read->pattern == PATTERN_PADDED ? "false, "
                      : read->pattern == PATTERN_LINE   ? "inner, "
                                                        : "within, ",
                      input_position(scope->fusion, tensor));
    strbuf_puts(out,
                read->pattern == PATTERN_FLAT ? flat : element_text(out->arena, scope, read->fetch, &read->offset));
    if (overhanging && !is_bits)
        strbuf_printf(out, ", Index(%" PRId64 ")", tensor_elements(tensor));
    strbuf_printf(out, ", in.x%d);\n", index);
}

void reads_emit_end(StrBuf *out, const Scope *scope, const Reads *reads, int index)
{
    const Read *read = &reads->reads[index];
    const Tensor *tensor = read->access->tensor;
    if (read->pattern == PATTERN_ROW && tensor->dtype != DTYPE_B1 && overhangs(read, &reads->walk))
        strbuf_printf(out, "    load_end<VECTOR>(t.in%d, %s, Index(%" PRId64 "), in.x%d);\n",
                      input_position(scope->fusion, tensor), element_text(out->arena, scope, read->fetch, &read->offset),
                      tensor_elements(tensor), index);
}

static void emit_broadcast(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads, int index)
{
    const Read *read = &reads->reads[index];
    if (read->pattern == PATTERN_PADDED_BROADCAST)
        strbuf_printf(out, "%sif (inside(%s, %" PRId64 "))\n    ", indent,
                      affine_text(out->arena, &read->offset, scope->axis), tensor_elements(read->access->tensor));
    reads_emit_one(out, indent, scope, reads, index, "0");
    strbuf_printf(out, "%sUNROLL for (int e = 1; e < VECTOR; ++e)\n%s    in.x%d[e] = in.x%d[0];\n", indent,
                  indent, index, index);
}

void reads_emit_vector(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads, int index,
                       const char *flat)
{
    bool anywhere = reads->walk.unaligned && is_chosen(reads, index, 1u << PATTERN_LINE);
    uint32_t vectors = 1u << PATTERN_FLAT | 1u << PATTERN_ROW | 1u << PATTERN_SECOND | 1u << PATTERN_PADDED;
    if (anywhere || is_chosen(reads, index, vectors))
        emit_vector(out, indent, scope, reads, index, flat);
    else if (is_chosen(reads, index, 1u << PATTERN_BROADCAST | 1u << PATTERN_PADDED_BROADCAST))
        emit_broadcast(out, indent, scope, reads, index);
}

void reads_emit_vectors(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads,
                        const char *flat)
{
    for (int i = 0; i < reads->count; i++)
        reads_emit_vector(out, indent, scope, reads, i, flat);
}

static void emit_line(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads, int index)
{
    const Read *read = &reads->reads[index];
    if (!is_held(read, &reads->walk)) {
        emit_broadcast(out, indent, scope, reads, index);
        return;
    }
    strbuf_printf(out, "%sin.x%d.load(t.in%d, %s);\n", indent, index,
                  input_position(scope->fusion, read->access->tensor),
                  element_text(out->arena, scope, read->fetch, &read->offset));
}

/* The last vectors of a tensor that ends with a part of a word are read point by point. */
static void emit_inside(StrBuf *out, const Scope *scope, const Reads *reads)
{
    for (int i = 0; i < reads->count; i++) {
        const Read *read = &reads->reads[i];
        int64_t elements = tensor_elements(read->access->tensor);
        int64_t count = 32 / dtype_info[read->access->tensor->dtype].bits;
        if (!is_chosen(reads, i, 1u << PATTERN_LINE) || !is_held(read, &reads->walk) || count <= 1 ||
            elements % count == 0)
            continue;
        strbuf_printf(out, " &&\n            %s + VECTOR <= %" PRId64,
                      element_text(out->arena, scope, read->fetch, &read->offset), elements / count * count);
    }
}

/* A vector meets at most two rows, each of which has one element of every input. */
static bool meets_two_elements(const Reads *reads, int64_t row)
{
    bool held = false;
    for (int i = 0; i < reads->count; i++)
        held |= is_chosen(reads, i, 1u << PATTERN_LINE) && is_held(&reads->reads[i], &reads->walk);
    return !held && row >= reads->walk.vector;
}

/* The elements of the first and the last point, and a choice of the two for each between: a branch would keep all in registers. */
static void emit_two_elements(StrBuf *out, const Scope *scope, const Reads *reads, int64_t row)
{
    static const char *const ends[] = {"0", "VECTOR - 1"}, *const steps[] = {"", " + VECTOR - 1"};
    uint32_t used = reads_axes_of(reads, 1u << PATTERN_LINE);
    const char *inner = "        ";
    for (int end = 0; end < 2; end++) {
        strbuf_printf(out, "    {\n%sconst Index each = point%s;\n", inner, steps[end]);
        emit_used_positions(out, inner, "each", scope, 0, scope->fusion->spatial_count, used);
        for (int i = 0; i < reads->count; i++)
            if (is_chosen(reads, i, 1u << PATTERN_LINE))
                reads_emit_one(out, inner, scope, reads, i, ends[end]);
        strbuf_puts(out, "    }\n");
    }
    strbuf_puts(out, "    UNROLL for (int e = 1; e < VECTOR - 1; ++e) {\n");
    strbuf_printf(out, "%sconst bool first = point %% %" PRId64 " + e < %" PRId64 ";\n", inner, row, row);
    for (int i = 0; i < reads->count; i++)
        if (is_chosen(reads, i, 1u << PATTERN_LINE))
            strbuf_printf(out, "%sin.x%d[e] = first ? in.x%d[0] : in.x%d[VECTOR - 1];\n", inner, i, i, i);
    strbuf_puts(out, "    }\n");
}

void reads_emit_lines(StrBuf *out, const Scope *scope, const Reads *reads)
{
    if (!reads_have(reads, PATTERN_LINE))
        return;
    int axes = scope->fusion->spatial_count;
    int64_t row = scope->fusion->axes[reads->walk.axis].extent;
    if (meets_two_elements(reads, row)) {
        emit_two_elements(out, scope, reads, row);
        return;
    }
    uint32_t used = reads_axes_of(reads, 1u << PATTERN_LINE);
    strbuf_puts(out, "    {\n");
    emit_used_positions(out, "        ", "point", scope, 0, axes, used);
    strbuf_printf(out, "        if (point %% %" PRId64 " + VECTOR <= %" PRId64, row, row);
    emit_inside(out, scope, reads);
    strbuf_puts(out, ") {   // all in one row\n");
    for (int i = 0; i < reads->count; i++)
        if (is_chosen(reads, i, 1u << PATTERN_LINE))
            emit_line(out, "            ", scope, reads, i);
    const char *body = "                ";
    strbuf_puts(out, "        } else\n            UNROLL for (int e = 0; e < VECTOR; ++e) {\n");
    strbuf_printf(out, "%sconst Index each = point + e;\n", body);
    emit_used_positions(out, body, "each", scope, 0, axes, used);
    for (int i = 0; i < reads->count; i++)
        if (is_chosen(reads, i, 1u << PATTERN_LINE))
            reads_emit_one(out, body, scope, reads, i, "e");
    strbuf_puts(out, "            }\n    }\n");
}

void reads_emit_gathers(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads)
{
    for (int i = 0; i < reads->count; i++)
        if (is_chosen(reads, i, 1u << PATTERN_GATHER))
            reads_emit_one(out, indent, scope, reads, i, "e");
}

// ---- epilogues ----

/* Of a function, and of a quotient, in exact arithmetic. */
enum { FUNCTION_INSTRUCTIONS = 20, QUOTIENT_INSTRUCTIONS = 10 };

static void count_instructions(Expr *expr, void *context)
{
    double *instructions = context;
    if (expr->kind != EXPR_APPLY)
        return;
    bool divides = expr->apply.op == OP_DIV && expr->apply.operands[1]->kind != EXPR_CONST;
    bool function = op_info[expr->apply.op].class == OP_CLASS_REAL;
    *instructions += function ? FUNCTION_INSTRUCTIONS : divides ? QUOTIENT_INSTRUCTIONS : 1;
}

double epilogue_instructions(const Fusion *fusion)
{
    double made = 0;
    for (int i = 1; i < fusion->op_count; i++)
        expr_visit(fusion->ops[i].body, count_instructions, &made);
    return made / fusion->output_count;
}
