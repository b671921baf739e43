/* A property with its name, so that the replay of a trail says which one was violated. No comma in the name. */
#define TEXT(words) #words
#define CHECK(condition, property) if :: (condition) :: else -> printf(TEXT(violated: property\n)); assert(false) fi
