"""Small programs whose control flow is known: each way is marked by a call of a function of its own."""

from __future__ import annotations

__all__ = ["AARCH64", "EXCEPTIONS", "MARKED"]

MARKED = r"""
#include <setjmp.h>
#include <stdlib.h>
volatile int seen;
#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif
#define MARK(n) APART void m##n(void) { seen += n + 1; __asm__ volatile("" ::: "memory"); }
MARK(0) MARK(1) MARK(2) MARK(3) MARK(4) MARK(5) MARK(6) MARK(7) MARK(8) MARK(9)

APART void dense(int x) {
    switch (x) {
        case 0: m0(); break; case 1: m1(); break; case 2: m2(); break; case 3: m3(); break;
        case 4: m4(); break; case 5: m5(); break; case 6: m6(); break; default: m9();
    }
    seen = 100;
}
APART void shifted(int x) {
    switch (x) {
        case 11: m0(); break; case 12: m1(); break; case 13: m2(); break; case 14: m3(); break;
        case 15: m4(); break; case 17: m5(); break; case 18: m6(); break; default: m9();
    }
    seen = 101;
}
APART void narrow(unsigned char x) {
    switch (x) {
        case 3: m0(); break; case 4: m1(); break; case 5: m2(); break; case 6: m3(); break;
        case 7: m4(); break; case 8: m5(); break; case 9: m6(); break; default: m9();
    }
    seen = 102;
}
APART void masked(unsigned x) {
    switch (x & 7) {
        case 0: m0(); break; case 1: m1(); break; case 2: m2(); break; case 3: m3(); break;
        case 4: m4(); break; case 5: m5(); break; case 6: m6(); break; case 7: m7(); break;
    }
    seen = 103;
}
APART void sparse(int x) {
    switch (x) {
        case 1: m0(); break; case 100: m1(); break; case 10000: m2(); break; case 1000000: m3(); break;
        default: m9();
    }
    seen = 104;
}
APART void looped(const unsigned char *p, int n) {
    for (int i = 0; i < n; i++) {
        switch (p[i]) {
            case 'a': m0(); break; case 'b': m1(); break; case 'c': m2(); break; case 'd': m3(); break;
            case 'e': m4(); break; case 'f': m5(); break; case 'h': m6(); break; default: m9();
        }
    }
    seen = 105;
}
APART int threaded(const unsigned char *p) {
    static const void *const labels[] = {&&one, &&two, &&three, &&stop};
    goto *labels[*p++ & 3];
one: m0(); goto *labels[*p++ & 3];
two: m1(); goto *labels[*p++ & 3];
three: m2(); goto *labels[*p++ & 3];
stop: m3();
    return seen;
}
APART int unbounded(const unsigned char *p) {
    static const void *const labels[] = {&&one, &&two, &&three};
    goto *labels[*p++];
one: m0(); goto *labels[*p++];
two: m1(); goto *labels[*p++];
three: m2();
    return seen;
}
APART void last(int x) { seen = x; m1(); exit(x); }
APART void after(int x) { seen = x * 3; m2(); seen = 4; }
APART __attribute__((noreturn)) void die(int x) { m3(); seen = x; abort(); }
APART void dying(int x) { m4(); die(x); }
APART int checked(int x) { if (x > 3) { m0(); dying(x); } m5(); return seen; }
APART void tail(int x) { seen = x; m7(); }
APART int pointer(int (*f)(int), int x) { seen = x; return f(x + 1); }
APART int diamond(int x) { if (x > 3) { m1(); seen = 1; } else { m2(); seen = 2; } seen = 3; return seen; }
APART int recursive(int x) { if (x < 2) return 1; return recursive(x - 1) + recursive(x - 2); }
static jmp_buf back;
APART int jumping(int x) { if (setjmp(back) == 0) { m0(); longjmp(back, x); } m1(); return seen; }
#ifdef __aarch64__
#define DOWN "1: subs %w0, %w0, #1\n\tb.ne 1b"
#define OVER "b 1f\n\t.word 0xffffffff\n1:"
#define FAULT "udf #0"
#define PARTED \
    ".text\n.globl parted\n.type parted, %function\n" \
    "parted:\n.cfi_startproc\n" \
    "stp x29, x30, [sp, -16]!\n.cfi_def_cfa_offset 16\n.cfi_offset 29, -16\n.cfi_offset 30, -8\n" \
    "cbz w0, parted.cold\nbl m1\n" \
    ".Lback:\nbl m2\nldp x29, x30, [sp], 16\n.cfi_restore 30\n.cfi_restore 29\n.cfi_def_cfa_offset 0\nret\n" \
    ".cfi_endproc\n.size parted, .-parted\n" \
    ".section .text.unlikely, \"ax\", %progbits\n.type parted.cold, %function\n" \
    "parted.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.cfi_offset 29, -16\n.cfi_offset 30, -8\n" \
    "bl m0\nb .Lback\n" \
    ".cfi_endproc\n.size parted.cold, .-parted.cold\n.text\n"
#else
#define DOWN "1: dec %0\n\tjnz 1b"
#define OVER "jmp 1f\n\t.byte 0xe8, 0x48\n1:"
#define FAULT "ud2"
#define PARTED \
    ".text\n.globl parted\n.type parted, @function\n" \
    "parted:\n.cfi_startproc\n" \
    "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\n" \
    "test %edi, %edi\nje parted.cold\ncall m1\n" \
    ".Lback:\ncall m2\npop %rbx\n.cfi_def_cfa_offset 8\nret\n" \
    ".cfi_endproc\n.size parted, .-parted\n" \
    ".section .text.unlikely, \"ax\", @progbits\n.type parted.cold, @function\n" \
    "parted.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\n" \
    "call m0\njmp .Lback\n" \
    ".cfi_endproc\n.size parted.cold, .-parted.cold\n.text\n"
#endif
APART int counted(int n) {
    __asm__ volatile(DOWN : "+r"(n) : : "cc");
    m0();
    return n;
}
APART void skipping(int x) {
    __asm__ volatile(OVER ::: "memory");
    if (x) m0();
    m1();
}
APART void faulting(int x) { m0(); if (x) __asm__ volatile(FAULT); m1(); }
void parted(int);
__asm__(PARTED);
static int twice(int x) { return 2 * x; }
int main(int c, char **v) {
    dense(c); shifted(c); narrow(c); masked(c); sparse(c); looped((unsigned char *)v[0], c);
    threaded((unsigned char *)v[0]); unbounded((unsigned char *)v[0]);
    after(c); tail(c); diamond(c); recursive(c); jumping(c); counted(c); skipping(c); faulting(c); parted(c);
    checked(c); pointer(twice, c);
    if (c > 50) last(c);
    return seen & 1;
}
"""

