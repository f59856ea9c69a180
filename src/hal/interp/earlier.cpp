// What a launch that begins early may touch before it waits: tensors that no launch before it in its list writes, and
// of the first launch nothing, as the stream may have done anything before. Memory tells who wrote what in this run.
// What runs alone, or lands when others have waited, is told by the file's first line.
namespace rollerc_interp {

namespace {

bool made_before[MAX_LAUNCH_ARGS];   // of the launch's arguments: one before it writes there

int first_of_list() { return host->launch < host->source->prepare_count ? 0 : host->source->prepare_count; }

bool writes(const Launch &launch, const LaunchArg &there)
{
    bool writes = false;
    for (int i = 0; i < launch.arg_count; i++)
        writes |= launch.args[i].written && launch_args_overlap(&launch.args[i], &there);
    return writes;
}

bool lies_in(const LaunchArg &arg, const unsigned char *at)
{
    const unsigned char *const start = host->buffers[arg.buffer] + arg.offset;
    return at >= start && at < start + arg.bytes;
}

}   // namespace

void note_earlier()
{
    const Launch *launches = host->source->launches;
    for (int i = 0; early && launches && i < launches[host->launch].arg_count; i++) {
        made_before[i] = false;
        for (int k = first_of_list(); k < host->launch && !made_before[i]; k++)
            made_before[i] = writes(launches[k], launches[host->launch].args[i]);
    }
}

void wait_for_earlier() { current->waited_for_earlier = true; }

bool has_waited() { return !early || current->waited_for_earlier; }

bool is_too_early(const unsigned char *at)
{
    if (has_waited())
        return false;
    if (host->launch == first_of_list())
        return true;
    const Launch *launch = host->source->launches ? &host->source->launches[host->launch] : nullptr;
    for (int i = 0; launch && i < launch->arg_count; i++)
        if (made_before[i] && lies_in(launch->args[i], at))
            return true;
    return false;
}

}   // namespace rollerc_interp
