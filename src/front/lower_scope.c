// Index variables: which are in scope, and how far each one runs.
#include <inttypes.h>
#include <string.h>

#include "front/lower_parts.h"

static void push(Lower *lower, const AstIndex *index)
{
    IndexScope *scope = &lower->scope;
    if (scope_find(scope, index->name) >= 0)
        reject(index->loc, "'%s' is already an index variable here", index->name);
    const Symbol *symbol = symbol_find(lower, index->name);
    if (symbol)
        reject(index->loc, "index variable '%s' has the name of a %s", index->name,
               symbol->statement->kind == STATEMENT_PARAM ? "param" : "tensor");
    if (scope->count == MAX_AXES)
        reject(index->loc, "more than %d index variables in scope", MAX_AXES);
    scope->names[scope->count] = index->name;
    scope->extents[scope->count++] = 0;
}

// ---- extents from use ----

/* What one walk looks for: dimensions in which one of the variables [first, end) stands alone. */
typedef struct Search {
    Lower *lower;
    int first, end;
    bool wanted[MAX_AXES];        // no extent is stated
    const AstExpr *access[MAX_AXES];   // where the extent was found first
    int dimension[MAX_AXES];
    int64_t fitting
        [MAX_AXES];   // the largest extent that stays inside all of x[2*i + 1] and its like; 0: there is none
} Search;

/* A dimension of one element is read everywhere by 0; else the smaller extent may be meant. */
static const char *mend_of_disagreement(const Search *search, int axis, int64_t size, const AstExpr *access,
                                        int dimension)
{
    const Lower *lower = search->lower;
    int64_t first = lower->scope.extents[axis];
    if (size == 1 || first == 1) {
        const char *mend = size == 1 ? read_of_only(lower, access, dimension)
                                     : read_of_only(lower, search->access[axis], search->dimension[axis]);
        return arena_printf(lower->arena, "to read the only element write %s", mend);
    }
    return arena_printf(lower->arena, "state its extent, like %s:%" PRId64, lower->scope.names[axis],
                        size < first ? size : first);
}

static void found(Search *search, int axis, const AstExpr *access, int dimension, int64_t size)
{
    IndexScope *scope = &search->lower->scope;
    if (axis < search->first || axis >= search->end || !search->wanted[axis])
        return;
    if (!scope->extents[axis]) {
        scope->extents[axis] = size;
        search->access[axis] = access;
        search->dimension[axis] = dimension;
    } else if (scope->extents[axis] != size) {
        reject(access->access.indices[dimension]->loc,
               "index '%s' runs over %" PRId64 " element%s in dimension %d of '%s'"
               " but over %" PRId64 " in dimension %d of '%s'; %s",
               scope->names[axis], scope->extents[axis], scope->extents[axis] == 1 ? "" : "s",
               search->dimension[axis], search->access[axis]->access.name, size, dimension,
               access->access.name, mend_of_disagreement(search, axis, size, access, dimension));
    }
}

/* Of the only variable in `2*i + 1`, a dimension of 8 holds 4 values: 1, 3, 5, 7. */
static void fit(Search *search, const Affine *form, int64_t size)
{
    int axis = -1, count = 0;
    for (int a = 0; a < search->lower->scope.count; a++)
        if (form->coef[a]) {
            axis = a;
            count++;
        }
    if (count != 1 || form->coef[axis] < 0 || form->constant < 0 || form->constant >= size)
        return;
    int64_t extent = (size - 1 - form->constant) / form->coef[axis] + 1, *fitting = &search->fitting[axis];
    *fitting = *fitting && *fitting < extent ? *fitting : extent;
}

static void search_expr(Search *search, const AstExpr *expr);

static void search_access(Search *search, const AstExpr *access)
{
    const Tensor *tensor = accessed(search->lower, access)->tensor;
    for (int d = 0; d < tensor->rank; d++) {
        const AstExpr *index = access->access.indices[d];
        Affine form;
        if (!index_is_affine(search->lower, index, &form)) {
            search_expr(search, index);   // table[idx[t]]: t stands alone in a dimension of idx
            continue;
        }
        found(search, affine_single_axis(&form), access, d, tensor->shape[d]);
        fit(search, &form, tensor->shape[d]);
    }
}

static void search_expr(Search *search, const AstExpr *expr)
{
    switch (expr->kind) {
    case AST_NUMBER:
        break;
    case AST_NAME:   // a tensor without its indices is why those stand nowhere
        if (scope_find(&search->lower->scope, expr->name) < 0)
            param_find(search->lower, expr->name, expr->loc);
        break;
    case AST_ACCESS:
        search_access(search, expr);
        break;
    case AST_REDUCTION:   // its own variables have no extents yet, but their names must resolve
        for (int i = 0; i < expr->reduction.count; i++)
            push(search->lower, &expr->reduction.axes[i]);
        search_expr(search, expr->reduction.body);
        scope_close(search->lower, expr->reduction.count);
        break;
    case AST_PAD:
        search_access(search, expr->pad.access);
        break;
    case AST_CAST:
        search_expr(search, expr->cast.body);
        break;
    case AST_APPLY:
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            search_expr(search, expr->apply.operands[i]);
        break;
    }
}

/* Names first: a stated extent that holds an index variable is then a clear error. */
void scope_open(Lower *lower, const AstIndex *indices, int count, const AstExpr *body)
{
    IndexScope *scope = &lower->scope;
    Search search = {.lower = lower, .first = scope->count, .end = scope->count + count};
    bool searching = false;
    for (int i = 0; i < count; i++)
        push(lower, &indices[i]);
    for (int i = 0; i < count; i++) {
        if (indices[i].extent)
            scope->extents[search.first + i] = lower_extent(lower, indices[i].extent);
        else
            searching = search.wanted[search.first + i] = true;
    }
    if (searching)
        search_expr(&search, body);
    for (int i = 0; i < count; i++)
        if (!scope->extents[search.first + i])
            reject(indices[i].loc,
                   "index '%s' stands alone in no dimension of a tensor; state its extent, like %s:%" PRId64
                   ", and read what lies outside by pad(x[...], 0)",
                   indices[i].name, indices[i].name,
                   search.fitting[search.first + i] ? search.fitting[search.first + i] : 64);
}

void scope_close(Lower *lower, int count)
{
    lower->scope.count -= count;
}
