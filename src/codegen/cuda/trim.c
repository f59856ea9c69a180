#include "codegen/cuda/trim.h"

#include <ctype.h>
#include <string.h>

#include "base/diag.h"
#include "codegen/cuda/fold.h"
#include "codegen/cuda/trim_parts.h"

#define ROOT "templates/prelude.cuh"
#define OPENING "// <rollerc: prelude>\n"
#define CLOSING "// </rollerc>\n"
#define MAIN "templates/main.cuh"
#define INCLUDE "#include \"prelude/"
#define OPENS "OPENING;"

static const char *const TYPES[TYPE_COUNT] = {"float", "double", "long", "short", "char", "signed"};

// ---- what there is ----

static void init_scope(Trim *trim, TrimScope *scope, const KernelText *text)
{
    *scope = (TrimScope){.text = text, .constants = {.table = {.arena = trim->arena}}};
    units_init(trim->arena, &scope->units);
}

static const char *add_file(Trim *trim, const char *path)
{
    FileName *file = NEW(trim->store->arena, FileName);
    file->path = path;
    *trim->last_file = file;
    trim->last_file = &file->next;
    return path;
}

static Slice between_markers(const Trim *trim, const char *text)
{
    const char *opening = strstr(text, OPENING), *closing = opening ? strstr(opening, CLOSING) : NULL;
    if (!closing)
        fatal(trim->store->folder ? EXIT_INPUT : EXIT_BUG,
              "'" ROOT "' lacks the lines '// <rollerc: prelude>' and '// </rollerc>'");
    return (Slice){opening + strlen(OPENING), closing};
}

static const char *included_path(Arena *arena, Slice line)
{
    const char *name = line.start + strlen(INCLUDE);
    return arena_printf(arena, "templates/prelude/%.*s", (int)strcspn(name, "\"\n"), name);
}

/* The root has #includes, and lines that open or close a namespace. */
static void read_prelude(Trim *trim, bool only_files)
{
    const char *text = template_text(trim->store, add_file(trim, ROOT));
    Slice rest = between_markers(trim, text);
    UnitPlace place = PLACE_BEFORE;
    while (rest.start < rest.end) {
        Slice line = line_read(&rest);
        place += slice_starts(line, "namespace") || slice_starts(line, "}");
        if (!slice_starts(line, INCLUDE))
            continue;
        const char *path = add_file(trim, included_path(trim->store->arena, line));
        if (!only_files)
            units_read(trim->arena, &trim->prelude.units, &trim->target,
                       (UnitSource){path, 0, place, template_text(trim->store, path)});
    }
}

/* Those of intrinsics/ are another device's where the interpreter runs the text: its warps may be longer. */
static void read_constants(TrimScope *scope)
{
    for (const TextUnit *unit = scope->units.first; unit; unit = unit->next)
        if (!unit->file || strncmp(unit->file, INTRINSICS, strlen(INTRINSICS)) != 0)
            constants_read(&scope->constants, unit->text);
}

static Trim *new_trim(const TemplateStore *store, TextTarget target)
{
    Trim *trim = NEW(store->arena, Trim);
    *trim = (Trim){.arena = store->arena, .store = store, .target = target};
    trim->last_file = &trim->files;
    init_scope(trim, &trim->prelude, NULL);
    return trim;
}

Trim *trim_new(const TemplateStore *store, TextTarget target, const char *name, int kernel_count)
{
    Trim *trim = new_trim(store, target);
    trim->name = name;
    trim->kernels = NEW_ARRAY(trim->arena, TrimScope, kernel_count);
    read_prelude(trim, false);
    read_constants(&trim->prelude);
    units_name(&trim->prelude.units);
    return trim;
}

Trim *trim_main(const TemplateStore *store, TextTarget target)
{
    Trim *trim = new_trim(store, target);
    const char *text = template_text(store, MAIN), *inside = strstr(text, BEGIN_MAIN),
               *end = strstr(text, END_MAIN);
    if (!inside || !end)
        fatal(store->folder ? EXIT_INPUT : EXIT_BUG, "'" MAIN "' lacks its 'namespace plain { … }'");
    inside += strlen(BEGIN_MAIN);
    const char *before = arena_strndup(trim->arena, text, (size_t)(inside - text) - strlen(BEGIN_MAIN));
    units_read(trim->arena, &trim->prelude.units, &trim->target, (UnitSource){NULL, 0, PLACE_BEFORE, before});
    units_read(
        trim->arena, &trim->prelude.units, &trim->target,
        (UnitSource){NULL, 0, PLACE_WITHIN, arena_strndup(trim->arena, inside, (size_t)(end - inside))});
    units_name(&trim->prelude.units);
    return trim;
}

