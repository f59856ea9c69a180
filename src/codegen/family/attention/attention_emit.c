
#include <inttypes.h>
#include <string.h>

#include "codegen/family/attention/attention.h"

static const double LOG2_E = 1.4426950408889634;

/* The flat position along a group. */
const char *const attention_flat[ATTENTION_GROUPS] = {"batch", "row", "column", "d", "n"};

/* A position has the group's name. Columns of Y are vectors: n is the first of one. */
static bool is_one_axis(const Attention *attention, int group)
{
    return attention->group[group].count == 1 && group != ATTENTION_WIDTH;
}

void attention_emit_positions(StrBuf *out, const char *indent, const Scope *scope, const Attention *attention,
                              uint32_t groups, uint32_t used)
{
    for (int g = 0; g < ATTENTION_GROUPS; g++)
        if (groups >> g & 1 && !is_one_axis(attention, g))
            emit_group_positions(out, indent, attention_flat[g], scope, &attention->group[g], used);
}

void attention_emit_function(StrBuf *out, const char *declaration, const StrBuf *body)
{
    enum { LONG = 144, INDENT = 4 };
    bool one = strchr(body->text, '\n') == body->text + body->length - 1;
    int skipped = one ? INDENT : 0, length = (int)body->length - skipped - one;
    const char *open = !one ? "\n{\n" : strlen(declaration) + body->length > LONG ? "\n{ " : " { ";
    strbuf_printf(out, "%s%s%.*s%s}\n", declaration, open, length, body->text + skipped, one ? " " : "");
}

// ---- scores ----

/* A limit for all rows of a tile, or for any: a form is largest in the last row or in the first one. */
static const char *limit_of_rows(Arena *arena, const Scope *known, const Attention *attention, bool end, bool all)
{
    const AxisGroup *rows = &attention->group[ATTENTION_ROW];
    const Affine *forms = end ? attention->end : attention->first;
    const char *text = end ? "COLUMNS" : "0";
    Scope scope = *known;
    int64_t below = rows->count ? rows->extent / known->fusion->axes[rows->axes[0]].extent : 1;
    for (int i = 0; i < (end ? attention->end_count : attention->first_count); i++) {
        bool grows = rows->count && forms[i].coef[rows->axes[0]] > 0, largest = end != all;
        const char *row = grows == largest ? "last_row" : "row0";
        if (rows->count)
            scope.axis[rows->axes[0]] = below == 1 ? row : arena_printf(arena, "(%s / %" PRId64 ")", row, below);
        text = arena_printf(arena, "op_%s<Index>(%s, %s)", end ? "min" : "max", text,
                            affine_text(arena, &forms[i], scope.axis));
    }
    return text;
}

/* No row of a tile begins before its end: a column exists that some row needs. */
static bool always_has_columns(const Attention *attention)
{
    bool has = attention->first_count == 0;
    for (int i = 0; i < attention->end_count; i++) {
        has &= attention->end[i].constant > 0;
        for (int a = 0; a < MAX_AXES; a++)
            has &= attention->end[i].coef[a] >= 0;
    }
    return has;
}

const char *attention_emit_columns(StrBuf *out, const Scope *scope, const Attention *attention, uint32_t axes)
{
    Arena *arena = out->arena;
    const char *begin = limit_of_rows(arena, scope, attention, false, false),
               *end = limit_of_rows(arena, scope, attention, true, false),
               *clear = arena_printf(arena, "%s, %s", limit_of_rows(arena, scope, attention, false, true),
                                     limit_of_rows(arena, scope, attention, true, true));
    for (int i = 0; i < attention->first_count; i++)
        axes |= affine_axes(&attention->first[i]);
    for (int i = 0; i < attention->end_count; i++)
        axes |= affine_axes(&attention->end[i]);
    attention_emit_positions(out, "    ", scope, attention, 1u << ATTENTION_BATCH, axes);
    if (strstr(begin, "last_row") || strstr(end, "last_row") || strstr(clear, "last_row"))
        strbuf_puts(out, "    const Index last_row = op_min<Index>(row0 + BM, ROWS) - 1;\n");
    if (attention->first_count) {
        strbuf_printf(out, "    const Index begin = op_min<Index>(%s, COLUMNS - 1) / BN * BN;\n", begin);
        begin = "begin";
    }
    if (!always_has_columns(attention))
        end = arena_printf(arena, "op_max<Index>(%s, %s + 1)", end, begin);
    return arena_printf(arena, "%s, %s, %s", begin, end, clear);
}

