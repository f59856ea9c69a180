#include "hal/launch.h"

#include <string.h>

static bool touches(const Launch *launch, const LaunchArg *arg)
{
    for (int i = 0; i < launch->arg_count; i++)
        if ((launch->args[i].written || arg->written) && launch_args_overlap(&launch->args[i], arg))
            return true;
    return false;
}

bool launches_meet(const Launch *a, const Launch *b)
{
    for (int i = 0; i < b->arg_count; i++)
        if (touches(a, &b->args[i]))
            return true;
    return false;
}

int launch_in_place(const Launch *launch, int i)
{
    const LaunchArg *arg = &launch->args[i];
    for (int k = 0; k < launch->arg_count; k++)
        if (k != i && (arg->written || launch->args[k].written) && launch_args_overlap(&launch->args[k], arg))
            return k;
    return -1;
}

// ---- out ----

static void write_integers(Json *object, const char *key, const int64_t *values, int count)
{
    Json *list = json_set_array(object, key);
    for (int i = 0; i < count; i++)
        json_push_int(list, values[i]);
}

static void write_ints(Json *object, const char *key, const int *values, int count)
{
    Json *list = json_set_array(object, key);
    for (int i = 0; i < count; i++)
        json_push_int(list, values[i]);
}

static void write_pixels(Json *entry, const TensorMap *map)
{
    json_set_int(entry, "channels", map->box[0]);
    json_set_int(entry, "pixels", map->box[1]);
    write_ints(entry, "lower", map->lower, map->pixel_axes);
    write_ints(entry, "upper", map->upper, map->pixel_axes);
    write_ints(entry, "steps", map->steps, map->pixel_axes);
}

/* Behind the pointers: {"map": position among them, …}, as cuTensorMapEncodeTiled or …Im2col takes it. */
static void write_map(Json *entry, const TensorMap *map)
{
    json_set_int(entry, "map", map->arg);
    if (map->start)
        json_set_int(entry, "offset", map->start);
    json_set_int(entry, "bits", map->element_bytes * 8);
    if (map->tf32)
        json_set_bool(entry, "tf32", true);
    write_integers(entry, "sizes", map->sizes, map->rank);
    write_integers(entry, "strides", map->strides, map->rank - 1);
    if (map->pixel_axes)
        write_pixels(entry, map);
    else
        write_ints(entry, "box", map->box, map->rank);
    json_set_int(entry, "swizzle", MAP_LINE_BYTES);
}

static const char *const beside_name[] = {
    [BUFFER_WORKSPACE] = "workspace", [BUFFER_PREPARED] = "prepared", [BUFFER_WEIGHTS] = "weights"};

/* {"arg": position among the program's}, with "offset" in bytes unless it is 0, or {"workspace": offset}. */
static void write_args(Json *list, const Launch *launch, int arguments)
{
    for (int i = 0; i < launch->arg_count; i++) {
        const LaunchArg *arg = &launch->args[i];
        int beside = arg->buffer - arguments;
        Json *entry = json_push_object(list);
        json_set_int(entry, beside < 0 ? "arg" : beside_name[beside],
                     beside < 0 ? arg->buffer : launch_arg_start(arg));
        if (beside < 0 && launch_arg_start(arg))
            json_set_int(entry, "offset", launch_arg_start(arg));
    }
    for (int i = 0; i < launch->map_count; i++)
        write_map(json_push_object(list), &launch->maps[i]);
}

/* {"copy": bytes, "from": {"weights": offset}, "to": {"prepared": offset}}. */
void launch_copies_write(Json *list, const LaunchCopy *copies, int count)
{
    for (int i = 0; i < count; i++) {
        Json *entry = json_push_object(list);
        json_set_int(entry, "copy", copies[i].bytes);
        json_set_int(json_set_object(entry, "from"), beside_name[BUFFER_WEIGHTS], copies[i].from);
        json_set_int(json_set_object(entry, "to"), beside_name[BUFFER_PREPARED], copies[i].to);
    }
}

void launches_write(Json *list, const Launch *launches, int count, int arguments)
{
    for (int k = 0; k < count; k++) {
        const Launch *launch = &launches[k];
        Json *entry = json_push_object(list);
        json_set_string(entry, "kernel", launch->entry);
        write_integers(entry, "grid", launch->grid, 3);
        write_ints(entry, "block", launch->block, 3);
        if (launch_cluster_blocks(launch) > 1)
            write_ints(entry, "cluster", launch->cluster, 3);
        json_set_int(entry, "shared", launch->shared_bytes);
        json_set_bool(entry, "cooperative", launch->cooperative);
        if (launch->early)
            json_set_bool(entry, "early", true);
        write_ints(entry, "after", launch->after, launch->after_count);
        write_args(json_set_array(entry, "args"), launch, arguments);
    }
}
