// ---- online softmax ----

// The maximum in base 2. fma with 0 rounds the product here; a plain product would be contracted with a later sum.
DEVICE float scaled_of(float maximum, float scale) { return fmaf(maximum, scale, 0.0f); }

// What is subtracted from scores first: 0, unless the scaled maximum is infinite or off by more than 1/8, as of masks by -1e9.
DEVICE float origin_of(float maximum, float scale)
{ return fabsf(maximum) < infinity<float>() && !(fabsf(scaled_of(maximum, scale)) < 0x1p21f) ? maximum : 0.0f; }
