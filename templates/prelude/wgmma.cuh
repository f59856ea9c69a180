// ---- operands of the tensor cores of sm_90a (wgmma) ----

// The descriptor of an operand in lines of 128 bytes with 128-byte swizzle: the 16-byte vector p of line l, counted from a multiple
// of 1024 bytes, is stored at position p ^ l % 8. Groups of eight lines are `stride` bytes apart, and begin at any line. Where k is
// contiguous, line r is of row r; where rows are, line k is rows 0…63 of that k, and rows 64…127 lie `leading` bytes after.
DEVICE unsigned long long describe_operand(const void *first, int leading, int stride)
{ return (shared_address(first) >> 4 & 0x3fffu) | leading / 16ull << 16 | stride / 16ull << 32 | 1ull << 62; }
