// What an element costs the reference evaluator.
#include "ir/eval_parts.h"

typedef struct Demand {
    const TensorOp *op;
    double elements;   // of op's output that are wanted
    double points;     // of its reduction that are looked at
    double *wanted;    // by tensor id
} Demand;

/* Of elements that are read twice one is computed: the access that needs most of a tensor stands for all. */
static void demand_visit(Expr *expr, void *context)
{
    const Demand *demand = context;
    if (expr->kind != EXPR_ACCESS)
        return;
    const TensorOp *op = demand->op;
    const Tensor *tensor = expr->access.tensor;
    uint32_t axes = access_axes(&expr->access);
    double spread = 1, all = (double)tensor_elements(tensor);
    for (int a = op->spatial_count; a < op->axis_count; a++)
        if (axes >> a & 1)
            spread *= (double)op->axes[a].extent;
    double needed = demand->elements * (spread < demand->points ? spread : demand->points);
    needed = needed < all ? needed : all;
    if (needed > demand->wanted[tensor->id])
        demand->wanted[tensor->id] = needed;
}

double work_wanted(const Program *program, const double *points, double *wanted)
{
    double work = 0;
    for (int i = program->op_count - 1; i >= 0; i--) {
        const TensorOp *op = program->ops[i];
        int id = op->out->id;
        if (wanted[id] == 0 || points[id] == 0)
            continue;
        Demand demand = {op, wanted[id], points[id], wanted};
        work += wanted[id] * points[id] * expr_size(op->body);
        expr_visit(op->body, demand_visit, &demand);
    }
    return work;
}
