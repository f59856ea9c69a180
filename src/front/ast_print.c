#include <ctype.h>
#include <string.h>

#include "front/ast.h"

typedef struct Printer {
    StrBuf *out;
    bool parenthesised;   // every operation, else those that need it
    const ParamOverride *overrides;
    int override_count;
} Printer;

static void expr_text(const Printer *p, const AstExpr *expr);

static void list_text(const Printer *p, AstExpr *const *items, int count)
{
    for (int i = 0; i < count; i++) {
        strbuf_puts(p->out, i ? ", " : "");
        expr_text(p, items[i]);
    }
}

static void indices_text(const Printer *p, const AstIndex *indices, int count)
{
    for (int i = 0; i < count; i++) {
        strbuf_printf(p->out, "%s%s", i ? ", " : "", indices[i].name);
        if (!indices[i].extent)
            continue;
        strbuf_putc(p->out, ':');
        expr_text(p, indices[i].extent);
    }
}

/* How closely an operation binds, in the order of the grammar's rules. */
typedef enum Binding {
    BINDS_OR,
    BINDS_AND,
    BINDS_COMPARE,
    BINDS_SUM,
    BINDS_PRODUCT,
    BINDS_SIGN,
    BINDS_PRIMARY
} Binding;

static Binding binding_of(const AstExpr *expr)
{
    if (expr->kind != AST_APPLY || isalpha((unsigned char)*op_info[expr->apply.op].spelling))
        return BINDS_PRIMARY;
    switch (expr->apply.op) {
    case OP_OR: return BINDS_OR;
    case OP_AND: return BINDS_AND;
    case OP_ADD: case OP_SUB: return BINDS_SUM;
    case OP_MUL: case OP_DIV: return BINDS_PRODUCT;
    case OP_NEG: case OP_NOT: return BINDS_SIGN;
    default: return BINDS_COMPARE;
    }
}

static void operand_text(const Printer *p, const AstExpr *operand, Binding least)
{
    bool bare = p->parenthesised || binding_of(operand) >= least;
    strbuf_puts(p->out, bare ? "" : "(");
    expr_text(p, operand);
    strbuf_puts(p->out, bare ? "" : ")");
}

/* a + b, -a: operators are left-associative, but comparisons stand alone. */
static void operator_text(const Printer *p, const AstExpr *expr)
{
    AstExpr *const *operands = expr->apply.operands;
    const OpInfo *info = &op_info[expr->apply.op];
    Binding binding = binding_of(expr), left = binding == BINDS_COMPARE ? binding + 1 : binding;
    strbuf_puts(p->out, p->parenthesised ? "(" : "");
    if (info->operands == 2) {
        operand_text(p, operands[0], left);
        strbuf_printf(p->out, " %s ", info->spelling);
        operand_text(p, operands[1], binding + 1);
    } else {
        strbuf_puts(p->out, info->spelling);
        operand_text(p, operands[0], binding);
    }
    strbuf_puts(p->out, p->parenthesised ? ")" : "");
}

static void apply_text(const Printer *p, const AstExpr *expr)
{
    const OpInfo *info = &op_info[expr->apply.op];
    if (!isalpha((unsigned char)*info->spelling)) {
        operator_text(p, expr);
        return;
    }
    strbuf_printf(p->out, "%s(", info->spelling);
    list_text(p, expr->apply.operands, info->operands);
    strbuf_putc(p->out, ')');
}

static void expr_text(const Printer *p, const AstExpr *expr)
{
    switch (expr->kind) {
    case AST_NUMBER:
        number_print(p->out, expr->number);
        break;
    case AST_NAME:
        strbuf_puts(p->out, expr->name);
        break;
    case AST_ACCESS:
        strbuf_printf(p->out, "%s[", expr->access.name);
        list_text(p, expr->access.indices, expr->access.count);
        strbuf_putc(p->out, ']');
        break;
    case AST_REDUCTION:
        strbuf_printf(p->out, "%s[", reduce_name[expr->reduction.reduce]);
        indices_text(p, expr->reduction.axes, expr->reduction.count);
        strbuf_puts(p->out, "](");
        expr_text(p, expr->reduction.body);
        strbuf_putc(p->out, ')');
        break;
    case AST_PAD:
        strbuf_puts(p->out, "pad(");
        expr_text(p, expr->pad.access);
        strbuf_puts(p->out, ", ");
        expr_text(p, expr->pad.otherwise);
        strbuf_putc(p->out, ')');
        break;
    case AST_CAST:
        strbuf_puts(p->out, "cast(");
        expr_text(p, expr->cast.body);
        strbuf_printf(p->out, ", %s)", dtype_info[expr->cast.to].name);
        break;
    case AST_APPLY:
        apply_text(p, expr);
        break;
    }
}

static void brackets_text(const Printer *p, const AstStatement *statement)
{
    strbuf_putc(p->out, '[');
    if (statement->kind == STATEMENT_INPUT)
        list_text(p, statement->shape, statement->count);
    else
        indices_text(p, statement->indices, statement->count);
    strbuf_putc(p->out, ']');
}

/* A param set from outside is a number, of which the language knows no `+3`. */
static void value_text(const Printer *p, const AstStatement *statement)
{
    for (int i = p->override_count - 1; i >= 0 && statement->kind == STATEMENT_PARAM; i--)
        if (strcmp(p->overrides[i].name, statement->name) == 0) {
            strbuf_puts(p->out, p->overrides[i].text + (*p->overrides[i].text == '+'));
            return;
        }
    expr_text(p, statement->value);
}

static void statement_text(const Printer *p, const AstStatement *statement)
{
    static const char *const word[] = {"param ", "input ", "output ", ""};
    strbuf_printf(p->out, "%s%s", word[statement->kind], statement->name);
    if (statement->kind == STATEMENT_INPUT || statement->kind == STATEMENT_DEFINITION)
        brackets_text(p, statement);
    if (statement->has_type)
        strbuf_printf(p->out, " : %s", dtype_info[statement->type].name);
    if (statement->value) {
        strbuf_puts(p->out, " = ");
        value_text(p, statement);
    }
    strbuf_putc(p->out, '\n');
}

static void program_text(const Printer *p, const Ast *ast)
{
    for (int i = 0; i < ast->statement_count; i++)
        statement_text(p, &ast->statements[i]);
}

void ast_print(StrBuf *out, const Ast *ast)
{
    program_text(&(Printer){.out = out, .parenthesised = true}, ast);
}

void ast_print_source(StrBuf *out, const Ast *ast, const ParamOverride *overrides, int count)
{
    program_text(&(Printer){.out = out, .overrides = overrides, .override_count = count}, ast);
}
