// matmul: a sum of products of two factors that share the reduced axes and differ in the others.
//
// The axes of the fused expression fall into four groups, and each group is walked as one flat axis:
//   batch   spatial, in both factors       m   spatial, in the first only
//   k       reduced, in both               n   spatial, in the second only
// A convolution has this structure too: m are its pixels or filters, k its channels and taps.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "codegen/family/family.h"
#include "rtile/space.h"

enum { GROUP_BATCH, GROUP_M, GROUP_N, GROUP_K, GROUP_COUNT };
enum { ACCESS_BYTES = 16, MAX_TILE = 256, MAX_REGISTER_TILE = 16, MAX_K_STEP = 32, STAGES = 2 };

/* The axes of a group, in the fusion's order; the last one is the innermost of the flat position. */
typedef struct Group {
    int axes[MAX_AXES];
    int count;
    int64_t extent;
} Group;

typedef struct Product {
    const Expr *factor[2];   // A, B
    const Guard *guard;      // above the product, NULL if none (a split reduction has one)
    Group group[GROUP_COUNT];
} Product;

// ---- structure ----

static void group_add(Group *group, const Fusion *fusion, int axis)
{
    group->axes[group->count++] = axis;
    group->extent *= fusion->axes[axis].extent;
}

static bool group_axes(const Fusion *fusion, Product *product)
{
    uint32_t used[2] = {expr_axes(product->factor[0]), expr_axes(product->factor[1])};
    for (int g = 0; g < GROUP_COUNT; g++)
        product->group[g] = (Group){.extent = 1};
    for (int a = 0; a < fusion->axis_count; a++) {
        bool first = used[0] >> a & 1, second = used[1] >> a & 1, reduced = a >= fusion->spatial_count;
        if (reduced ? !(first && second) : !(first || second))
            return false;
        int group = reduced ? GROUP_K : first && second ? GROUP_BATCH : first ? GROUP_M : GROUP_N;
        group_add(&product->group[group], fusion, a);
    }
    return product->group[GROUP_M].count && product->group[GROUP_N].count && product->group[GROUP_K].count;
}

static bool is_zero(const Expr *expr)
{
    return expr->kind == EXPR_CONST &&
           (dtype_info[expr->type].is_real ? expr->constant.real == 0 : expr->constant.integer == 0);
}

/* The innermost axis of the output belongs to n, so that neighbouring threads store neighbouring elements. */
static void orient(const Fusion *fusion, Product *product)
{
    const Group *m = &product->group[GROUP_M];
    if (m->axes[m->count - 1] != fusion->spatial_count - 1)
        return;
    Group swapped = product->group[GROUP_M];
    product->group[GROUP_M] = product->group[GROUP_N];
    product->group[GROUP_N] = swapped;
    const Expr *factor = product->factor[0];
    product->factor[0] = product->factor[1];
    product->factor[1] = factor;
}

static bool find_product(const Fusion *fusion, Product *product)
{
    if (!fusion_is_reduction(fusion) || fusion->ops[0].reduce != REDUCE_SUM)
        return false;
    const Expr *body = fusion->ops[0].body;
    *product = (Product){.guard = NULL};
    if (body->kind == EXPR_GUARD && is_zero(body->guard.otherwise)) {
        product->guard = &body->guard;
        body = body->guard.body;
    }
    if (body->kind != EXPR_APPLY || body->apply.op != OP_MUL)
        return false;
    product->factor[0] = body->apply.operands[0];
    product->factor[1] = body->apply.operands[1];
    if (!group_axes(fusion, product))
        return false;
    orient(fusion, product);
    return true;
}

static bool matches(const Fusion *fusion, const DeviceSpec *device)
{
    (void)device;
    Product product;
    return count_bit_outputs(fusion) == 0 && find_product(fusion, &product);
}

// ---- how the factors lie in memory ----

static void first_access_visit(Expr *expr, void *context)
{
    const Access **found = context;
    if (expr->kind == EXPR_ACCESS && !*found)
        *found = &expr->access;
}

static const Access *first_access(const Expr *factor)
{
    const Access *found = NULL;
    expr_visit((Expr *)factor, first_access_visit, &found);
    return found;
}

static int innermost(const Group *group) { return group->axes[group->count - 1]; }

/* Elements that lie together when walking a group's innermost axis: its extent over its stride; 0: it does not move. */
static double run_along(const Fusion *fusion, const Access *access, const Group *group)
{
    if (!access)
        return 0;
    Affine offset = access_offset(access);
    int axis = innermost(group);
    int64_t stride = offset.coef[axis] < 0 ? -offset.coef[axis] : offset.coef[axis];
    return stride ? (double)fusion->axes[axis].extent / (double)stride : 0;
}

