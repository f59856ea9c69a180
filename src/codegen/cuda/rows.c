#include "codegen/cuda/rows.h"

#define EACH "UNROLL for (int e = 0; e < VECTOR; ++e)\n"

Step rows_step(Arena *arena) { return (Step){.text = strbuf_new(arena)}; }

void rows_emit_elements(StrBuf *out, const Fusion *fusion, uint64_t ops)
{
    strbuf_printf(out, "\nstruct Elements {%s", ops ? "   // what the passes compute of a vector\n" : "");
    for (int i = 0; i < fusion->op_count; i++)
        if (ops >> i & 1)
            strbuf_printf(out, "    %s v%d[VECTOR];\n", value_type(fusion->ops[i].out->dtype), i);
    strbuf_puts(out, "};\n");
}

Scope rows_element_scope(Arena *arena, const Scope *first, int inner, uint32_t columns)
{
    Scope scope = *first;
    scope.axis[inner] = arena_printf(arena, "(%s + e)", first->axis[inner]);
    scope.prefix = "el.";
    scope.suffix = "[e]";
    scope.suffix_axes = columns;
    return scope;
}

static bool is_loaded(const void *context, const Expr *access)
{
    const Scope *scope = context;
    return scope->loaded(scope->context, access);
}

uint32_t rows_axes_left(const Scope *scope, const Expr *expr)
{
    return expr_axes_left(expr, is_loaded, scope);
}

const char *rows_value(Arena *arena, const Scope *scope, int op, const Expr *body)
{
    const char *value = expr_text(arena, scope, body);
    return op == ROWS_NOT_ROUNDED ? value : rounded_text(arena, scope->fusion, op, value);
}

void rows_emit_each(StrBuf *out, const char *indent, const char *array, const char *value)
{
    strbuf_printf(out, "%s" EACH "%s    %s[e] = %s;\n", indent, indent, array, value);
}

void rows_emit_value_store(Step *step, const Scope *first, int op)
{
    const FusedOp *fused = &first->fusion->ops[op];
    step->axes |= access_axes(&fused->store);
    strbuf_printf(&step->text, ROWS_INDENT "store(t.out%d, %s, v%d);\n", output_position(first->fusion, fused->out),
                  offset_text(step->text.arena, &fused->store, first->axis), op);
}

void rows_emit_block_each(StrBuf *out, const char *guard, const char *statements)
{
    strbuf_printf(out, "    " EACH "        %s{\n%s        }\n", guard, statements);
}

void rows_emit_store(Step *step, const Scope *first, const Scope *element, int op, const char *array, int axis,
                     int vector)
{
    const FusedOp *fused = &first->fusion->ops[op];
    Affine offset = access_offset(&fused->store);
    bool whole = affine_allows_vector(&offset, axis, vector);
    step->axes |= access_axes(&fused->store);
    strbuf_puts(&step->text,
                whole ? ROWS_INDENT "store_vector<VECTOR>(" : ROWS_INDENT EACH ROWS_INDENT "    store(");
    strbuf_printf(&step->text, "t.out%d, ", output_position(first->fusion, fused->out));
    emit_affine(&step->text, &offset, whole ? first->axis : element->axis);
    strbuf_printf(&step->text, whole ? ", %s);\n" : ", %s[e]);\n", array);
}
