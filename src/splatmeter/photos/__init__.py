"""Files of pixels: their size, their decoding, and a bounded memory of them."""