/* Neighbouring threads should walk the direction in which the factor's elements lie closer together. */
static bool is_along_k(const Fusion *fusion, const Product *product, int factor)
{
    const Access *access = first_access(product->factor[factor]);
    const Group *rows = &product->group[factor ? GROUP_N : GROUP_M];
    return run_along(fusion, access, &product->group[GROUP_K]) > run_along(fusion, access, rows);
}

/* Whether `vector` neighbours along the axis are one aligned access. */
static bool allows_vector(const Fusion *fusion, const Affine *offset, int axis, int64_t vector)
{
    if (fusion->axes[axis].extent % vector || offset->coef[axis] != 1 || offset->constant % vector)
        return false;
    for (int a = 0; a < MAX_AXES; a++)
        if (a != axis && offset->coef[a] % vector)
            return false;
    return true;
}

/* Elements of one access of the factor along its fast direction, inside a tile of `tile` elements that way. */
static int vector_of(const Fusion *fusion, const Product *product, int factor, int64_t tile)
{
    const Expr *expr = product->factor[factor];
    if (expr->kind != EXPR_ACCESS || product->guard || expr->access.tensor->dtype == DTYPE_B1)
        return 1;
    const Group *fast = &product->group[is_along_k(fusion, product, factor) ? GROUP_K
                                        : factor                            ? GROUP_N
                                                                            : GROUP_M];
    Affine offset = access_offset(&expr->access);
    int vector = ACCESS_BYTES * 8 / dtype_info[expr->access.tensor->dtype].bits;
    while (vector > 1 && (tile % vector || !allows_vector(fusion, &offset, innermost(fast), vector)))
        vector /= 2;
    return vector;
}

// ---- rules ----

static uint32_t group_mask(const Group *group)
{
    uint32_t mask = 0;
    for (int i = 0; i < group->count; i++)
        mask |= 1u << group->axes[i];
    return mask;
}

static uint32_t factor_axes(const Product *product, int factor)
{
    uint32_t axes = expr_axes(product->factor[factor]);
    for (int d = 0; product->guard && d < product->guard->count; d++)
        for (int a = 0; a < MAX_AXES; a++)
            axes |= (uint32_t)(product->guard->bounds[d].index.coef[a] != 0) << a;
    return axes;
}

static int element_bits(const Expr *factor)
{
    const Access *access = first_access(factor);
    return access ? dtype_info[access->tensor->dtype].bits : 32;
}

/* One by one: an address, a test and a load; a division and a remainder for each position that a group holds. */
enum { ELEMENT_INSTRUCTIONS = 6, POSITION_INSTRUCTIONS = 8 };

static double search_instructions(const Fusion *fusion, const Product *product, int factor)
{
    uint32_t used = factor_axes(product, factor);
    double positions = 0;
    for (int a = 0; a < fusion->axis_count; a++)
        positions += used >> a & 1;
    for (int g = 0; g < GROUP_COUNT; g++)
        positions -= (used & group_mask(&product->group[g])) != 0;   // a group's outermost costs nothing
    return ELEMENT_INSTRUCTIONS + POSITION_INSTRUCTIONS * positions;
}

static DataTile operand_tile(const Fusion *fusion, const Product *product, int factor, int value_bits)
{
    int rows = factor ? GROUP_N : GROUP_M;
    DataTile tile = {.rank = 3, .scatter = 1, .staged = true, .staged_granule = 128 / value_bits};
    const Access *access = first_access(product->factor[factor]);
    tile.name = access ? access->tensor->name : NULL;
    tile.element_bits = element_bits(product->factor[factor]);
    tile.staged_bits = value_bits;
    if (vector_of(fusion, product, factor, MAX_TILE) == 1)
        tile.instructions = search_instructions(fusion, product, factor);
    bool along_k = is_along_k(fusion, product, factor);
    int row_dim = along_k ? 1 : 2, k_dim = along_k ? 2 : 1;
    tile.dims[0] = (Dim){affine_axis(GROUP_BATCH), product->group[GROUP_BATCH].extent};
    tile.dims[row_dim] = (Dim){affine_axis(rows), product->group[rows].extent};
    tile.dims[k_dim] = (Dim){affine_axis(GROUP_K), product->group[GROUP_K].extent};
    tile.staged_inner = row_dim;
    return tile;
}

