// What elements cost the reference evaluator, which computes each that they are made of once.
//
// Wanted of a tensor is a box: a row of softmax wants a row of x, but one maximum.
#include "base/checked.h"
#include "ir/eval_parts.h"

typedef struct Demand {
    const TensorOp *op;             // that reads
    int64_t tile[MAX_AXES];         // points of its axes
    int64_t (*boxes)[MAX_AXES];     // by tensor id
} Demand;

/* As many adjacent elements of a tensor that is seen in other dimensions than its own. */
static void box_of_view(const Access *access, const int64_t *tile, int axis_count, int64_t *box)
{
    const Tensor *tensor = access->tensor;
    int64_t count = 1;
    for (int d = 0; d < access->rank; d++)
        count *= smaller(affine_extent(&access->dims[d].index, tile, axis_count), access->dims[d].size);
    for (int d = tensor->rank - 1; d >= 0; d--) {
        box[d] = smaller(count, tensor->shape[d]);
        count = ceil_div(count, box[d]);
    }
}

/* Of a fetch as many elements as there are points, and no more than there are. */
static void demand_fetch(const Demand *demand, const Tensor *tensor)
{
    int64_t points = 1, *wanted = demand->boxes[tensor->id];
    for (int a = 0; a < demand->op->axis_count; a++)
        points = fitting_mul(points, demand->tile[a]);
    for (int d = MAX_AXES - 1; d >= 0; d--) {
        int64_t box = d < tensor->rank ? smaller(points, tensor->shape[d]) : 1;
        points = ceil_div(points, box);
        wanted[d] = larger(wanted[d], box);
    }
}

static void demand_visit(Expr *expr, void *context)
{
    const Demand *demand = context;
    const Access *access = &expr->access;
    if (expr->kind == EXPR_FETCH)
        demand_fetch(demand, expr->fetch.access.tensor);
    if (expr->kind != EXPR_ACCESS)
        return;
    int axis_count = demand->op->axis_count;
    int64_t box[MAX_AXES], *wanted = demand->boxes[access->tensor->id];
    for (int d = 0; d < MAX_AXES; d++)
        box[d] = 1;
    bool plain = access->rank == access->tensor->rank;
    for (int d = 0; d < access->rank && plain; d++) {
        plain = access->dims[d].size == access->tensor->shape[d];
        box[d] =
            smaller(affine_extent(&access->dims[d].index, demand->tile, axis_count), access->dims[d].size);
    }
    if (!plain)
        box_of_view(access, demand->tile, axis_count, box);
    for (int d = 0; d < MAX_AXES; d++)
        wanted[d] = wanted[d] > box[d] ? wanted[d] : box[d];
}

static double work_of_op(const Reach *reach, int64_t (*boxes)[MAX_AXES])
{
    const TensorOp *op = reach->op;
    Demand demand = {.op = op, .boxes = boxes};
    double points = 1;
    for (int a = 0; a < op->axis_count; a++) {
        demand.tile[a] = a < op->spatial_count ? boxes[op->out->id][a] : reach->points[a];
        points *= (double)demand.tile[a];
    }
    expr_visit(op->body, demand_visit, &demand);
    return points * expr_size(op->body);
}

double work_wanted(const Program *program, const Reach *reaches, int64_t (*boxes)[MAX_AXES])
{
    double work = 0;
    for (int i = program->op_count - 1; i >= 0; i--) {
        int id = program->ops[i]->out->id;
        if (boxes[id][0] > 0 && reaches[id].op)
            work += work_of_op(&reaches[id], boxes);
    }
    return work;
}
