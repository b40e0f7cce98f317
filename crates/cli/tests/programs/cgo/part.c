long count_down(long from) {
    volatile long left = from;
    while (left > 0)
        left--;
    return left;
}