static DataTile output_tile(const Fusion *fusion, const Product *product, int op)
{
    const Tensor *out = fusion->ops[op].out;
    DataTile tile = {
        .name = out->name, .rank = 3, .scatter = 1, .output = true, .element_bits = dtype_info[out->dtype].bits};
    for (int g = 0; g < 3; g++)
        tile.dims[g] = (Dim){affine_axis(g), product->group[g].extent};
    return tile;
}

/* While the block multiplies what is in shared memory, the operands' next tiles come to registers. */
static Schedule schedule_of(const Fusion *fusion, const TileSpace *space)
{
    Schedule schedule = {.pace = PACE_FREE, .order = ORDER_PANELS};
    uint32_t operands = space_inputs(space);
    schedule_loop(&schedule, (Loop){.axis = GROUP_K});
    schedule_load(&schedule,
                  (Move){.tiles = operands, .from = PLACE_MEMORY, .to = PLACE_REGISTERS, .ahead = 1});
    schedule_store(&schedule, (Move){.tiles = operands, .from = PLACE_REGISTERS, .to = PLACE_SHARED});
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_load(&schedule, (Move){.tiles = operands, .from = PLACE_SHARED, .to = PLACE_REGISTERS});
    schedule_product(&schedule, schedule_ops(fusion, true));
    schedule_end(&schedule);
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule,
                   (Move){.tiles = space_outputs(space), .from = PLACE_REGISTERS, .to = PLACE_MEMORY});
    return schedule;
}

static int rules(const Fusion *fusion, const DeviceSpec *device, TileRules *variants)
{
    Product product;
    find_product(fusion, &product);
    TileRules *rules = &variants[0];
    *rules = (TileRules){.space = space_new(fusion, device), .variant_name = "tiled", .stages = STAGES};
    static const char *const names[] = {"batch", "m", "n", "k"};
    for (int g = 0; g < GROUP_COUNT; g++)
        space_add_axis(&rules->space, names[g], product.group[g].extent, g == GROUP_K);
    int value_bits = dtype_info[fusion->ops[0].body->type].bits;
    for (int factor = 0; factor < 2; factor++)
        rules->space.tiles[rules->space.tile_count++] = operand_tile(fusion, &product, factor, value_bits);
    for (int i = 0; i < fusion->op_count && rules->space.tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored)
            rules->space.tiles[rules->space.tile_count++] = output_tile(fusion, &product, i);

    rules->schedule = schedule_of(fusion, &rules->space);

    AxisRule none = {1, 1};
    rules->rule[LEVEL_REGISTER][GROUP_BATCH] = rules->rule[LEVEL_SHARED][GROUP_BATCH] = none;
    rules->rule[LEVEL_REGISTER][GROUP_K] = none;
    rules->rule[LEVEL_SHARED][GROUP_K] = (AxisRule){8, MAX_K_STEP};
    for (int g = GROUP_M; g <= GROUP_N; g++) {
        rules->rule[LEVEL_REGISTER][g] = (AxisRule){1, MAX_REGISTER_TILE};
        rules->rule[LEVEL_SHARED][g] = (AxisRule){1, MAX_TILE};
    }
    rules->accumulator_bits = value_bits;
    rules->register_overhead = 32;
    rules->input_buffers = 2;
    rules->copies_through_registers = true;
    return 1;
}

// ---- the parameter block ----

/* Neighbouring rows or columns of a thread that are read as one vector of shared memory. */
static int group_of(int64_t register_tile, int value_bits)
{
    int group = ACCESS_BYTES * 8 / value_bits;
    while (register_tile % group)
        group /= 2;
    return group;
}

static const char *group_variable(int group)
{
    static const char *const names[] = {"batch", "m", "n", "k"};
    return names[group];
}

/* Positions of those axes of a group that are `used`. */
static void emit_group_positions(StrBuf *out, const Scope *scope, const Product *product, int which,
                                 const char *flat, uint32_t used)
{
    const Group *group = &product->group[which];
    int64_t below = group->extent;
    for (int i = 0; i < group->count; i++) {
        int64_t extent = scope->fusion->axes[group->axes[i]].extent;
        below /= extent;
        if (!(used >> group->axes[i] & 1))
            continue;
        strbuf_printf(out, "        const Index %s = %s", scope->axis[group->axes[i]], flat);
        if (below > 1)
            strbuf_printf(out, " / %" PRId64, below);
        if (i > 0)
            strbuf_printf(out, " %% %" PRId64, extent);
        strbuf_puts(out, ";\n");
    }
}