static uint32_t score_axes(const Fusion *fusion, const Attention *attention)
{
    uint32_t axes = 0;
    for (int i = 1; i <= attention->score; i++)
        axes |= expr_axes(i == attention->score ? attention->shown : fusion->ops[i].body);
    return axes | (attention->shown ? expr_axes(fusion->ops[attention->score].body) : 0);
}

/* The score without its scale, which may be inside a select. `bound`: the column may not exist. */
static void emit_shown(StrBuf *out, const Scope *scope, const Attention *attention, const Expr *bound)
{
    const FusedOp *op = &scope->fusion->ops[attention->score];
    const Expr *score = attention_score(scope->fusion, attention), *shown = attention->shown;
    StrBuf text = strbuf_new(out->arena);
    Expr select = *score, guard = bound ? *bound : *score;
    if (shown && score->kind == EXPR_APPLY && score->apply.op == OP_SELECT && shown != score) {
        select.apply.operands[1] = (Expr *)shown;
        shown = &select;
    }
    if (bound) {
        guard.guard.body = (Expr *)shown;
        shown = &guard;
    }
    if (shown)
        emit_expr(&text, scope, shown);
    else
        strbuf_printf(&text, "v%d", attention->score);
    if (attention->shown && op->out->dtype != DTYPE_F32)
        strbuf_printf(out, "convert<float>(%s)", rounded_text(out->arena, scope->fusion, attention->score, text.text));
    else
        strbuf_puts(out, text.text);
}

/* `INSIDE || column <= row ? s : -infinity<float>()` of a score that is masked as a whole, else its two values. */
static void emit_returned_score(StrBuf *out, const Scope *known, const Attention *attention)
{
    Scope inside = *known;
    const Expr *score = attention->shown ? attention_score(known->fusion, attention) : NULL;
    bool masked = score && !attention->bound && score->kind == EXPR_APPLY && score->apply.op == OP_SELECT &&
                  score->apply.operands[0] == attention->condition,
         two = !masked && (attention->condition || attention->bound);
    inside.holds = attention->condition;
    strbuf_puts(out, masked ? "    return INSIDE || " : two ? "    if (INSIDE)\n        return " : "    return ");
    if (masked) {
        emit_expr(out, known, attention->condition);
        strbuf_puts(out, " ? ");
    }
    emit_shown(out, &inside, attention, NULL);
    if (masked) {
        strbuf_puts(out, " : ");
        emit_operand_of(out, known, score->apply.operands[2]);
    } else if (two) {
        strbuf_puts(out, ";\n    return ");
        emit_shown(out, known, attention, attention->bound);
    }
    strbuf_puts(out, ";\n");
}

#define IS_TOTAL "    const float v0 = total;\n"

/* IS_TOTAL, or more. */
static const char *first_score(Arena *arena, const Scope *scope)
{
    StrBuf first = strbuf_new(arena);
    emit_reduced_op(&first, "    ", scope, 0, "total");
    return first.text;
}

static void emit_score(StrBuf *out, const Scope *scope, const Attention *attention)
{
    const char *first = first_score(out->arena, scope);
    uint32_t groups = 1u << ATTENTION_BATCH | 1u << ATTENTION_ROW | 1u << ATTENTION_COLUMN;
    bool is_total = strcmp(first, IS_TOTAL) == 0;
    StrBuf body = strbuf_new(out->arena);
    attention_emit_positions(&body, "    ", scope, attention, groups, score_axes(scope->fusion, attention));
    if (!is_total)
        strbuf_puts(&body, first);
    for (int i = 1; i < attention->score; i++)
        emit_pointwise_op(&body, "    ", scope, i);
    emit_returned_score(&body, scope, attention);
    const char *form = "template <bool INSIDE> DEVICE float score(const Tensors &t, Index batch, Index row, Index column, float %s%s)",
               *beside = !scope->loaded                                  ? ""
                         : attention->beside->tensor->dtype == DTYPE_B1 ? ", bool bit"
                                                                        : ", Beside beside";
    strbuf_puts(out, "// The score as a function of s. INSIDE: the column is unmasked.\n");
    attention_emit_function(out, arena_printf(out->arena, form, is_total ? "v0" : "total", beside), &body);
}

static bool finishes_scores(Arena *arena, const Scope *scope, const Attention *attention)
{
    Scope inside = *scope;
    StrBuf shown = strbuf_new(arena);
    inside.holds = attention->condition;
    emit_shown(&shown, &inside, attention, NULL);
    return strcmp(shown.text, "v0") != 0 || strcmp(first_score(arena, scope), IS_TOTAL) != 0;
}

