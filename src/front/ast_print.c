#include <ctype.h>

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

/* (a + b), (-a), max(a, b) */
static void apply_text(StrBuf *out, Op op, AstExpr *const *operands)
{
    const OpInfo *info = &op_info[op];
    bool function = isalpha((unsigned char)*info->spelling);
    strbuf_puts(out, function ? info->spelling : "");
    strbuf_putc(out, '(');
    if (function)
        list_text(out, operands, info->operands);
    if (!function && info->operands == 2) {
        expr_text(out, operands[0]);
        strbuf_printf(out, " %s ", info->spelling);
        expr_text(out, operands[1]);
    }
    if (!function && info->operands == 1) {
        strbuf_puts(out, info->spelling);
        expr_text(out, operands[0]);
    }
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
        apply_text(out, expr->apply.op, expr->apply.operands);
        break;
    }
}

static void brackets_text(StrBuf *out, const AstStatement *statement)
{
    strbuf_putc(out, '[');
    if (statement->kind == STATEMENT_INPUT)
        list_text(out, statement->shape, statement->count);
    else
        indices_text(out, statement->indices, statement->count);
    strbuf_putc(out, ']');
}

static void statement_text(StrBuf *out, const AstStatement *statement)
{
    static const char *const word[] = {"param ", "input ", "output ", ""};
    strbuf_printf(out, "%s%s", word[statement->kind], statement->name);
    if (statement->kind == STATEMENT_INPUT || statement->kind == STATEMENT_DEFINITION)
        brackets_text(out, statement);
    if (statement->has_type)
        strbuf_printf(out, " : %s", dtype_info[statement->type].name);
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