/* What stands in the body for a word of the template; NULL: the word itself. */
static const char *replaced(const KernelText *kernel, Slice word)
{
    if (!isupper((unsigned char)*word.start))
        return NULL;
    return slice_equals(word, "ENTRY")        ? kernel->entry
           : slice_equals(word, "PARAMETERS") ? kernel->signature
           : slice_equals(word, "TENSORS")    ? kernel->tensors
           : slice_equals(word, "OPENING")    ? kernel->opening
           : slice_equals(word, "MAP_LIST")   ? kernel->map_list
           : slice_equals(word, "BOUNDS")     ? kernel->bounds
                                              : NULL;
}

/* Of `OPENING;`, which may become nothing: the line goes with it. */
static const char *without_blanks(const char *text, const char *end)
{
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    return end;
}

/* The body with the launch's own names and what it begins with. */
static const char *named_body(const Trim *trim, const KernelText *kernel)
{
    StrBuf out = strbuf_new(trim->arena);
    Slice rest = slice_of(kernel->template.body), token;
    const char *written = rest.start;
    bool says_where = strstr(written, OPENS) != NULL, opened = says_where;
    while (token_read(&rest, &token)) {
        const char *text = replaced(kernel, token), *end = token.start;
        bool opens = slice_equals(token, "OPENING");
        if (!text)
            continue;
        if (opens && !trim->store->line_directives)
            end = without_blanks(written, end);
        strbuf_write(&out, written, (size_t)(end - written));
        strbuf_puts(&out, text);
        written = token.end + opens;   // and the semicolon
        if (text == kernel->tensors && *written == ';' && !says_where) {
            strbuf_printf(&out, ";%s", kernel->opening);
            written++;
            opened = true;
        }
    }
    strbuf_puts(&out, written);
    if (!opened)
        fatal(trim->store->folder ? EXIT_INPUT : EXIT_BUG, "'%s' lacks 'const Tensors t = TENSORS;'",
              kernel->template.path);
    return out.text;
}

/* Functions are declared in units of their own; what a template only declares, a parameter may define. */
static const Slice *idle_functions(Trim *trim, const TrimScope *scope)
{
    int count = 0;
    Slice *idle = NEW_ARRAY(trim->arena, Slice, scope->units.declaration_count + 1);
    for (const TextUnit *unit = scope->units.first; unit; unit = unit->next)
        if (unit->declarations && unit->declarations->first->alone && fold_is_idle(unit->text))
            idle[count++] = unit->declarations->name;
    return idle;
}

/* First branches, which show what does nothing, then calls of that; and what branches are left with fewer choices. */
static void fold_scope(Trim *trim, TrimScope *scope)
{
    static const Slice none = {0};
    bool keeps_lines = trim->store->line_directives;   // which are the template's
    Arena *scratch = arena_new();
    for (TextUnit *unit = scope->units.first; unit; unit = unit->next) {
        const char *text = unit->text;
        unit->text = fold_branches(trim->arena, scratch, &scope->constants, &none, text, keeps_lines);
        unit->text = fold_expressions(trim->arena, scratch, &scope->constants, unit->text, keeps_lines);
        unit->folded = unit->text != text;
    }
    const Slice *idle = idle_functions(trim, scope);
    for (TextUnit *unit = scope->units.first; unit; unit = unit->next)
        if (unit->folded || idle->start)
            unit->text =
                fold_branches(trim->arena, scratch, &scope->constants, idle, unit->text, keeps_lines);
    arena_free(scratch);
}

void trim_add_kernel(Trim *trim, const KernelText *kernel)
{
    TrimScope *scope = &trim->kernels[trim->kernel_count++];
    const Template *template = &kernel->template;
    init_scope(trim, scope, kernel);
    scope->constants.outer = &trim->prelude.constants;
    units_read(trim->arena, &scope->units, &trim->target,
               (UnitSource){template->path, template->head_line - 1, PLACE_BEFORE, template->head});
    units_read(trim->arena, &scope->units, &trim->target,
               (UnitSource){NULL, 0, PLACE_WITHIN, kernel->parameters});
    units_read(
        trim->arena, &scope->units, &trim->target,
        (UnitSource){template->path, template->body_line - 1, PLACE_BEHIND, named_body(trim, kernel)});
    read_constants(scope);
    units_name(&scope->units);
    fold_scope(trim, scope);
}