EXCEPTIONS = r"""
extern "C" {
volatile int seen;
#define MARK(n) __attribute__((noinline)) void m##n() { seen = seen + n + 1; __asm__ volatile("" ::: "memory"); }
MARK(0) MARK(1) MARK(2) MARK(3)
__attribute__((noinline)) void thrower(int x) { if (x > 3) throw x; m0(); }
__attribute__((noinline)) int catching(int x) {
    try { thrower(x); m1(); } catch (int caught) { m2(); return caught; }
    m3();
    return seen;
}
struct Guard { ~Guard() { m3(); } };
__attribute__((noinline)) void cleaning(int x) { Guard guard; thrower(x); m1(); }
}
int main(int c, char **) { cleaning(c); return catching(c); }
"""

AARCH64 = r"""
#define APART __attribute__((noinline, noclone))
int counter = 5;
APART void counting(int x) { counter += x; }
APART const char *greeting(int x) { counter = x; return x > 3 ? "a greeting that is kept" : 0; }
APART void looping(int n) { for (int i = 0; i < n; i++) { counter = i; counting(i); } }
APART int bit(int x) { if (x & 8) { counter = 1; counting(2); } return counter; }
APART int atomic(int x) { return __atomic_fetch_add(&counter, x, __ATOMIC_ACQ_REL); }
APART void breaking(int x) { counter = x; __builtin_trap(); }
APART int stopping(int x) { __asm__ volatile("brk #0xf000"); return counter + x; }
long pooled(void);
long misled(long);
__asm__(
    ".text\n.globl pooled\n.type pooled, %function\npooled:\n.cfi_startproc\n"
    "ldr x0, =counter\nldr w0, [x0]\nret\n.ltorg\n"
    ".cfi_endproc\n.size pooled, .-pooled\n"
    ".globl misled\n.type misled, %function\nmisled:\n.cfi_startproc\n"
    "cbz x0, 1f\nret\n1:\n.word 0xd65f03c0\n"
    ".cfi_endproc\n.size misled, .-misled\n");
int main(int c, char **v) {
    counting(c); looping(c); bit(c); atomic(c); stopping(c); misled(c);
    if (c > 50) breaking(c);
    return pooled() + (greeting(c) != 0);
}
"""
