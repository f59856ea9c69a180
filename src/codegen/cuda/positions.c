// Positions along axes, from a flat one.
#include <inttypes.h>

#include "codegen/cuda/expr.h"

const char *const axis_names[MAX_AXES] = {"i0", "i1", "i2",  "i3",  "i4",  "i5",  "i6",  "i7",
                                          "i8", "i9", "i10", "i11", "i12", "i13", "i14", "i15"};

Scope scope_of(const KernelPlan *plan)
{
    Scope scope = {.fusion = plan->fusion, .wide = plan->wide};
    for (int a = 0; a < plan->fusion->axis_count; a++)
        scope.axis[a] = axis_names[a];
    return scope;
}

/* `b = p / 4 % 3`; with extent 0, of the outermost axis, `a = p / 12`. */
static void emit_position(StrBuf *out, const char *name, const char *flat, int64_t below, int64_t extent)
{
    strbuf_printf(out, "%s = %s", name, flat);
    if (below > 1)
        strbuf_printf(out, " / %" PRId64, below);
    if (extent)
        strbuf_printf(out, " %% %" PRId64, extent);
}

static void emit_some_positions(StrBuf *out, const char *opening, const char *flat, const Scope *scope,
                                int first, int end, uint32_t used)
{
    int64_t below = 1;   // extents of the axes further in
    for (int a = first; a < end; a++)
        below *= scope->fusion->axes[a].extent;
    bool any = false;
    for (int a = first; a < end; a++) {
        int64_t extent = scope->fusion->axes[a].extent;
        below /= extent;
        if (!(used >> a & 1))
            continue;
        strbuf_puts(out, any ? ", " : opening);
        emit_position(out, scope->axis[a], flat, below, a > first ? extent : 0);
        any = true;
    }
    strbuf_puts(out, any ? ";\n" : "");
}

void emit_positions(StrBuf *out, const char *flat, const Scope *scope, int first, int end)
{
    emit_some_positions(out, "    [[maybe_unused]] const Index ", flat, scope, first, end, UINT32_MAX);
}

void emit_used_positions(StrBuf *out, const char *indent, const char *flat, const Scope *scope, int first,
                         int end, uint32_t used)
{
    const char *opening = arena_printf(out->arena, "%sconst Index ", indent);
    emit_some_positions(out, opening, flat, scope, first, end, used);
}

void emit_group_positions(StrBuf *out, const char *indent, const char *flat, const Scope *scope,
                          const AxisGroup *group, uint32_t used)
{
    int64_t below = group->extent;
    for (int i = 0; i < group->count; i++) {
        int axis = group->axes[i];
        int64_t extent = scope->fusion->axes[axis].extent;
        below /= extent;
        if (!(used >> axis & 1))
            continue;
        strbuf_printf(out, "%sconst Index ", indent);
        emit_position(out, scope->axis[axis], flat, below, i ? extent : 0);
        strbuf_puts(out, ";\n");
    }
}

uint32_t epilogue_axes(const Fusion *fusion)
{
    uint32_t axes = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].reduce == REDUCE_NONE)
            axes |= expr_axes(fusion->ops[i].body);
    return axes;
}

uint32_t store_axes(const Fusion *fusion)
{
    uint32_t axes = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            axes |= access_axes(&fusion->ops[i].store);
    return axes;
}