// ---- results ----

bool attention_needs(const Fusion *fusion, const Attention *attention, int op, uint32_t axes)
{
    bool needed = fusion->ops[op].stored && fusion->ops[op].spatial == axes;
    for (int i = attention->sum + 1; i < fusion->op_count && !needed; i++)
        needed = fusion->ops[i].spatial == axes && expr_reads_value(fusion->ops[i].body, op);
    Expr *beside = attention_share_beside(fusion, attention);
    return needed || (axes == attention->results && beside && expr_reads_value(beside, op));
}

/* The maximum m and the sum of e. */
static void emit_row_values(StrBuf *out, const Scope *scope, const Attention *attention, uint32_t axes)
{
    const Fusion *fusion = scope->fusion;
    for (int i = 0; i < attention->sum; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce == REDUCE_NONE || op->spatial != attention->rows ||
            !attention_needs(fusion, attention, i, axes))
            continue;
        StrBuf text = strbuf_new(out->arena);
        strbuf_puts(&text, i == attention->maximum ? "of.maximum" : "of.sum");
        if (i == attention->maximum && attention->scale != 1) {
            strbuf_puts(&text, " * ");
            emit_real(&text, DTYPE_F32, attention->scale);
        }
        emit_reduced_op(out, "    ", scope, i, text.text);
    }
}

static uint32_t axes_of(const Fusion *fusion, const Attention *attention, uint32_t spatial, bool stores)
{
    uint32_t axes = 0;
    for (int i = attention->sum + 1; i < fusion->op_count && !stores; i++)
        if (fusion->ops[i].spatial == spatial)
            axes |= expr_axes(fusion->ops[i].body);
    for (int i = 0; i < fusion->op_count && stores; i++)
        if (fusion->ops[i].stored && fusion->ops[i].spatial == spatial)
            axes |= access_axes(&fusion->ops[i].store);
    if (!stores && spatial == attention->results)
        axes |= expr_axes(fusion->ops[attention->share].body);
    return axes;
}

static void emit_finish_row(StrBuf *out, const Scope *scope, const Attention *attention)
{
    const Fusion *fusion = scope->fusion;
    uint32_t rows = attention->rows, groups = 1u << ATTENTION_BATCH | 1u << ATTENTION_ROW;
    strbuf_puts(
        out,
        "struct Row { float maximum, sum, inverse; };   // of scores, of p, 1 / sum of p\n"
        "DEVICE void finish_row(const Tensors &t, Index batch, Index row, const Row &of)\n{\n");
    attention_emit_positions(out, "    ", scope, attention, groups,
                             axes_of(fusion, attention, rows, false) |
                                 axes_of(fusion, attention, rows, true));
    emit_row_values(out, scope, attention, rows);
    for (int i = attention->sum + 1; i < fusion->op_count; i++)
        if (fusion->ops[i].spatial == rows)
            emit_pointwise_op(out, "    ", scope, i);
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (!op->stored || op->spatial != rows)
            continue;
        strbuf_printf(out, "    store(t.out%d, %s, v%d);\n", output_position(fusion, op->out),
                      offset_text(out->arena, &op->store, scope->axis), i);
    }
    strbuf_puts(out, "}\n");
}

/* p of what e is. */
static const char *share_text(Arena *arena, const Scope *scope, const Attention *attention)
{
    const Expr *share = scope->fusion->ops[attention->share].body;
    const Expr *beside = attention_share_beside(scope->fusion, attention);
    StrBuf text = strbuf_new(arena);
    if (beside == share) {
        emit_expr(&text, scope, share);
        return text.text;
    }
    bool zero_first = beside && expr_is_zero(share->apply.operands[1]);
    if (beside)
        emit_operand_of(&text, scope, beside);
    strbuf_printf(&text, "%stotals[e] * of.inverse%s", !beside ? "" : zero_first ? " ? 0.0f : " : " ? ",
                  beside && !zero_first ? " : 0.0f" : "");
    return text.text;
}

/* y is a sum of shares, which are e or a part of it: the same part of the sum of e. */
static void emit_result(StrBuf *out, const Scope *scope, const Attention *attention)
{
    const Fusion *fusion = scope->fusion;
    if (!attention_quotient(fusion, attention))
        strbuf_printf(out, "        const float v%d = totals[e];\n", attention->exponential);
    emit_reduced_op(out, "        ", scope, attention->sum, share_text(out->arena, scope, attention));
    for (int i = attention->sum + 1; i < fusion->op_count; i++)
        if (fusion->ops[i].spatial == attention->results)
            emit_pointwise_op(out, "        ", scope, i);
}

