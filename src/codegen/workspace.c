#include "codegen/workspace.h"

#include "base/checked.h"
#include "codegen/in_place.h"
#include "codegen/lives.h"

typedef struct Tenants {
    const Program *program;
    const Plan *plan;
    const int64_t *prepared;   // by tensor id; -1: it lies in the workspace
    int **writers;     // by tensor id: the launches that write it, or parts of it, in order
    int *writer_count; // by tensor id
    int **readers;     // by tensor id: the launches that read it, in order
    int *reader_count;
    int *under;        // by tensor id: the one that it lies on, which is added up in place; -1: none
    int *life_of;      // by tensor id; -1: it does not lie in the workspace
    Life *lives;
    int count;
} Tenants;

// ---- who writes and reads ----

/* Of each tensor those that write it, or those that read it. */
static void list_launches(Arena *arena, const Plan *plan, int tensor_count, bool written, int ***lists,
                          int **counts)
{
    int **list = NEW_ARRAY(arena, int *, tensor_count), *count = NEW_ARRAY(arena, int, tensor_count);
    for (int pass = 0; pass < 2; pass++) {   // count, then list
        for (int k = 0; k < plan->count; k++) {
            const Fusion *fusion = plan->launches[k].fusion;
            for (int i = 0; i < (written ? fusion->output_count : fusion->input_count); i++) {
                int id = (written ? fusion->outputs : fusion->inputs)[i]->id, at = count[id]++;
                if (pass)
                    list[id][at] = k;
            }
        }
        for (int t = 0; t < tensor_count && pass == 0; t++) {
            list[t] = NEW_ARRAY(arena, int, count[t]);
            count[t] = 0;
        }
    }
    *lists = list;
    *counts = count;
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

// ---- what is added up in place ----

/* Paths lead from all others that read it to the launch: no branch waits for that. */
static bool dies_at(const Tenants *tenants, const BitRows *later, int tensor, int launch)
{
    bool dies = true;
    for (int i = 0; i < tenants->reader_count[tensor] && dies; i++)
        dies = tenants->readers[tensor][i] == launch || bit_get(later, tenants->readers[tensor][i], launch);
    return dies;
}

static bool lies_here(const Tenants *tenants, int tensor)
{
    return tenants->program->tensors[tensor]->role == ROLE_TEMPORARY && tenants->prepared[tensor] < 0;
}

static void place_output_of(Tenants *tenants, const BitRows *later, int launch)
{
    const PlannedLaunch *planned = &tenants->plan->launches[launch];
    const Fusion *fusion = planned->fusion;
    int made = fusion->outputs[0]->id;
    for (int i = 0; i < fusion->input_count && tenants->under[made] < 0; i++) {
        int read = fusion->inputs[i]->id;
        if (lies_here(tenants, read) && lies_here(tenants, made) && tenants->writer_count[made] == 1 &&
            dies_at(tenants, later, read, launch) && in_place_may(tenants->program, planned, i))
            tenants->under[made] = read;
    }
}

// ---- lives ----

static int add_life(Tenants *tenants, int64_t bytes, int writer)
{
    tenants->lives[tenants->count] = (Life){.bytes = round_up(bytes, WORKSPACE_ALIGNMENT), .writer = writer};
    return tenants->count++;
}

/* Behind what the life has of them. */
static void append(Arena *arena, const int **list, int *count, const int *more, int more_count)
{
    int *joined = NEW_ARRAY(arena, int, *count + more_count);
    for (int i = 0; i < *count + more_count; i++)
        joined[i] = i < *count ? (*list)[i] : more[i - *count];
    *list = joined;
    *count += more_count;
}

/* What several launches write, part by part, has one life, and so has what is added up in place. */
static void add_tensor(Arena *arena, Tenants *tenants, int tensor, int launch)
{
    int under = tenants->under[tensor];
    int life = under < 0 ? add_life(tenants, tensor_bytes(tenants->program->tensors[tensor]), launch)
                         : tenants->life_of[under];
    int first = under < 0;   // the one that begins the life is none of the others
    Life *to = &tenants->lives[life];
    append(arena, &to->others, &to->other_count, tenants->writers[tensor] + first,
           tenants->writer_count[tensor] - first);
    append(arena, &to->readers, &to->reader_count, tenants->readers[tensor], tenants->reader_count[tensor]);
    tenants->life_of[tensor] = life;
}

static void add_launch(Arena *arena, Tenants *tenants, int launch)
{
    const PlannedLaunch *planned = &tenants->plan->launches[launch];
    for (int i = 0; i < planned->fusion->output_count; i++) {
        int tensor = planned->fusion->outputs[i]->id;
        if (tenants->writers[tensor][0] == launch && lies_here(tenants, tensor))
            add_tensor(arena, tenants, tensor, launch);
    }
}

static int most_lives(const Plan *plan)
{
    int count = 0;
    for (int k = 0; k < plan->count; k++)
        count += plan->launches[k].fusion->output_count;
    return count;
}

static Tenants tenants_of(Arena *arena, const Program *program, const Plan *plan, const int64_t *prepared)
{
    int tensors = program->tensor_count;
    Tenants tenants = {
        .program = program,
        .plan = plan,
        .prepared = prepared,
        .under = NEW_ARRAY(arena, int, tensors),
        .life_of = NEW_ARRAY(arena, int, tensors),
        .lives = NEW_ARRAY(arena, Life, most_lives(plan)),
    };
    for (int t = 0; t < tensors; t++)
        tenants.under[t] = tenants.life_of[t] = -1;
    list_launches(arena, plan, tensors, true, &tenants.writers, &tenants.writer_count);
    list_launches(arena, plan, tensors, false, &tenants.readers, &tenants.reader_count);
    return tenants;
}

// ---- places ----

static Workspace workspace_of(Arena *arena, const Tenants *tenants, const LivesPlan *places)
{
    int tensors = tenants->program->tensor_count;
    Workspace workspace = {.of_tensor = NEW_ARRAY(arena, int64_t, tensors),
                           .bytes = places->bytes,
                           .alive = places->alive};
    for (int t = 0; t < tensors; t++)
        if (tenants->life_of[t] >= 0)
            workspace.of_tensor[t] = tenants->lives[tenants->life_of[t]].offset;
    return workspace;
}

static Workspace place(Arena *arena, const Program *program, const Plan *plan, const int64_t *prepared,
                       bool in_place)
{
    Arena *scratch = arena_new();
    Tenants tenants = tenants_of(scratch, program, plan, prepared);
    BitRows later = paths_of(scratch, &tenants);
    for (int k = 0; k < plan->count; k++) {
        if (in_place)
            place_output_of(&tenants, &later, k);
        add_launch(scratch, &tenants, k);
    }
    LivesPlan places = lives_place(tenants.lives, tenants.count, &later);
    Workspace workspace = workspace_of(arena, &tenants, &places);
    arena_free(scratch);
    return workspace;
}

/* Pointers without `__restrict__` are read by other instructions, which took a GPT-2's kernels 3 and 11 % longer (tuning-log 147): what
   is added up in place must save something. */
Workspace workspace_place(Arena *arena, const Program *program, const Plan *plan, const int64_t *prepared)
{
    Workspace apart = place(arena, program, plan, prepared, false),
              in_place = place(arena, program, plan, prepared, true);
    return in_place.bytes < apart.bytes ? in_place : apart;
}
