// ---- operands of the tensor cores of sm_90a (wgmma) ----

// The shared-memory descriptor of an operand. An operand is stored in lines of 128 bytes with 128-byte
// swizzle: the 16-byte vector p of line l is stored at position p ^ l % 8. Each group of eight lines is
// aligned to 1024 bytes.
//
//   k contiguous      line r is 128 bytes of row r; groups of eight rows are `stride` bytes apart
//   rows contiguous   line k is rows 0…63 of that k, of 16-bit elements; groups of eight k are `stride` bytes apart, rows 64…127
//                     lie `leading` bytes after
//
// The descriptor holds the address, `leading` and `stride` in units of 16 bytes, and the swizzle mode in its
// highest two bits.
DEVICE unsigned long long describe_operand(const void *first, int leading, int stride)
{
    return (shared_address(first) >> 4 & 0x3fffu) | static_cast<unsigned long long>(leading >> 4) << 16 |
           static_cast<unsigned long long>(stride >> 4) << 32 | 1ull << 62;
}
