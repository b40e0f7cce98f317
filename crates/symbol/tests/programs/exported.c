int shown(int a) { return a * 3; }

int again(int a) { return shown(a) + 1; }
