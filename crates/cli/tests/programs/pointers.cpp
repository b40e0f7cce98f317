// Functions that end with their regions, so that compilers make the calls of the runtime jumps, and are called by pointers.
#include <functional>

#include "virtual_time.h"

static volatile double data[1 << 10];
static volatile double factor = 1.0001;

static void burn() {
  if (IS_VIRTUAL_TIME) {
    VIRTUAL_WORK(1000000);
    return;
  }
  for (int k = 0; k < 300; k++)
    for (int i = 0; i < (1 << 10); i++)
      data[i] = data[i] * factor;
}

static void plain() {
#pragma omp parallel // plain
  for (int n = 0; n < 8; n++)
    burn();
}

void (*volatile table[1])() = {plain};

int main() {
  std::function<void()> stored = [] {
#pragma omp parallel // lambda
    for (int n = 0; n < 9; n++) {
      factor = 1.0 / factor;
      burn();
    }
  };
  for (int n = 0; n < 30; n++) {
    table[0](); // call of plain
    stored();   // call of the lambda
  }
}
