//! CUPTI, below.
