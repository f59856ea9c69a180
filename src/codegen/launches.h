// The launches of a chosen plan, before their text: where tensors lie, what each launch waits for, which are equal.
#pragma once
#include "codegen/codegen.h"
#include "codegen/equal.h"

/* `drafts`: room for one of each launch of the plan; NULL: no launch is like another. */
Kernel *launches_draft(Arena *arena, const CodegenRequest *request, LaunchDraft *drafts);
