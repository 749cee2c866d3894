"""The LLVM reader of a tape: machine code for this processor, without a C compiler."""