/* The factor's element, zero where the guard above the product says that there is none. */
static void emit_factor(StrBuf *out, const Scope *scope, const Product *product, int factor)
{
    Expr guarded = {.kind = EXPR_GUARD, .type = product->factor[factor]->type};
    if (product->guard) {
        guarded.guard = *product->guard;
        guarded.guard.body = (Expr *)product->factor[factor];
        emit_expr(out, scope, &guarded);
    } else {
        emit_expr(out, scope, product->factor[factor]);
    }
}

static void emit_operand(StrBuf *out, const KernelPlan *plan, const Scope *scope, const Product *product,
                         int factor)
{
    int rows = factor ? GROUP_N : GROUP_M;
    bool along_k = is_along_k(plan->fusion, product, factor);
    int vector = vector_of(plan->fusion, product, factor,
                           plan->program->tile[LEVEL_SHARED].size[along_k ? GROUP_K : rows]);
    strbuf_printf(out,
                  "\nstruct Operand%c {\n    static constexpr bool ALONG_K = %s;\n    static constexpr int "
                  "VECTOR = %d;\n",
                  "AB"[factor], along_k ? "true" : "false", vector);
    strbuf_printf(
        out,
        "    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index %s, Index k, "
        "Value (&v)[VECTOR])\n    {\n        (void)batch;\n",
        group_variable(rows));
    uint32_t used = factor_axes(product, factor);
    emit_group_positions(out, scope, product, GROUP_BATCH, "batch", used);
    emit_group_positions(out, scope, product, rows, group_variable(rows), used);
    emit_group_positions(out, scope, product, GROUP_K, "k", used);
    if (vector > 1) {
        const Access *access = &product->factor[factor]->access;
        Affine offset = access_offset(access);
        strbuf_printf(out, "        load_vector<VECTOR>(t.in%d, ",
                      input_position(plan->fusion, access->tensor));
        emit_affine(out, &offset, scope->axis);
        strbuf_puts(out, ", v);\n");
    } else {
        strbuf_puts(out, "        v[0] = ");
        emit_factor(out, scope, product, factor);
        strbuf_puts(out, ";\n");
    }
    strbuf_puts(out, "    }\n};\n");
}

/* Positions of C's element (batch, m, `column`). */
static void emit_positions_of_c(StrBuf *out, const Scope *scope, const Product *product, const char *column,
                                uint32_t used)
{
    for (int g = GROUP_BATCH; g <= GROUP_N; g++)
        emit_group_positions(out, scope, product, g, g == GROUP_N ? column : group_variable(g), used);
}

static uint32_t epilogue_axes(const Fusion *fusion)
{
    uint32_t axes = 0;
    for (int i = 1; i < fusion->op_count; i++)
        axes |= expr_axes(fusion->ops[i].body);
    return axes;
}

static uint32_t store_axes(const Fusion *fusion)
{
    uint32_t axes = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            axes |= access_axes(&fusion->ops[i].store);
    return axes;
}

static bool allows_vector_stores(const Fusion *fusion, const Product *product, int columns)
{
    for (int i = 0; i < fusion->op_count; i++) {
        Affine offset = access_offset(&fusion->ops[i].store);
        if (fusion->ops[i].stored &&
            !allows_vector(fusion, &offset, innermost(&product->group[GROUP_N]), columns))
            return false;
    }
    return true;
}

static void emit_finish(StrBuf *out, const Scope *scope, const Product *product)
{
    strbuf_puts(out, "\n// The epilogue of one element of C.\n"
                     "__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index m, Index "
                     "n, Value total)\n"
                     "{\n    (void)batch;\n    {\n");
    emit_positions_of_c(out, scope, product, "n", epilogue_axes(scope->fusion) | store_axes(scope->fusion));
    emit_epilogue(out, "        ", scope, "total");
    emit_stores(out, "        ", scope);
    strbuf_puts(out, "    }\n}\n");
}

