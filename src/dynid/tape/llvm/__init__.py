"""Compile tapes (recorded programs) by LLVM to machine code for this processor, without a C compiler."""
