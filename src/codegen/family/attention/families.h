// The families of this room.
#pragma once
#include "kernel/family.h"

extern const Family attention_family, attention_bulk_family;
