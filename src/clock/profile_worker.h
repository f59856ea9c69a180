// The process that checks and times candidates: one job after another, until all are done or a candidate
// brings it down. It begins before they are compiled, and waits for their machine code.
#pragma once
#include "clock/profile_board.h"

void profile_work(void *task);
