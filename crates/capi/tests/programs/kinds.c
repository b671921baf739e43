#include "kinds.h"

int main(void) {
    emit_all();
    printf("evaluated %d\n", evaluated);
    return 0;
}
