// ---- scores of a row, as they go by ----

// M in base two, rounded wherever it is used: a product that the compiler would draw into the sum behind it is not.
DEVICE float scaled_of(float maximum, float scale) { return fmaf(maximum, scale, 0.0f); }

// What is taken from all scores before they are scaled: 0, but for a maximum whose M is off by more than an eighth or infinite, such as
// that of columns masked by -1e9.
DEVICE float origin_of(float maximum, float scale)
{
    return fabsf(maximum) < infinity<float>() && !(fabsf(scaled_of(maximum, scale)) < 0x1p21f) ? maximum : 0.0f;
}

// Of the four lanes that share a row.
DEVICE float largest_of_row(float own)
{
    const float two = op_max(own, warp_shuffle_xor(own, 2, 4));
    return op_max(two, warp_shuffle_xor(two, 1, 4));
}
DEVICE float sum_of_row(float own)
{
    const float two = own + warp_shuffle_xor(own, 2, 4);
    return two + warp_shuffle_xor(two, 1, 4);
}
