
#include "base/checked.h"
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

// ---- sizes ----

static void emit_float(StrBuf *out, double value)
{
    StrBuf number = strbuf_new(out->arena);
    strbuf_float(&number, (float)value);
    bool whole = true;
    for (const char *c = number.text; *c; c++)
        whole &= *c != '.' && *c != 'e';
    strbuf_printf(out, "%s%sf", number.text, whole ? ".0" : "");
}

/* Columns of the result that are one aligned access in every output. */
static int aligned_columns(const Fusion *fusion, const Attention *attention)
{
    int vector = 8, axis = axis_group_innermost(&attention->group[ATTENTION_WIDTH]);
    for (int i = 0; i < fusion->op_count; i++) {
        Affine offset = access_offset(&fusion->ops[i].store);
        if (!fusion->ops[i].stored || fusion->ops[i].spatial != attention->results)
            continue;
        vector = offset.coef[axis] == 1 ? vector : 1;
        while (vector > 1 && offset.constant % vector)
            vector /= 2;
        for (int a = 0; a < fusion->axis_count; a++)
            while (vector > 1 && a != axis && offset.coef[a] % vector)
                vector /= 2;
    }
    return vector;
}

const FusedOp *attention_whole_result(const Fusion *fusion, const Attention *attention)
{
    const FusedOp *result = NULL;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (!op->stored || op->spatial != attention->results)
            continue;
        if (result)
            return NULL;
        result = op;
    }
    int bytes = result ? dtype_info[result->out->dtype].bits / 8 : 0;
    return (bytes == 2 || bytes == 4) && aligned_columns(fusion, attention) * bytes >= 16 ? result : NULL;
}

int attention_vector(const Fusion *fusion, const Attention *attention, const AttentionTile *tile)
{
    bool is_lane = tile->groups && tile->splits == 1;   // which has two of every eight columns
    return is_lane ? 2 : aligned_columns(fusion, attention);
}

void attention_emit_sizes(StrBuf *out, const KernelPlan *plan, const Attention *attention,
                          const AttentionTile *tile, const char *holder)
{
    const AxisGroup *group = attention->group;
    strbuf_printf(out, "using Element = %s;   // of Q, K, V, and of p\n",
                  dtype_info[attention->q->tensor->dtype].cuda);
    CONSTEXPR(out, "Index BATCH, ROWS, COLUMNS", "problem", group[ATTENTION_BATCH].extent, group[ATTENTION_ROW].extent,
              group[ATTENTION_COLUMN].extent);
    CONSTEXPR(out, "int DEPTH, WIDTH", NULL, tile->depth, tile->width);
    CONSTEXPR(out, "int BM, BN, WM", arena_printf(out->arena, "rTile: of the block, rows of %s", holder),
              plan->program->tile[LEVEL_SHARED].size[ATTENTION_ROW], tile->columns, tile->rows);
    CONSTEXPR(out, "int PARTS", "narrow elements that represent a p", tile->parts);
    if (tile->groups) {
        CONSTEXPR(out, "int SPLITS", "warp groups that split the columns", tile->splits);
        CONSTEXPR(out, "int STAGES, Q_STAGES", "of the pipelines of K and V, and of Q", tile->stages * tile->splits,
                  tile->q_stages);
    } else {
        CONSTEXPR(out, "int SPLITS, CLUSTER", "warps and blocks that split the columns", tile->splits, tile->cluster);
        CONSTEXPR(out, "int STAGES", "of the pipeline", tile->stages);
    }
    CONSTEXPR(out, "bool MASKS, BACKWARDS", "columns are masked by position; more of the first rows, which come last",
              attention->masks, attention_is_longest_last(attention));
    strbuf_puts(out, "constexpr float SCALE = ");
    emit_float(out, attention->scale * LOG2_E);
    strbuf_puts(out, ";   // log2(e) times the factor of the scores\n");
    CONSTEXPR(out, "int QN", "columns of Y that a thread stores", attention_vector(plan->fusion, attention, tile));
}

// ---- scores ----

