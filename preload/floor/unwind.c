// Stands in for libgcc_s.so.1, which images without C++ do not have.
//
// Nothing of ours unwinds: a panic aborts. What Rust's standard library still refers to are the ten functions below, for
// two ends. One is the backtrace of a panic, which is empty with this; the core file has it. The other is
// `rust_eh_personality` of its frames, which an unwinder that is not ours may meet when a program cancels a thread: that
// learns here that there is nothing to be done in our frames. A static copy of libgcc's functions could not tell it: they
// would read the other unwinder's context, whose layout is that unwinder's own affair.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { END_OF_STACK = 5 };

int _Unwind_Backtrace(void *callback, void *argument) { return (void)callback, (void)argument, END_OF_STACK; }

void *_Unwind_GetLanguageSpecificData(void *context) { return (void)context, NULL; }
uintptr_t _Unwind_GetRegionStart(void *context) { return (void)context, 0; }
uintptr_t _Unwind_GetTextRelBase(void *context) { return (void)context, 0; }
uintptr_t _Unwind_GetDataRelBase(void *context) { return (void)context, 0; }
// Not 0: the caller subtracts one for the address of a call.
uintptr_t _Unwind_GetIP(void *context) { return (void)context, 1; }
uintptr_t _Unwind_GetIPInfo(void *context, int *is_before) { return (void)context, *is_before = 0, 1; }

// Only what follows from language-specific data leads to these.
void _Unwind_SetGR(void *context, int index, uintptr_t value) { (void)context, (void)index, (void)value, abort(); }
void _Unwind_SetIP(void *context, uintptr_t value) { (void)context, (void)value, abort(); }
void _Unwind_Resume(void *exception) { (void)exception, abort(); }