/* Maxima or sums of p are seen otherwise than in quotients, which do not show how M is rounded. */
bool attention_shows_sums(const Fusion *fusion, const Attention *attention)
{
    bool shows = !attention_quotient(fusion, attention);
    for (int i = 0; i < attention->sum; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE && fusion->ops[i].spatial == attention->rows)
            shows |= attention_needs(fusion, attention, i, attention->rows) ||
                     attention_needs(fusion, attention, i, attention->results);
    return shows;
}

/* The columns that a lane stores are one aligned access. */
static bool is_aligned(const Fusion *fusion, const Attention *attention, const FusedOp *op)
{
    int axis = axis_group_innermost(&attention->group[ATTENTION_WIDTH]);
    Affine offset = access_offset(&op->store);
    bool aligned = offset.coef[axis] == 1 && offset.constant % ATTENTION_VECTOR == 0 &&
                   fusion->axes[axis].extent % ATTENTION_VECTOR == 0;
    for (int a = 0; a < fusion->axis_count; a++)
        aligned &= a == axis || offset.coef[a] % ATTENTION_VECTOR == 0;
    return aligned;
}

/* Of a vector, which the last one of a row may have none of. */
static const char *each_column(const Attention *attention)
{
    return attention->group[ATTENTION_WIDTH].extent % ATTENTION_VECTOR
               ? "    UNROLL for (int e = 0; e < QN && n + e < WIDTH; ++e)"
               : "    UNROLL for (int e = 0; e < QN; ++e)";
}

/* Two elements of 16 bits are one register of the tensor cores. */
static void emit_store(StrBuf *out, const Scope *known, const Attention *attention, const FusedOp *op)
{
    Scope scope = *known;
    int width = axis_group_innermost(&attention->group[ATTENTION_WIDTH]), output = output_position(scope.fusion, op->out);
    bool is_vector = is_aligned(scope.fusion, attention, op);
    bool is_four = op->out->dtype == DTYPE_F16 || op->out->dtype == DTYPE_BF16;
    scope.axis[width] = is_vector ? "n" : "(n + e)";
    const char *offset = offset_text(out->arena, &op->store, scope.axis);
    if (!is_vector)
        strbuf_puts(out, each_column(attention));
    const char *form = !is_vector ? "\n        store(t.out%d, %s, y%d[e]);\n"
                       : is_four  ? "    store_four(t.out%d + (%s), y%d);\n"
                                  : "    store_vector<QN>(t.out%d, %s, y%d);\n";
    strbuf_printf(out, form, output, offset, output);
}

static bool is_stored_result(const FusedOp *op, const Attention *attention)
{
    return op->stored && op->spatial == attention->results;
}

/* One statement is all where y is the sum of p and no more. */
static void emit_element(StrBuf *out, const Scope *scope, const Attention *attention, bool positioned)
{
    const Fusion *fusion = scope->fusion;
    StrBuf sum = strbuf_new(out->arena), body = strbuf_new(out->arena);
    const char *begin = arena_printf(out->arena, "        const float v%d = ", attention->sum);
    emit_result(&sum, scope, attention);
    const char *value = strncmp(sum.text, begin, strlen(begin)) == 0 ? sum.text + strlen(begin) : "";
    if (attention->sum == fusion->op_count - 1 && strchr(value, '\n') == sum.text + sum.length - 1) {
        strbuf_printf(out, "%s\n        y%d[e] = %s", each_column(attention),
                      output_position(fusion, fusion->ops[attention->sum].out), value);
        return;
    }
    if (positioned)
        strbuf_printf(&body, "        const Index %s = n + e;\n", scope->axis[axis_group_innermost(&attention->group[ATTENTION_WIDTH])]);
    strbuf_puts(&body, sum.text);
    for (int i = 0; i < fusion->op_count; i++)
        if (is_stored_result(&fusion->ops[i], attention))
            strbuf_printf(&body, "        y%d[e] = v%d;\n", output_position(fusion, fusion->ops[i].out), i);
    strbuf_printf(out, "%s {\n%s    }\n", each_column(attention), body.text);
}

