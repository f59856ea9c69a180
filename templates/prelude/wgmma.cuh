// ---- operands of the tensor cores of sm_90a ----

// An operand lies in shared memory in lines of 128 bytes, and a group of eight lines begins at a multiple of 1024 bytes. The
// pieces of 16 bytes in a line change places: in line l piece p lies at p ^ l % 8.
//
//   along k      line r is 128 bytes of row r; groups of rows are `stride` bytes apart
//   along rows   line k is that k of rows 0…63, of 16-bit elements; groups of k are `stride` bytes apart, rows 64…127 lie
//                `leading` bytes later
//
// The instruction is told so by one word: where the first element is, leading and stride, in units of 16 bytes, and which way
// pieces change places in the highest two bits.
DEVICE unsigned long long describe_operand(const void *first, int leading, int stride)
{
    return (shared_address(first) >> 4 & 0x3fffu) | static_cast<unsigned long long>(leading >> 4) << 16 |
           static_cast<unsigned long long>(stride >> 4) << 32 | 1ull << 62;
}
