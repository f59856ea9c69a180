// Progress of a long run: one line on stderr that is redrawn on a terminal, plain lines otherwise; nothing
// under -q.
#pragma once

void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Clears the line: ordinary messages may follow. */
void progress_end(void);
