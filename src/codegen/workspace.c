#include "codegen/workspace.h"

#include "base/checked.h"
#include "codegen/lives.h"

typedef struct Tenants {
    const Plan *plan;
    const int64_t *prepared;   // by tensor id; -1: it lies in the workspace
    int **writers;     // by tensor id: the launches that write it, or parts of it, in order
    int *writer_count; // by tensor id
    int *life_of;      // by tensor id; -1: it does not lie in the workspace
    int *scratch_of;   // by launch: the life of what it uses for itself; -1: it uses nothing
    Life *lives;
    int count;
} Tenants;

static int add_life(Tenants *tenants, int64_t bytes, int writer)
{
    tenants->lives[tenants->count] =
        (Life){.bytes = round_up(bytes, WORKSPACE_ALIGNMENT), .writer = writer};
    return tenants->count++;
}

static void add_launch(Tenants *tenants, const Program *program, int launch)
{
    const PlannedLaunch *planned = &tenants->plan->launches[launch];
    for (int i = 0; i < planned->fusion->output_count; i++) {
        const Tensor *tensor = program->tensors[planned->fusion->outputs[i]->id];
        bool is_first = tenants->writers[tensor->id][0] == launch;
        if (is_first && tensor->role == ROLE_TEMPORARY && tenants->prepared[tensor->id] < 0)
            tenants->life_of[tensor->id] = add_life(tenants, tensor_bytes(tensor), launch);
    }
    int64_t scratch = rprogram_scratch_bytes(planned->kind, &planned->program);
    tenants->scratch_of[launch] = scratch ? add_life(tenants, scratch, launch) : -1;
}

/* The launches that write each tensor. */
static void find_writers(Arena *arena, Tenants *tenants, int tensor_count)
{
    const Plan *plan = tenants->plan;
    tenants->writers = NEW_ARRAY(arena, int *, tensor_count);
    tenants->writer_count = NEW_ARRAY(arena, int, tensor_count);
    for (int pass = 0; pass < 2; pass++) {   // count, then list
        for (int k = 0; k < plan->count; k++)
            for (int i = 0; i < plan->launches[k].fusion->output_count; i++) {
                int id = plan->launches[k].fusion->outputs[i]->id, at = tenants->writer_count[id]++;
                if (pass)
                    tenants->writers[id][at] = k;
            }
        for (int t = 0; t < tensor_count && pass == 0; t++) {
            tenants->writers[t] = NEW_ARRAY(arena, int, tenants->writer_count[t]);
            tenants->writer_count[t] = 0;
        }
    }
}

/* Lives of what several launches write, part by part. */
static void set_other_writers(Tenants *tenants, int tensor_count)
{
    for (int t = 0; t < tensor_count; t++)
        if (tenants->life_of[t] >= 0) {
            Life *life = &tenants->lives[tenants->life_of[t]];
            life->others = tenants->writers[t] + 1;
            life->other_count = tenants->writer_count[t] - 1;
        }
}

static int most_lives(const Plan *plan)
{
    int count = plan->count;
    for (int k = 0; k < plan->count; k++)
        count += plan->launches[k].fusion->output_count;
    return count;
}

static Tenants tenants_of(Arena *arena, const Program *program, const Plan *plan, const int64_t *prepared)
{
    Tenants tenants = {
        .plan = plan,
        .prepared = prepared,
        .life_of = NEW_ARRAY(arena, int, program->tensor_count),
        .scratch_of = NEW_ARRAY(arena, int, plan->count),
        .lives = NEW_ARRAY(arena, Life, most_lives(plan)),
    };
    for (int t = 0; t < program->tensor_count; t++)
        tenants.life_of[t] = -1;
    find_writers(arena, &tenants, program->tensor_count);
    for (int k = 0; k < plan->count; k++)
        add_launch(&tenants, program, k);
    set_other_writers(&tenants, program->tensor_count);
    return tenants;
}

/* The launches that read each temporary. */
static void find_readers(Arena *arena, Tenants *tenants)
{
    const Plan *plan = tenants->plan;
    int **readers = NEW_ARRAY(arena, int *, tenants->count), *room = NEW_ARRAY(arena, int, tenants->count);
    for (int pass = 0; pass < 2; pass++) {   // count, then list
        for (int k = 0; k < plan->count; k++)
            for (int i = 0; i < plan->launches[k].fusion->input_count; i++) {
                int life = tenants->life_of[plan->launches[k].fusion->inputs[i]->id];
                if (life < 0)
                    continue;
                if (pass == 0)
                    room[life]++;
                else
                    readers[life][tenants->lives[life].reader_count++] = k;
            }
        for (int i = 0; i < tenants->count && pass == 0; i++)
            tenants->lives[i].readers = readers[i] = NEW_ARRAY(arena, int, room[i]);
    }
}

/* Paths along which results go, from the last launch to the first. */
static BitRows paths_of(Arena *arena, const Tenants *tenants)
{
    const Plan *plan = tenants->plan;
    BitRows later = bit_rows_new(arena, plan->count);
    for (int k = plan->count - 1; k >= 0; k--)
        for (int i = 0; i < plan->launches[k].fusion->input_count; i++) {
            int id = plan->launches[k].fusion->inputs[i]->id;
            for (int w = 0; w < tenants->writer_count[id] && tenants->writers[id][w] < k; w++) {
                bit_set(&later, tenants->writers[id][w], k);
                bit_row_join(&later, tenants->writers[id][w], k);
            }
        }
    for (int k = 0; k < plan->prepare_count; k++)   // before any call
        for (int called = plan->prepare_count; called < plan->count; called++)
            bit_set(&later, k, called);
    return later;
}

Workspace workspace_place(Arena *arena, const Program *program, const Plan *plan, const int64_t *prepared)
{
    Arena *scratch = arena_new();
    Tenants tenants = tenants_of(scratch, program, plan, prepared);
    find_readers(scratch, &tenants);
    BitRows later = paths_of(scratch, &tenants);
    LivesPlan places = lives_place(tenants.lives, tenants.count, &later);
    Workspace workspace = {.of_tensor = NEW_ARRAY(arena, int64_t, program->tensor_count),
                           .of_launch = NEW_ARRAY(arena, int64_t, plan->count),
                           .bytes = places.bytes,
                           .alive = places.alive};
    for (int t = 0; t < program->tensor_count; t++)
        if (tenants.life_of[t] >= 0)
            workspace.of_tensor[t] = tenants.lives[tenants.life_of[t]].offset;
    for (int k = 0; k < plan->count; k++)
        if (tenants.scratch_of[k] >= 0)
            workspace.of_launch[k] = tenants.lives[tenants.scratch_of[k]].offset;
    arena_free(scratch);
    return workspace;
}