void trim_avoid(const Trim *trim, Names *names)
{
    if (trim->name)
        names_avoid(names, arena_printf(trim->arena, "%s" PRELUDE_SUFFIX, trim->name));
    for (const TextUnit *unit = trim->prelude.units.first; unit; unit = unit->next)
        for (const Declaration *declared = unit->declarations; declared; declared = declared->next)
            names_avoid_word(names, declared->name);
}

// ---- what is taken ----

static void use_declaration(Declaration *declaration, bool called)
{
    if (declaration) {
        declaration->used = true;
        declaration->called |= called;
    }
}

static void use_name(Trim *trim, const TrimScope *scope, Slice name, bool called)
{
    Declaration *own = scope ? units_find(&scope->units, name) : NULL, *common = units_find(&trim->prelude.units, name);
    use_declaration(own, called);
    use_declaration(common, called);
    for (int i = 0; i < TYPE_COUNT && !own && !common; i++)
        trim->occurs[i] |= *name.start == *TYPES[i] && slice_equals(name, TYPES[i]);
}

/* 1.5 is a double, 1.5f a float, 1ll a long long. */
static void use_number(Trim *trim, Slice number)
{
    bool is_hex = number.end - number.start > 1 && number.start[1] == 'x', is_real = false, is_float = false;
    for (const char *c = number.start; c < number.end; c++) {
        is_real |= *c == '.' || (!is_hex && tolower((unsigned char)*c) == 'e');
        is_float |= !is_hex && tolower((unsigned char)*c) == 'f';
        trim->occurs[TYPE_LONG] |= tolower((unsigned char)*c) == 'l';
    }
    trim->occurs[TYPE_FLOAT] |= is_float;
    trim->occurs[TYPE_DOUBLE] |= is_real && !is_float;
}