static void emit_finish_vector(StrBuf *out, const Scope *known, const Attention *attention)
{
    Scope scope = *known;
    const Fusion *fusion = scope.fusion;
    int width = axis_group_innermost(&attention->group[ATTENTION_WIDTH]);
    uint32_t inner = axes_of(fusion, attention, attention->results, false),
             stores = axes_of(fusion, attention, attention->results, true);
    strbuf_puts(out, "DEVICE void finish_vector(const Tensors &t, Index batch, Index row, Index n, const float (&totals)[QN], "
                     "const Row &of)\n{\n");
    attention_emit_positions(out, "    ", &scope, attention, 1u << ATTENTION_BATCH | 1u << ATTENTION_ROW,
                             inner | stores);
    emit_row_values(out, &scope, attention, attention->results);
    for (int i = 0; i < fusion->op_count; i++)
        if (is_stored_result(&fusion->ops[i], attention))
            strbuf_printf(out, "    %s y%d[QN];\n", value_type(fusion->ops[i].out->dtype),
                          output_position(fusion, fusion->ops[i].out));
    emit_element(out, &scope, attention, inner >> width & 1);
    for (int i = 0; i < fusion->op_count; i++)
        if (is_stored_result(&fusion->ops[i], attention))
            emit_store(out, &scope, attention, &fusion->ops[i]);
    strbuf_puts(out, "}\n");
}

Scope attention_scope(const KernelPlan *plan)
{
    const Attention *attention = plan->view;
    Scope scope = {.fusion = plan->fusion, .wide = plan->wide};
    for (int a = 0; a < plan->fusion->axis_count; a++)
        scope.axis[a] = axis_names[a];
    for (int g = 0; g < ATTENTION_GROUPS; g++)
        if (is_one_axis(attention, g))
            scope.axis[attention->group[g].axes[0]] = attention_flat[g];
    return scope;
}

void attention_emit_sizes(StrBuf *out, const KernelPlan *plan, const Scope *scope)
{
    const Attention *attention = plan->view;
    const AttentionTile *tile = plan->kind->choice.value;
    const AxisGroup *group = attention->group;
    strbuf_printf(out, "using Element = %s;   // of Q, K, V, and of p\n",
                  dtype_info[attention->q->tensor->dtype].cuda);
    CONSTEXPR(out, "Index BATCH, ROWS, COLUMNS", "problem", group[ATTENTION_BATCH].extent, group[ATTENTION_ROW].extent,
              group[ATTENTION_COLUMN].extent);
    CONSTEXPR(out, "int DEPTH, WIDTH, QN", "QN: columns of Y that a thread stores", tile->depth, tile->width, ATTENTION_VECTOR);
    CONSTEXPR(out, "int BM, BN, WM", tile->groups ? "rTile: of the block, rows of a warp group" : "rTile: of the block, rows of a warp",
              plan->program->tile[LEVEL_SHARED].size[ATTENTION_ROW], tile->columns, tile->rows);
    if (tile->groups) {
        CONSTEXPR(out, "int PARTS, SPLITS, CLUSTER, WAYS", "of a p; groups and blocks that split the columns, both",
                  tile->parts, tile->splits, tile->cluster, tile->splits * tile->cluster);
        CONSTEXPR(out, "int STAGES, Q_STAGES", "of the pipelines of K and V, and of Q", tile->stages * tile->splits,
                  tile->q_stages);
    } else {
        CONSTEXPR(out, "int PARTS, STAGES", "narrow elements that represent a p; of the pipeline", tile->parts, tile->stages);
        CONSTEXPR(out, "int PIECE", "elements of a line of Q, K and V that are copied at once", attention->piece);
        CONSTEXPR(out, "int SPLITS, CLUSTER", "warps and blocks that split the columns", tile->splits, tile->cluster);
    }
    CONSTEXPR(out, "bool MASKS, BACKWARDS", "columns are masked by position; more of the first rows, which come last",
              attention->masks, attention_is_longest_last(attention));
    CONSTEXPR(out, "bool FINISHED", "unmasked scores are not just sums", finishes_scores(out->arena, scope, attention));
    CONSTEXPR(out, "bool EXACT_SUMS", "maxima or sums are used otherwise than in quotients", attention_shows_sums(plan->fusion, attention));
    strbuf_puts(out, "constexpr float SCALE = ");
    emit_real(out, DTYPE_F32, attention->scale * LOG2_E);
    strbuf_puts(out, ";   // log2(e) times the factor of the scores\n");
}

void attention_emit_functions(StrBuf *out, const Scope *scope, const Attention *attention)
{
    emit_score(out, scope, attention);
    emit_finish_row(out, scope, attention);
    emit_finish_vector(out, scope, attention);
}
