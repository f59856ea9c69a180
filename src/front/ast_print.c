#include <ctype.h>
#include <string.h>

#include "front/ast.h"

static void expr_text(StrBuf *out, const AstExpr *expr);

static void list_text(StrBuf *out, AstExpr *const *items, int count)
{
    for (int i = 0; i < count; i++) {
        strbuf_puts(out, i ? ", " : "");
        expr_text(out, items[i]);
    }
}

static void indices_text(StrBuf *out, const AstIndex *indices, int count)
{
    for (int i = 0; i < count; i++) {
        strbuf_printf(out, "%s%s", i ? ", " : "", indices[i].name);
        if (!indices[i].extent)
            continue;
        strbuf_putc(out, ':');
        expr_text(out, indices[i].extent);
    }
}

/* (a + b), (-a) */
static void operator_text(StrBuf *out, const AstExpr *expr)
{
    AstExpr *const *operands = expr->apply.operands;
    const OpInfo *info = &op_info[expr->apply.op];
    strbuf_putc(out, '(');
    if (info->operands == 2) {
        expr_text(out, operands[0]);
        strbuf_printf(out, " %s ", info->spelling);
        expr_text(out, operands[1]);
    } else {
        strbuf_puts(out, info->spelling);
        expr_text(out, operands[0]);
    }
    strbuf_putc(out, ')');
}

static void apply_text(StrBuf *out, const AstExpr *expr)
{
    const OpInfo *info = &op_info[expr->apply.op];
    if (!isalpha((unsigned char)*info->spelling)) {
        operator_text(out, expr);
        return;
    }
    strbuf_printf(out, "%s(", info->spelling);
    list_text(out, expr->apply.operands, info->operands);
    strbuf_putc(out, ')');
}

static void expr_text(StrBuf *out, const AstExpr *expr)
{
    switch (expr->kind) {
    case AST_NUMBER:
        number_print(out, expr->number);
        break;
    case AST_NAME:
        strbuf_puts(out, expr->name);
        break;
    case AST_ACCESS:
        strbuf_printf(out, "%s[", expr->access.name);
        list_text(out, expr->access.indices, expr->access.count);
        strbuf_putc(out, ']');
        break;
    case AST_REDUCTION:
        strbuf_printf(out, "%s[", reduce_name[expr->reduction.reduce]);
        indices_text(out, expr->reduction.axes, expr->reduction.count);
        strbuf_puts(out, "](");
        expr_text(out, expr->reduction.body);
        strbuf_putc(out, ')');
        break;
    case AST_PAD:
        strbuf_puts(out, "pad(");
        expr_text(out, expr->pad.access);
        strbuf_puts(out, ", ");
        expr_text(out, expr->pad.otherwise);
        strbuf_putc(out, ')');
        break;
    case AST_CAST:
        strbuf_puts(out, "cast(");
        expr_text(out, expr->cast.body);
        strbuf_printf(out, ", %s)", dtype_info[expr->cast.to].name);
        break;
    case AST_APPLY:
        apply_text(out, expr);
        break;
    }
}

static void brackets_text(StrBuf *out, const AstStatement *statement)
{
    strbuf_putc(out, '[');
    if (statement->kind == STATEMENT_DEFINITION)
        indices_text(out, statement->indices, statement->count);
    else
        list_text(out, statement->shape, statement->count);
    strbuf_putc(out, ']');
}

static void statement_text(StrBuf *out, const AstStatement *statement)
{
    static const char *const word[] = {
        [STATEMENT_PARAM] = "param ", [STATEMENT_INPUT] = "input ",   [STATEMENT_WEIGHT] = "weight ",
        [STATEMENT_VIEW] = "view ",   [STATEMENT_OUTPUT] = "output ", [STATEMENT_DEFINITION] = ""};
    strbuf_printf(out, "%s%s", word[statement->kind], statement->name);
    if (statement->kind != STATEMENT_PARAM && statement->kind != STATEMENT_OUTPUT)
        brackets_text(out, statement);
    if (statement->has_type)
        strbuf_printf(out, " : %s", dtype_info[statement->type].name);
    if (statement->viewed)
        strbuf_printf(out, " = %s", statement->viewed);
    if (statement->value) {
        strbuf_puts(out, " = ");
        expr_text(out, statement->value);
    }
    strbuf_putc(out, '\n');
}

void ast_print(StrBuf *out, const Ast *ast)
{
    for (int i = 0; i < ast->statement_count; i++)
        statement_text(out, &ast->statements[i]);
}

// ---- as it was written ----

/* Behind spaces and comments; `is_wide`: there is more than spaces. */
static const char *behind_gap(const char *at, const char *end, bool *is_wide)
{
    const char *start = at;
    while (at < end && (isspace((unsigned char)*at) || *at == '#'))
        if (*at == '#')
            at += strcspn(at, "\n");
        else
            *is_wide |= *at++ != ' ';
    *is_wide |= memchr(start, '#', (size_t)(at - start)) != NULL;
    return at < end ? at : end;
}

/* What was written between two places. Line ends, tabs and comments become a space with the spaces around
   them. */
static void written_text(StrBuf *out, const char *at, const char *end)
{
    while (at < end) {
        bool is_wide = false;
        const char *next = behind_gap(at, end, &is_wide);
        if (is_wide)
            strbuf_putc(out, ' ');
        else
            strbuf_write(out, at, (size_t)(next - at));
        if (next < end)
            strbuf_putc(out, *next);
        at = next + 1;
    }
}

static const char *override_of(const AstStatement *statement, const ParamOverride *overrides, int count)
{
    for (int i = count - 1; i >= 0 && statement->kind == STATEMENT_PARAM; i--)
        if (strcmp(overrides[i].name, statement->name) == 0)
            return overrides[i].text;
    return NULL;
}

/* A param set from outside is a number, of which the language knows no `+3`. */
void ast_print_source(StrBuf *out, const Ast *ast, const ParamOverride *overrides, int count)
{
    for (int i = 0; i < ast->statement_count; i++) {
        const AstStatement *statement = &ast->statements[i];
        const char *text = statement->loc.source->text + statement->loc.offset,
                   *set = override_of(statement, overrides, count);
        size_t length = set ? statement->value->loc.offset - statement->loc.offset : statement->loc.length;
        written_text(out, text, text + length);
        strbuf_printf(out, "%s\n", set ? set + (*set == '+') : "");
    }
}
