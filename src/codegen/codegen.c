#include "codegen/codegen.h"

#include <string.h>

#include "base/json.h"
#include "codegen/chain.h"
#include "codegen/cuda/expr.h"
#include "codegen/cuda/launcher.h"
#include "codegen/cuda/plain.h"
#include "codegen/cuda/trim.h"
#include "codegen/launches.h"
#include "codegen/opening.h"
#include "codegen/provenance.h"

enum { SCHEMA = 1, SCHEMA_OF_WEIGHTS = 2 };   // of the file's first line

typedef struct Generator {
    Arena *arena;
    const CodegenRequest *request;
    Kernel *kernel;
    const LaunchDraft *drafts;   // of its launches
    StrBuf *out;
    Trim *trim;
    const Names *taken;   // the language's and the prelude's
} Generator;

Kernel *codegen_launches(Arena *arena, const CodegenRequest *request, bool likenesses)
{
    bool drafted = likenesses || request->plan->count > 1;   // one launch alone is like no other
    return launches_draft(arena, request, drafted ? NEW_ARRAY(arena, LaunchDraft, request->plan->count) : NULL);
}

// ---- text ----

/* Behind what a template was cited for, line numbers are those of the text again, once it is whole. */
static const char *with_own_lines(const Generator *generator)
{
    const char *place = TEMPLATE_OWN_LINE, *at = generator->out->text, *found;
    if (!generator->request->templates->line_directives)
        return at;
    StrBuf out = strbuf_new(generator->arena);
    int line = 1;
    for (; (found = strstr(at, place)); at = found + strlen(place)) {
        for (const char *c = at; c < found; c++)
            line += *c == '\n';
        strbuf_write(&out, at, (size_t)(found - at));
        strbuf_printf(&out, "#line %d \"%s.cu\"\n", ++line, generator->request->name);
    }
    strbuf_puts(&out, at);
    return out.text;
}

static const char *role_of(const Program *program, int argument)
{
    if (argument >= program->input_count)
        return "output";
    return program->inputs[argument]->is_weight ? "weight" : "input";
}

static void write_json_args(Json *list, const Program *program)
{
    for (int i = 0; i < argument_count(program); i++) {
        Json *arg = json_push_object(list);
        const Tensor *tensor = tensor_shown(argument_tensor(program, i));
        json_set_string(arg, "name", tensor->name);
        json_set_string(arg, "role", role_of(program, i));
        if (argument_tensor(program, i)->is_weight)
            json_set_int(arg, "offset", weight_offset(program, i));
        json_set_string(arg, "dtype", dtype_info[tensor->dtype].name);
        Json *shape = json_set_array(arg, "shape");
        for (int d = 0; d < tensor->rank; d++)
            json_push_int(shape, tensor->shape[d]);
    }
}

static void write_json_prepare(Json *root, const Kernel *kernel)
{
    json_set_int(root, "weights", kernel->weight_bytes);
    json_set_int(root, "prepared", kernel->prepared_bytes);
    json_set_string(root, "prepared_id", kernel->prepared_id);
    Json *list = json_set_array(root, "prepare");
    launch_copies_write(list, kernel->copies, kernel->copy_count);
    launches_write(list, kernel->launches, kernel->prepare_count, argument_count(kernel->program));
}

static void write_json_line(Generator *generator)
{
    const Kernel *kernel = generator->kernel;
    const Program *program = generator->request->program;
    Json *root = json_object();
    json_set_int(root, "schema", kernel->prepared_id ? SCHEMA_OF_WEIGHTS : SCHEMA);
    json_set_string(root, "name", kernel->name);
    json_set_string(root, "device", generator->request->device->name);
    json_set_int(root, "workspace", kernel->workspace_bytes);
    if (kernel->prepared_id)
        write_json_prepare(root, kernel);
    write_json_args(json_set_array(root, "args"), program);
    launches_write(json_set_array(root, "launches"), kernel->launches + kernel->prepare_count,
                   kernel->launch_count - kernel->prepare_count, argument_count(program));
    strbuf_printf(generator->out, LAUNCH_LINE "%s\n", json_text(generator->arena, root, false));
    json_free(root);
}

/* Of arguments, which may clash with words of the template's body alone: `names`. */
static void name_arguments(Arena *arena, Names *names, const Fusion *fusion)
{
    for (int i = 0; i < fusion->input_count; i++)
        names_give(names, arena_printf(arena, "in%d", i), fusion->inputs[i]->name);
    for (int i = 0; i < fusion->output_count; i++)
        names_give(names, arena_printf(arena, "out%d", i), fusion->outputs[i]->name);
}

