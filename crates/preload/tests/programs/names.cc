// Functions with names that C++ has and C has not, and functions that libstdc++ has, too.
#include <string>

#define WHOLE __attribute__((noinline))

namespace {
WHOLE int hidden(int n) { return n + 1; }
}

template <class T> WHOLE T twice(T n) { return n * 2; }

struct Shop {
    int sold = 0;
    WHOLE int operator()(int n) { return sold += n; }
    WHOLE operator int() const { return sold; }
    WHOLE int price() const { return sold; }
};

int main(int argc, char **)
{
    Shop shop;
    auto lambda = [](int n) WHOLE { return n + 3; };
    std::string text = "text";
    text += std::to_string(argc);
    int sum = hidden(argc) + twice(argc) + (int)twice(2.0) + shop(argc) + shop + shop.price() + lambda(argc) + text.size();
    return sum == 0;
}