/* `op_min<Index>(COLUMNS, i1 + 1)` */
static void emit_limit(StrBuf *out, const Scope *scope, const Attention *attention, bool end)
{
    const Affine *forms = end ? attention->end : attention->first;
    int count = end ? attention->end_count : attention->first_count;
    uint32_t used = 0;
    for (int i = 0; i < count; i++)
        used |= affine_axes(&forms[i]);
    strbuf_printf(out,
                  "__device__ __forceinline__ Index %s_column(Index batch, Index row)\n{\n    (void)batch;\n "
                  "   (void)row;\n",
                  end ? "end" : "first");
    attention_emit_positions(out, "    ", scope, attention, 1u << ATTENTION_BATCH | 1u << ATTENTION_ROW,
                             used);
    strbuf_puts(out, "    return ");
    for (int i = 0; i < count; i++)
        strbuf_puts(out, end ? "op_min<Index>(" : "op_max<Index>(");
    strbuf_puts(out, end ? "COLUMNS" : "0");
    for (int i = 0; i < count; i++) {
        strbuf_printf(out, ", %s)", affine_text(out->arena, &forms[i], scope->axis));
    }
    strbuf_puts(out, ";\n}\n");
}

/* A limit for all rows of a tile, or for any: a form is largest in the last row or in the first one. */
static const char *limit_of_rows(Arena *arena, const Scope *known, const Attention *attention, bool end, bool all)
{
    const AxisGroup *rows = &attention->group[ATTENTION_ROW];
    const Affine *forms = end ? attention->end : attention->first;
    const char *text = end ? "COLUMNS" : "0";
    Scope scope = *known;
    for (int i = 0; i < (end ? attention->end_count : attention->first_count); i++) {
        bool grows = rows->count && forms[i].coef[rows->axes[0]] > 0, largest = end != all;
        if (rows->count)
            scope.axis[rows->axes[0]] = grows == largest ? "last_row" : "first_row";
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

static uint32_t limit_axes(const Attention *attention)
{
    uint32_t axes = 0;
    for (int i = 0; i < attention->first_count; i++)
        axes |= affine_axes(&attention->first[i]);
    for (int i = 0; i < attention->end_count; i++)
        axes |= affine_axes(&attention->end[i]);
    return axes;
}

void attention_emit_columns(StrBuf *out, const Scope *scope, const Attention *attention)
{
    Arena *arena = out->arena;
    const char *begin = limit_of_rows(arena, scope, attention, false, false),
               *end = limit_of_rows(arena, scope, attention, true, false);
    strbuf_puts(out, "\n// The columns that any of some rows needs, from a multiple of BN on, and those that all of them need.\n"
                     "struct Columns { Index begin, end, clear_begin, clear_end; };\n"
                     "__device__ __forceinline__ Columns columns_of(Index batch, Index first_row, Index last_row)\n{\n"
                     "    (void)batch, (void)first_row, (void)last_row;\n");
    attention_emit_positions(out, "    ", scope, attention, 1u << ATTENTION_BATCH, limit_axes(attention));
    if (attention->first_count) {
        strbuf_printf(out, "    const Index begin = op_min<Index>(%s, COLUMNS - 1) / BN * BN;\n", begin);
        begin = "begin";
    }
    if (!always_has_columns(attention))
        end = arena_printf(arena, "op_max<Index>(%s, %s + 1)", end, begin);
    strbuf_printf(out, "    return {%s, %s, %s, %s};\n}\n", begin, end,
                  limit_of_rows(arena, scope, attention, false, true), limit_of_rows(arena, scope, attention, true, true));
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

static void emit_score(StrBuf *out, const Scope *known, const Attention *attention)
{
    Scope scope = *known;
    strbuf_puts(
        out, "\n// The score as a function of s. INSIDE: the column is unmasked.\n"
             "template <bool INSIDE>\n__device__ __forceinline__ float score(const Tensors &t, Index batch, "
             "Index row, Index column, float total)\n{\n    (void)t, (void)batch, (void)row, (void)column;\n");
    uint32_t groups = 1u << ATTENTION_BATCH | 1u << ATTENTION_ROW | 1u << ATTENTION_COLUMN;
    attention_emit_positions(out, "    ", &scope, attention, groups, score_axes(scope.fusion, attention));
    emit_reduced_op(out, "    ", &scope, 0, "total");
    for (int i = 1; i < attention->score; i++)
        emit_pointwise_op(out, "    ", &scope, i);
    if (attention->condition || attention->bound) {
        scope.holds = attention->condition;
        strbuf_puts(out, "    if (INSIDE)\n        return ");
        emit_shown(out, &scope, attention, NULL);
        strbuf_puts(out, ";\n");
        scope.holds = NULL;
    }
    strbuf_puts(out, "    return ");
    emit_shown(out, &scope, attention, attention->bound);
    strbuf_puts(out, ";\n}\n");
}

// ---- results ----

typedef struct ValueSearch {
    int op;
    bool found;
} ValueSearch;

static void value_visit(Expr *expr, void *context)
{
    ValueSearch *search = context;
    search->found |= expr->kind == EXPR_VALUE && expr->value == search->op;
}

bool attention_needs(const Fusion *fusion, const Attention *attention, int op, uint32_t axes)
{
    ValueSearch search = {.op = op};
    search.found = fusion->ops[op].stored && fusion->ops[op].spatial == axes;
    for (int i = attention->sum + 1; i < fusion->op_count; i++)
        if (fusion->ops[i].spatial == axes)
            expr_visit(fusion->ops[i].body, value_visit, &search);
    Expr *beside = attention_share_beside(fusion, attention);
    if (axes == attention->results && beside)
        expr_visit(beside, value_visit, &search);
    return search.found;
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
            emit_float(&text, attention->scale);
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
        "\nstruct Row { float maximum, sum, inverse; };   // of scores, of p, 1 / sum of p\n"
        "__device__ __forceinline__ void finish_row(const Tensors &t, Index batch, Index row, Row of)\n{\n"
        "    (void)t, (void)batch, (void)row, (void)of;\n");
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
static void emit_share(StrBuf *out, const Scope *scope, const Attention *attention)
{
    const Expr *share = scope->fusion->ops[attention->share].body;
    const Expr *beside = attention_share_beside(scope->fusion, attention);
    if (beside == share) {
        emit_expr(out, scope, share);
        return;
    }
    bool zero_first = beside && expr_is_zero(share->apply.operands[1]);
    if (beside)
        emit_operand_of(out, scope, beside);
    strbuf_printf(out, "%sv%d * inverse%s", !beside ? "" : zero_first ? " ? 0.0f : " : " ? ", attention->exponential,
                  beside && !zero_first ? " : 0.0f" : "");
}

/* y is a sum of shares, which are e or a part of it: the same part of the sum of e. */
static void emit_result(StrBuf *out, const Scope *scope, const Attention *attention)
{
    const Fusion *fusion = scope->fusion;
    StrBuf share = strbuf_new(out->arena);
    emit_share(&share, scope, attention);
    strbuf_printf(out, "        const float v%d = totals[e];\n", attention->exponential);
    emit_reduced_op(out, "        ", scope, attention->sum, share.text);
    for (int i = attention->sum + 1; i < fusion->op_count; i++)
        if (fusion->ops[i].spatial == attention->results)
            emit_pointwise_op(out, "        ", scope, i);
}

/* Sums of p are seen otherwise than in quotients, which do not show how M is rounded. */
bool attention_shows_sums(const Fusion *fusion, const Attention *attention)
{
    bool shows = !attention_quotient(fusion, attention);
    for (int i = 0; i < attention->sum; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE && fusion->ops[i].spatial == attention->rows && i != attention->maximum)
            shows |= attention_needs(fusion, attention, i, attention->rows) ||
                     attention_needs(fusion, attention, i, attention->results);
    return shows;
}

/* Two elements of 16 bits are one register of the tensor cores. Columns that are not contiguous are stored one by one. */
static void emit_store(StrBuf *out, const Scope *known, const Attention *attention, const AttentionTile *tile, const FusedOp *op)
{
    Scope scope = *known;
    int width = axis_group_innermost(&attention->group[ATTENTION_WIDTH]), output = output_position(scope.fusion, op->out);
    int columns = attention_vector(scope.fusion, attention, tile);
    bool is_pair = tile->groups && columns == 2 && (op->out->dtype == DTYPE_F16 || op->out->dtype == DTYPE_BF16);
    scope.axis[width] = "n";
    const char *offset = offset_text(out->arena, &op->store, scope.axis);
    if (tile->staged && is_pair) {
        strbuf_printf(out, "    store_pair(to, y%d);\n", output);
        return;
    }
    if (tile->staged) {
        strbuf_printf(out, "    store_vector<QN>(to, 0, y%d);\n", output);
        return;
    }
    if (columns <= aligned_columns(scope.fusion, attention)) {
        strbuf_printf(out, is_pair ? "    store_pair(t.out%d + (%s), y%d);\n" : "    store_vector<QN>(t.out%d, %s, y%d);\n",
                      output, offset, output);
        return;
    }
    scope.axis[width] = "(n + e)";
    strbuf_printf(out, "    UNROLL for (int e = 0; e < QN; ++e)\n        store(t.out%d, %s, y%d[e]);\n", output,
                  offset_text(out->arena, &op->store, scope.axis), output);
}

static bool is_stored_result(const FusedOp *op, const Attention *attention)
{
    return op->stored && op->spatial == attention->results;
}

static void emit_finish_vector(StrBuf *out, const Scope *known, const Attention *attention,
                               const AttentionTile *tile)
{
    Scope scope = *known;
    const Fusion *fusion = scope.fusion;
    int width = axis_group_innermost(&attention->group[ATTENTION_WIDTH]);
    uint32_t inner = axes_of(fusion, attention, attention->results, false),
             stores = axes_of(fusion, attention, attention->results, true);
    strbuf_puts(
        out,
        "__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index row, Index n,\n"
        "                                              const float (&totals)[QN], const Row &of");
    strbuf_puts(out, tile->groups ? ", Result *to)\n{\n    (void)t, (void)batch, (void)row, (void)n, (void)of, (void)to;\n"
                                  : ")\n{\n    (void)batch, (void)of;\n");
    attention_emit_positions(out, "    ", &scope, attention, 1u << ATTENTION_BATCH | 1u << ATTENTION_ROW,
                             inner | stores);
    emit_row_values(out, &scope, attention, attention->results);
    if (attention_quotient(fusion, attention))
        strbuf_puts(out, "    const float inverse = of.inverse;\n");
    for (int i = 0; i < fusion->op_count; i++)
        if (is_stored_result(&fusion->ops[i], attention))
            strbuf_printf(out, "    %s y%d[QN];\n", value_type(fusion->ops[i].out->dtype),
                          output_position(fusion, fusion->ops[i].out));
    strbuf_puts(out, "    UNROLL for (int e = 0; e < QN; ++e) {\n");
    if (inner >> width & 1)
        strbuf_printf(out, "        const Index %s = n + e;\n", scope.axis[width]);
    emit_result(out, &scope, attention);
    for (int i = 0; i < fusion->op_count; i++)
        if (is_stored_result(&fusion->ops[i], attention))
            strbuf_printf(out, "        y%d[e] = v%d;\n", output_position(fusion, fusion->ops[i].out), i);
    strbuf_puts(out, "    }\n");
    for (int i = 0; i < fusion->op_count; i++)
        if (is_stored_result(&fusion->ops[i], attention))
            emit_store(out, &scope, attention, tile, &fusion->ops[i]);
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

static void emit_result_at(StrBuf *out, const Scope *known, const Attention *attention)
{
    const FusedOp *op = attention_whole_result(known->fusion, attention);
    Scope scope = *known;
    strbuf_puts(out, "__device__ __forceinline__ Result *result_at(const Tensors &t, Index batch, Index row, Index n)\n{\n");
    attention_emit_positions(out, "    ", &scope, attention, 1u << ATTENTION_BATCH | 1u << ATTENTION_ROW,
                             access_axes(&op->store));
    scope.axis[axis_group_innermost(&attention->group[ATTENTION_WIDTH])] = "n";
    strbuf_printf(out, "    return t.out%d + (%s);\n}\n", output_position(scope.fusion, op->out),
                  offset_text(out->arena, &op->store, scope.axis));
}

void attention_emit_limits(StrBuf *out, const Scope *scope, const Attention *attention)
{
    strbuf_puts(out, "\n// The unmasked columns of a row: from first_column() to before end_column().\n");
    emit_limit(out, scope, attention, false);
    emit_limit(out, scope, attention, true);
}

void attention_emit_functions(StrBuf *out, const Scope *scope, const Attention *attention, const AttentionTile *tile)
{
    emit_score(out, scope, attention);
    emit_finish_row(out, scope, attention);
    emit_finish_vector(out, scope, attention, tile);
    if (tile->staged)
        emit_result_at(out, scope, attention);
}