/* Of values, which may clash with all words of the kernel: `names`, and those of its head and its block. */
static void name_values(Arena *arena, Names *names, const Fusion *fusion, const char *head, const char *block)
{
    static const char *const kinds[] = {"v",   "total", "terms", "divisor", "reciprocal",
                                        "sum", "mean",  "count", "parts"};
    names_avoid(names, head);
    names_avoid(names, block);
    for (int i = 0; i < fusion->op_count; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const char *numbered = arena_printf(arena, "%s%d", kinds[k], i), *name = fusion->ops[i].out->name;
            if (names_has(names, numbered))
                names_give(names, numbered, k == 0 ? name : arena_printf(arena, "%s_%s", name, kinds[k]));
        }
}

/* Compilers leave registers free for more blocks than there are, and load one element after the other for it. */
static const char *launch_bounds(Arena *arena, const PlannedLaunch *planned, const DeviceSpec *device)
{
    int blocks = rprogram_grid_blocks(planned->kind, planned->program, device);
    return blocks && device->dialect != DIALECT_HIP ? arena_printf(arena, "THREADS, %d", blocks) : "THREADS";
}

static KernelText kernel_text(Generator *generator, int index)
{
    const PlannedLaunch *planned = &generator->request->plan->launches[index];
    const Launch *launch = &generator->kernel->launches[index];
    const LaunchDraft *draft = &generator->drafts[index];
    const char *block = arena_printf(generator->arena, "%s%s", draft->tensors, draft->block);
    const TemplateStore *templates = generator->request->templates;
    Template template = template_read(templates, planned->family->template_path);
    Names *names = names_within(generator->taken);
    names_avoid(names, template.body);
    Names *values = names_within(names);
    name_values(generator->arena, values, planned->fusion, template.head, block);
    name_arguments(generator->arena, names, planned->fusion);
    const char *tensors = emit_signature(generator->arena, planned->fusion, launch, NULL);
    return (KernelText){
        .entry = launch->entry,
        .parameters = names_put(names, names_put(values, block)),
        .provenance = provenance(generator->arena, generator->request, generator->kernel, index),
        .signature = arena_printf(generator->arena, "%s%s", names_put(names, tensors),
                                  emit_maps(generator->arena, launch->map_count)),
        .tensors = names_put(names, emit_arguments(generator->arena, planned->fusion, draft->mapped)),
        .map_list = emit_map_list(generator->arena, launch->map_count),
        .bounds = launch_bounds(generator->arena, planned, generator->request->device),
        .opening = chain_opening(generator->arena, launch, templates->line_directives),
        .template = template,
        .shares_body = planned->family->shares_body,
    };
}

/* What the device's compiler is told, as it says it itself. */
static void write_arch_check(Generator *generator, int arch)
{
    if (arch == 0)
        return;
    strbuf_printf(
        generator->out,
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < %d\n"
        "#error \"%s was made for the device %s and needs sm_%d or later: compile it with -arch=%s\"\n"
        "#endif\n",
        arch, generator->request->name, generator->request->device->name, arch / 10,
        generator->request->device->arch);
}

/* Trims what all launches and the launcher need, and writes it. */
static void write_kernels(Generator *generator)
{
    const CodegenRequest *request = generator->request;
    Kernel *kernel = generator->kernel;
    Trim *trim = generator->trim;
    KernelText *texts = NEW_ARRAY(generator->arena, KernelText, kernel->kernel_count);
    for (int k = 0; k < kernel->kernel_count; k++) {
        texts[k] = kernel_text(generator, kernel->leaders[k]);
        trim_add_kernel(trim, &texts[k]);
    }
    Names *names = names_within(generator->taken);
    bool hip = request->device->dialect == DIALECT_HIP;
    const char *launcher = launcher_text(generator->arena, kernel, hip, names);
    trim_add_user(trim, launcher);
    trim_take(trim);
    StrBuf constants = strbuf_new(generator->arena), kernels = strbuf_new(generator->arena);
    for (int k = 0; k < kernel->kernel_count; k++) {
        trim_write_constants(&constants, trim, k);
        trim_write_kernel(&kernels, trim, k);
    }
    strbuf_puts(generator->out, constants.text);
    write_arch_check(generator, trim_arch(trim));
    trim_write_prelude(generator->out, trim);
    strbuf_puts(generator->out, kernels.text);
    strbuf_puts(generator->out, request->templates->line_directives ? TEMPLATE_OWN_LINE : "");
    strbuf_puts(generator->out, launcher);
    strbuf_puts(&constants, kernels.text);
    strbuf_puts(&constants, launcher);
    kernel->without_prelude = constants.text;
}

static TextTarget target_of_text(const CodegenRequest *request)
{
    TextTarget target = target_of(request->device, request->fast_math);
    target.keeps_lines = request->templates->line_directives;
    return target;
}