static bool is_type_word(Slice word)
{
    static const char *const types[] = {"void",     "bool", "int",   "float", "double",
                                        "unsigned", "char", "short", "long"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (*word.start == *types[i] && slice_equals(word, types[i]))
            return true;
    return false;
}

/* Whether a name behind these two tokens is used, and not a member's or declared there: x.name, p->name,
   T::name, void name. In `unsigned char` both words are. */
static bool is_use(Slice before, Slice last, Slice name)
{
    if (!last.start)
        return true;
    bool is_arrow = before.start && *before.start == '-' && *last.start == '>';
    bool is_scope = before.start && *before.start == ':' && *last.start == ':';
    return *last.start != '.' && !is_arrow && !is_scope && (!is_type_word(last) || is_type_word(name));
}

static bool is_declared_here(const Declaration *own, Slice name)
{
    while (own && own->name.start != name.start)
        own = own->next;
    return own != NULL;
}

static void use_text(Trim *trim, const TrimScope *scope, const char *text, const Declaration *own)
{
    Slice rest = slice_of(text), before = {0}, last = {0};
    while (rest.start < rest.end) {
        const char *behind = token_skip(rest.start, rest.end);
        Slice token;
        if (behind != rest.start) {
            if (isdigit((unsigned char)*rest.start))
                use_number(trim, (Slice){rest.start, behind});
            rest.start = behind;
        } else if (token_read(&rest, &token)) {
            if (is_name(token) && is_use(before, last, token) && !is_declared_here(own, token))
                use_name(trim, scope, token, *token.end != '<');
            if (*token.end == '<')
                trim_use_number(trim, scope, token, rest);
            before = last;
            last = token;
        }
    }
}

static bool type_occurs(const Trim *trim, const TrimScope *scope, Slice type)
{
    for (int i = 0; i < TYPE_COUNT; i++)
        if (slice_equals(type, TYPES[i]))
            return trim->occurs[i];
    const Declaration *own = units_find(&scope->units, type),
                      *common = units_find(&trim->prelude.units, type);
    return !(own || common) || (own && own->used) || (common && common->used);
}

/* Nothing can call an overload for a type that does not occur, nor name<type>() one that is no template. */
static bool is_wanted(const Trim *trim, const TrimScope *scope, const Declaration *declaration)
{
    if (!declaration->first->used || declaration->first->alone)
        return declaration->first->used;
    if (!declaration->first->called && strncmp(declaration->unit->text, "template", strlen("template")) != 0)
        return false;
    Slice rest = declaration->arguments, token;
    while (token_read(&rest, &token))
        if (is_name(token) && !(type_occurs(trim, scope, token) && trim_number_occurs(trim, token, rest)))
            return false;
    return true;
}

static bool is_unit_wanted(const Trim *trim, const TrimScope *scope, const TextUnit *unit)
{
    if (unit->kind != UNIT_DEFINITION)
        return unit->kind == UNIT_ROOT;
    for (const Declaration *declaration = unit->declarations; declaration; declaration = declaration->next)
        if (is_wanted(trim, scope, declaration))
            return true;
    return false;
}

static bool take_units(Trim *trim, TrimScope *scope)
{
    bool more = false;
    for (TextUnit *unit = scope->units.first; unit; unit = unit->next)
        if (!unit->taken && is_unit_wanted(trim, scope, unit)) {
            unit->taken = more = true;
            use_text(trim, scope->text ? scope : NULL, unit->text, unit->declarations);
        }
    return more;
}

/* Of all declarations of that name one is taken, or none is there. */
static bool is_there(const UnitList *units, Slice name)
{
    const Declaration *found = units_find(units, name);
    return !found || found->used;
}

/* `static_assert(condition, "…");` */
static Slice condition_of(const char *check)
{
    Slice condition = {strchr(check, '(') + 1, strchr(check, '"')};
    while (condition.end && condition.end > condition.start && *condition.end != ',')
        condition.end--;
    return condition.end ? condition : slice_of(check);
}

/* A check stays where all that it names is there, unless it is known to hold. */
static void take_checks(const Trim *trim, TrimScope *scope)
{
    for (TextUnit *unit = scope->units.first; unit; unit = unit->next) {
        if (unit->kind != UNIT_CHECK)
            continue;
        int64_t holds;
        Slice rest = condition_of(unit->text), token;
        unit->taken = !(constants_evaluate(&scope->constants, rest, &holds) && holds);
        while (unit->taken && token_read(&rest, &token))
            unit->taken = is_there(&scope->units, token) && is_there(&trim->prelude.units, token);
    }
}

/* The heading of a section stays where something of the section does. */
static void take_headings(TrimScope *scope)
{
    TextUnit *heading = NULL;
    for (TextUnit *unit = scope->units.first; unit; unit = unit->next) {
        if (unit->taken && heading)
            heading->taken = true;
        heading = unit->kind == UNIT_COMMENT ? unit : unit->taken ? NULL : heading;
    }
}

/* A constant or a type of the parameters that needs nothing but those before it. */
static bool is_leading(const Trim *trim, const TrimScope *scope, const TextUnit *unit)
{
    Slice rest = slice_of(unit->text), token;
    bool found = unit->place == PLACE_WITHIN && token_read(&rest, &token) &&
                 (slice_equals(token, "constexpr") || slice_equals(token, "using"));
    while (found && token_read(&rest, &token)) {
        const Declaration *used = units_find(&scope->units, token);
        found = used ? used->unit == unit || used->unit->leads : !units_find(&trim->prelude.units, token);
    }
    return found;
}

void trim_add_user(Trim *trim, const char *text) { use_text(trim, NULL, text, NULL); }

void trim_take(Trim *trim)
{
    bool more = true;
    while (more) {
        more = take_units(trim, &trim->prelude);
        for (int k = 0; k < trim->kernel_count; k++)
            more |= take_units(trim, &trim->kernels[k]);
    }
    take_checks(trim, &trim->prelude);
    for (int k = 0; k < trim->kernel_count; k++) {
        take_checks(trim, &trim->kernels[k]);
        take_headings(&trim->kernels[k]);
        for (TextUnit *unit = trim->kernels[k].units.first; unit; unit = unit->next)
            unit->leads = is_leading(trim, &trim->kernels[k], unit);
    }
    if (!trim->store->line_directives)   // then lines are the template's
        trim_share_bodies(trim);
}

static int arch_of(const UnitList *units)
{
    int arch = 0;
    for (const TextUnit *unit = units->first; unit; unit = unit->next)
        arch = unit->taken && unit->arch > arch ? unit->arch : arch;
    return arch;
}

int trim_arch(const Trim *trim)
{
    int arch = arch_of(&trim->prelude.units);
    for (int k = 0; k < trim->kernel_count; k++) {
        int other = arch_of(&trim->kernels[k].units);
        arch = other > arch ? other : arch;
    }
    return arch;
}

const char *const *prelude_files(const TemplateStore *store)
{
    Trim trim = {.arena = store->arena, .store = store};
    trim.last_file = &trim.files;
    read_prelude(&trim, true);
    add_file(&trim, MAIN);
    int count = 0;
    for (const FileName *file = trim.files; file; file = file->next)
        count++;
    const char **paths = NEW_ARRAY(store->arena, const char *, count + 1);
    count = 0;
    for (const FileName *file = trim.files; file; file = file->next)
        paths[count++] = file->path;
    return paths;
}
