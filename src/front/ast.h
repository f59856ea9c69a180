// The syntax of a program: what was written, with no name looked up and nothing computed.
#pragma once
#include "front/lex.h"
#include "ir/tensor_op.h"

typedef struct AstExpr AstExpr;

typedef enum AstKind {
    AST_NUMBER,      // 64, 1e-5, inf, pi
    AST_NAME,        // a param, or an index variable as a value
    AST_ACCESS,      // x[i, 2*j]
    AST_REDUCTION,   // sum[k](…)
    AST_PAD,         // pad(x[i - 1], 0)
    AST_CAST,        // cast(…, i32)
    AST_APPLY        // a + b, !a, exp(a), select(c, a, b)
} AstKind;

/* `h:112`: an index variable where it is introduced. */
typedef struct AstIndex {
    const char *name;
    const AstExpr *extent;   // NULL if none is stated
    Loc loc;                 // of the name
} AstIndex;

struct AstExpr {
    AstKind kind;
    int depth;   // of the tree below, itself included
    Loc loc;
    union {
        Number number;
        const char *name;
        struct { const char *name; AstExpr **indices; int count; } access;
        struct { Reduce reduce; AstIndex *axes; int count; AstExpr *body; } reduction;
        struct { AstExpr *access, *otherwise; } pad;
        struct { AstExpr *body; DType to; } cast;
        struct { Op op; AstExpr *operands[MAX_OPERANDS]; } apply;
    };
};

typedef enum StatementKind {
    STATEMENT_PARAM,        // param NAME = value
    STATEMENT_INPUT,        // input NAME[shape] : type
    STATEMENT_WEIGHT,       // weight NAME[shape] : type
    STATEMENT_VIEW,         // view NAME[shape] = TENSOR
    STATEMENT_OUTPUT,       // output NAME [: type]
    STATEMENT_DEFINITION    // NAME[indices] [: type] = value
} StatementKind;

typedef struct AstStatement {
    StatementKind kind;
    Loc loc;                // all of it
    const char *name;
    Loc name_loc;
    AstExpr **shape;        // of an input, a weight or a view
    AstIndex *indices;      // of a definition
    int count;              // of either
    bool has_type;
    DType type;
    Loc type_loc;
    AstExpr *value;         // of a param or definition
    const char *viewed;     // of a view: the tensor
    Loc viewed_loc;
} AstStatement;

/* The tokens of a statement that is wrong: their names may be what it would have defined. */
typedef struct AstGap AstGap;
struct AstGap {
    const Token *first, *end;
    const AstGap *next;
};

typedef struct Ast {
    AstStatement *statements;
    int statement_count;
    const AstGap *gaps;     // none in a program that is right
    int reduction_count;    // in all expressions
    Loc end;                // of the file
} Ast;

/* `-D NAME=TEXT` from the command line; TEXT is a NUMBER with an optional sign; NULL, of `-D NAME`, is an
   error. */
typedef struct ParamOverride {
    const char *name;
    const char *text;
} ParamOverride;

/* The program again, one statement a line, with every operation in parentheses. */
void ast_print(StrBuf *out, const Ast *ast);

/* The program as it was written, one statement a line, without comments and with params as they were set. It
   compiles to the same kernel, and is printed as the same text again. */
void ast_print_source(StrBuf *out, const Ast *ast, const ParamOverride *overrides, int count);