/* The kernel by itself, under the name of a first one. */
static const char *piece_of(const Generator *whole, int k)
{
    const Kernel *kernel = whole->kernel;
    const CodegenRequest *request = whole->request;
    Generator generator = *whole;
    StrBuf out = strbuf_new(whole->arena);
    generator.out = &out;
    generator.trim = trim_new(request->templates, target_of_text(request), kernel->name, 1);
    KernelText text = kernel_text(&generator, kernel->leaders[k]);
    text.entry = arena_printf(whole->arena, "%s_k0", kernel->name);
    text.provenance = "";
    trim_add_kernel(generator.trim, &text);
    trim_take(generator.trim);
    trim_write_constants(&out, generator.trim, 0);
    trim_write_prelude(&out, generator.trim);
    trim_write_kernel(&out, generator.trim, 0);
    return with_own_lines(&generator);
}

static const char *const *pieces_of(const Generator *whole)
{
    const Kernel *kernel = whole->kernel;
    const char **pieces = NEW_ARRAY(whole->arena, const char *, kernel->kernel_count);
    for (int k = 0; k < kernel->kernel_count; k++)
        pieces[k] = piece_of(whole, k);
    return pieces;
}

/* The file as a program of its own. */
static void write_main(Generator *generator, TextTarget target)
{
    const CodegenRequest *request = generator->request;
    Trim *trim = trim_main(request->templates, target);
    Names *names = names_within(generator->taken);
    trim_avoid(trim, names);
    const char *text = plain_main(generator->arena, request->program, generator->kernel, names);
    trim_add_user(trim, text);
    trim_take(trim);
    strbuf_printf(generator->out,
                  "\n#ifdef ROLLERC_MAIN   // nvcc -arch=%s -DROLLERC_MAIN %s.cu && ./a.out\n",
                  request->device->arch, request->name);
    trim_write_main(generator->out, trim);
    strbuf_printf(generator->out, "%s#endif   // ROLLERC_MAIN\n", text);
}

RuntimeSource kernel_source(const Kernel *kernel)
{
    const Program *program = kernel->program;
    RuntimeSource source = {
        .name = kernel->name,
        .text = kernel->source,
        .length = kernel->source_length,
        .arg_count = argument_count(program),
        .launches = kernel->launches,
        .launch_count = kernel->launch_count,
        .prepare_count = kernel->prepare_count,
        .copies = kernel->copies,
        .copy_count = kernel->copy_count,
        .graph = kernel->has_graph,
    };
    for (int i = 0; i < program->input_count; i++)
        source.weight_count += program->inputs[i]->is_weight;
    source.weight_first = program->input_count - source.weight_count;
    return source;
}

int64_t *kernel_buffers(Arena *arena, const Kernel *kernel)
{
    int beside = argument_count(kernel->program);
    int64_t *bytes = NEW_ARRAY(arena, int64_t, beside + BUFFERS_BESIDE);
    for (int i = 0; i < beside; i++) {
        const Tensor *tensor = argument_tensor(kernel->program, i);
        bytes[i] = tensor->is_weight ? 0 : tensor_bytes(tensor);
    }
    bytes[beside + BUFFER_WORKSPACE] = kernel->workspace_bytes;
    bytes[beside + BUFFER_PREPARED] = kernel->prepared_bytes;
    bytes[beside + BUFFER_WEIGHTS] = kernel->weight_bytes;
    return bytes;
}

/* Everything: what is emitted. */
static void write_file(Generator *generator, TextTarget target)
{
    Kernel *kernel = generator->kernel;
    write_json_line(generator);
    write_opening(generator->out, generator->request);
    write_kernels(generator);
    if (generator->request->with_test && !target.hip)
        write_main(generator, target);
    kernel->source = with_own_lines(generator);
    kernel->source_length = strlen(kernel->source);
}

Kernel *codegen_kernel(Arena *arena, const CodegenRequest *request)
{
    LaunchDraft *drafts = NEW_ARRAY(arena, LaunchDraft, request->plan->count);
    Kernel *kernel = launches_draft(arena, request, drafts);
    StrBuf out = strbuf_new(arena);
    TextTarget target = target_of_text(request);
    Generator generator = {.arena = arena,
                           .request = request,
                           .kernel = kernel,
                           .drafts = drafts,
                           .out = &out,
                           .trim = trim_new(request->templates, target, kernel->name, kernel->kernel_count)};
    Names *taken = names_new(arena);
    trim_avoid(generator.trim, taken);
    generator.taken = taken;
    if (request->form != CODEGEN_PIECES)
        write_file(&generator, target);
    if (request->form == CODEGEN_PIECES || (request->form == CODEGEN_BOTH && kernel->kernel_count > 1))
        kernel->pieces = pieces_of(&generator);
    return kernel;
}
