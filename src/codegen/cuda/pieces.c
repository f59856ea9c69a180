#include "codegen/cuda/pieces.h"

#include <inttypes.h>

typedef struct PieceSearch {
    const Fusion *fusion;
    int along;
    int64_t vector;
    Pieces *pieces;   // axis: -1 before the first condition
} PieceSearch;

/* `axis + constant`: that constant. */
static bool is_shifted(const Affine *form, int axis, int64_t *constant)
{
    Affine rest = *form;
    *constant = rest.constant;
    rest.constant = 0;
    return axis >= 0 && affine_single_axis(&rest) == axis;
}

static int only_axis(const Affine *form)
{
    Affine rest = *form;
    rest.constant = 0;
    return affine_single_axis(&rest);
}

/* `l < number`, l a position along the axis that all conditions are of: the first one says which. */
static bool find_border(PieceSearch *search, const Expr *condition, int64_t *border)
{
    if (!expr_is(condition, OP_LT) || condition->apply.operands[0]->kind != EXPR_INDEX ||
        condition->apply.operands[1]->kind != EXPR_CONST ||
        dtype_info[condition->apply.operands[1]->type].is_real)
        return false;
    const Affine *place = &condition->apply.operands[0]->index;
    int64_t shift;
    if (search->pieces->axis < 0)
        search->pieces->axis = only_axis(place);
    if (!is_shifted(place, search->pieces->axis, &shift))
        return false;
    *border = condition->apply.operands[1]->constant.integer - shift;
    return search->pieces->axis != search->along || *border % search->vector == 0;
}

/* All positions from low to high are inside the guard's bounds. */
static bool is_inside(const PieceSearch *search, const Guard *guard, int64_t low, int64_t high)
{
    for (int i = 0; i < guard->count; i++) {
        int64_t shift;
        if (!is_shifted(&guard->bounds[i].index, search->pieces->axis, &shift) || low + shift < 0 ||
            high + shift > guard->bounds[i].size)
            return false;
    }
    return true;
}

/* Vectors of it are whole accesses. */
static bool is_aligned(const PieceSearch *search, const Affine *offset)
{
    for (int a = 0; a < search->fusion->axis_count; a++)
        if (a != search->along && offset->coef[a] % search->vector)
            return false;
    return offset->coef[search->along] == 1 && offset->constant % search->vector == 0;
}

static bool add_piece(PieceSearch *search, const Expr *leaf, int64_t low, int64_t high)
{
    Pieces *pieces = search->pieces;
    if (leaf->kind == EXPR_GUARD && is_inside(search, &leaf->guard, low, high))
        leaf = leaf->guard.body;
    if (leaf->kind != EXPR_ACCESS || pieces->count == MAX_PIECES || leaf->access.tensor->dtype == DTYPE_B1)
        return false;
    Piece piece = {&leaf->access, access_offset(&leaf->access), high};
    bool alike = !pieces->count || pieces->piece[0].access->tensor->dtype == leaf->access.tensor->dtype;
    pieces->piece[pieces->count++] = piece;
    return alike && is_aligned(search, &piece.offset);
}

static bool add_pieces(PieceSearch *search, const Expr *expr, int64_t low, int64_t high)
{
    int64_t border;
    if (!expr_is(expr, OP_SELECT))
        return add_piece(search, expr, low, high);
    return find_border(search, expr->apply.operands[0], &border) && low < border && border < high &&
           add_pieces(search, expr->apply.operands[1], low, border) &&
           add_pieces(search, expr->apply.operands[2], border, high);
}

/* How far the axis of the first condition reaches. */
static int64_t extent_of(const PieceSearch *search, const Expr *expr)
{
    const Expr *place =
        expr->apply.operands[0]->kind == EXPR_APPLY ? expr->apply.operands[0]->apply.operands[0] : NULL;
    int axis = place && place->kind == EXPR_INDEX ? only_axis(&place->index) : -1;
    return axis < 0 ? 0 : search->fusion->axes[axis].extent;
}

bool pieces_find(const Fusion *fusion, int along, int64_t vector, const Expr *expr, Pieces *pieces)
{
    PieceSearch search = {fusion, along, vector, pieces};
    *pieces = (Pieces){.axis = -1};
    bool whole = along >= 0 && fusion->axes[along].extent % vector == 0;   // vectors stay in their rows
    return whole && expr_is(expr, OP_SELECT) && add_pieces(&search, expr, 0, extent_of(&search, expr));
}

static bool is_access(const Expr *expr, const void *access) { return expr->kind == EXPR_ACCESS && &expr->access == access; }

bool pieces_hold(const Expr *tree, const Access *access) { return expr_find(tree, is_access, access); }

static void emit_place(StrBuf *out, const Scope *scope, const Piece *piece, const char *between)
{
    strbuf_printf(out, "t.in%d%s%s;\n", input_position(scope->fusion, piece->access->tensor), between,
                  affine_text(out->arena, &piece->offset, scope->axis));
}

static void emit_choice(StrBuf *out, const char *indent, const Scope *scope, const Pieces *pieces)
{
    const Piece *last = &pieces->piece[pieces->count - 1];
    strbuf_printf(out, "%sconst %s *from = ", indent, memory_type(last->access->tensor->dtype));
    emit_place(out, scope, last, arena_printf(out->arena, ";\n%sIndex at = ", indent));
    for (int i = pieces->count - 2; i >= 0; i--) {
        strbuf_printf(out, "%sif (%s < %" PRId64 ")\n%s    from = ", indent, scope->axis[pieces->axis],
                      pieces->piece[i].end, indent);
        emit_place(out, scope, &pieces->piece[i], ", at = ");
    }
}

void pieces_emit(StrBuf *out, const char *indent, const Scope *scope, int along, int64_t vector,
                 const Expr *tree, const char *call)
{
    Pieces pieces;
    pieces_find(scope->fusion, along, vector, tree, &pieces);
    const char *inner = arena_printf(out->arena, "%s    ", indent);
    strbuf_printf(out, "%s{   // the one of %d parts of a concatenation that holds it\n", indent,
                  pieces.count);
    emit_choice(out, inner, scope, &pieces);
    strbuf_printf(out, "%s%s;\n%s}\n", inner, call, indent);
}