/* The same for QN neighbours along n, stored as vectors. */
static void emit_finish_vector(StrBuf *out, const Scope *scope, const Product *product, bool vector_stores)
{
    const Fusion *fusion = scope->fusion;
    strbuf_puts(
        out, "__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, Index m, Index n, "
             "const Value (&totals)[QN])\n{\n    (void)batch;\n");
    if (!vector_stores) {
        strbuf_puts(
            out,
            "    UNROLL for (int e = 0; e < QN; ++e)\n        finish(t, batch, m, n + e, totals[e]);\n}\n");
        return;
    }
    for (int i = 0; i < fusion->output_count; i++)
        strbuf_printf(out, "    %s y%d[QN];\n", value_type(fusion->outputs[i]->dtype), i);
    strbuf_puts(out, "    UNROLL for (int e = 0; e < QN; ++e) {\n        const Value total = totals[e];\n");
    if (epilogue_axes(fusion) & group_mask(&product->group[GROUP_N]))
        strbuf_puts(out, "        const Index column = n + e;\n");
    emit_positions_of_c(out, scope, product, "column", epilogue_axes(fusion));
    emit_epilogue(out, "        ", scope, "total");
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            strbuf_printf(out, "        y%d[e] = v%d;\n", output_position(fusion, fusion->ops[i].out), i);
    strbuf_puts(out, "    }\n    {\n");
    emit_positions_of_c(out, scope, product, "n", store_axes(fusion));
    for (int i = 0; i < fusion->op_count; i++) {
        if (!fusion->ops[i].stored)
            continue;
        int position = output_position(fusion, fusion->ops[i].out);
        Affine offset = access_offset(&fusion->ops[i].store);
        strbuf_printf(out, "        store_vector<QN>(t.out%d, ", position);
        emit_affine(out, &offset, scope->axis);
        strbuf_printf(out, ", y%d);\n", position);
    }
    strbuf_puts(out, "    }\n}\n");
}

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Product *product, int qm, int qn,
                           bool vector_stores)
{
    const RProgram *program = plan->program;
    const RTile *shared = &program->tile[LEVEL_SHARED], *registers = &program->tile[LEVEL_REGISTER];
    strbuf_printf(out, "using Value = %s;\n", value_type(plan->fusion->ops[0].body->type));
    strbuf_printf(out, "constexpr Index M = %" PRId64 ", N = %" PRId64 ", K = %" PRId64 ";\n",
                  product->group[GROUP_M].extent, product->group[GROUP_N].extent,
                  product->group[GROUP_K].extent);
    strbuf_printf(out,
                  "constexpr int BM = %" PRId64 ", BN = %" PRId64 ", BK = %" PRId64
                  ";   // rTile, shared memory\n",
                  shared->size[GROUP_M], shared->size[GROUP_N], shared->size[GROUP_K]);
    strbuf_printf(out, "constexpr int TM = %" PRId64 ", TN = %" PRId64 ";   // rTile, registers\n",
                  registers->size[GROUP_M], registers->size[GROUP_N]);
    strbuf_printf(out,
                  "constexpr int PAD_A = %" PRId64 ", PAD_B = %" PRId64 ";   // bank padding, elements\n",
                  program->padding[0], program->padding[1]);
    strbuf_printf(out, "constexpr int QM = %d, QN = %d;   // neighbouring rows, columns of a thread\n", qm,
                  qn);
    strbuf_printf(out, "constexpr bool VECTOR_STORES = %s;   // QN columns of C are one aligned access\n",
                  vector_stores ? "true" : "false");
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    Product product;
    find_product(plan->fusion, &product);
    Scope scope = {.fusion = plan->fusion, .wide = plan->wide};
    for (int a = 0; a < plan->fusion->axis_count; a++)
        scope.axis[a] = axis_names[a];
    int value_bits = dtype_info[plan->fusion->ops[0].body->type].bits;
    int qm = group_of(plan->program->tile[LEVEL_REGISTER].size[GROUP_M], value_bits);
    int qn = group_of(plan->program->tile[LEVEL_REGISTER].size[GROUP_N], value_bits);
    bool vector_stores = qn > 1 && allows_vector_stores(plan->fusion, &product, qn);
    emit_constants(out, plan, &product, qm, qn, vector_stores);
    emit_operand(out, plan, &scope, &product, 0);
    emit_operand(out, plan, &scope, &product, 1);
    emit_finish(out, &scope, &product);
    emit_finish_vector(out, &scope, &product, vector_stores);
}

/* Two buffers of a tile of each operand, k outermost. */
static KernelMemory memory(const KernelPlan *plan)
{
    const RProgram *program = plan->program;
    const int64_t *block = program->tile[LEVEL_SHARED].size;
    int64_t row = block[GROUP_M] + program->padding[0] + block[GROUP_N] + program->padding[1];
    int bits = dtype_info[dtype_info[plan->fusion->ops[0].body->type].compute].bits;
    return (KernelMemory){.shared_bytes = 2 * block[GROUP_K] * row * bits / 8};
}

const Family matmul_family = {
    .name = "matmul",
    .template_path = "templates/matmul.cu",
    .variants = (const char *const[]){"tiled", NULL},
    .matches = matches,
    .rules = rules,
    .emit = emit,
    .memory = memory,
};
