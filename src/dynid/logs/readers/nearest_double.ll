; Part of decimals.ll: the double nearest to a decimal number that does not fit the quick way.

declare i64 @llvm.ctlz.i64(i64, i1)

; w * 10^e for 0 < w, by Lemire's method; bits of the double, or -1 when undecided.
define internal i64 @scale(i64 %w, i64 %e, ptr %fives) alwaysinline {
  %low_e = icmp slt i64 %e, -342
  %high_e = icmp sgt i64 %e, 308
  %far = or i1 %low_e, %high_e
  br i1 %far, label %undecided, label %product
product:
  %shift = call i64 @llvm.ctlz.i64(i64 %w, i1 true)
  %wide = shl i64 %w, %shift
  %row = add i64 %e, 342
  %at = shl i64 %row, 1
  %high_at = getelementptr i64, ptr %fives, i64 %at
  %low_at = getelementptr i64, ptr %high_at, i64 1
  %five_high = load i64, ptr %high_at
  %five_low = load i64, ptr %low_at
  %a = zext i64 %wide to i128
  %b = zext i64 %five_high to i128
  %first = mul i128 %a, %b
  %first_top128 = lshr i128 %first, 64
  %first_top = trunc i128 %first_top128 to i64
  %tail = and i64 %first_top, 511
  %open = icmp eq i64 %tail, 511
  br i1 %open, label %refine, label %have
refine:                                             ; the truncated bits of 5^e might matter
  %c = zext i64 %five_low to i128
  %second = mul i128 %a, %c
  %carry = lshr i128 %second, 64
  %refined = add i128 %first, %carry
  br label %have
have:
  %p = phi i128 [ %first, %product ], [ %refined, %refine ]
  %top128 = lshr i128 %p, 64
  %top = trunc i128 %top128 to i64
  %bottom = trunc i128 %p to i64
  %full = icmp eq i64 %bottom, -1
  br i1 %full, label %undecided, label %round
round:
  %upper = lshr i64 %top, 63
  %drop = add i64 %upper, 9
  %m0 = lshr i64 %top, %drop
  %log2 = mul i64 %e, 217706                        ; floor(e * log2(10)) = (217706 * e) >> 16 in this range
  %log2s = ashr i64 %log2, 16
  %x0 = add i64 %log2s, 1086                        ; 63 + 1023
  %x1 = add i64 %x0, %upper
  %exponent = sub i64 %x1, %shift
  %tiny = icmp slt i64 %exponent, 1
  br i1 %tiny, label %undecided, label %halfway
halfway:                                            ; exactly between two doubles: round to even
  %small = icmp ule i64 %bottom, 1
  %e_low = icmp sge i64 %e, -4
  %e_high = icmp sle i64 %e, 23
  %ends = and i64 %m0, 3
  %odd = icmp eq i64 %ends, 1
  %back = shl i64 %m0, %drop
  %exact = icmp eq i64 %back, %top
  %t1 = and i1 %small, %e_low
  %t2 = and i1 %t1, %e_high
  %t3 = and i1 %t2, %odd
  %tie = and i1 %t3, %exact
  %even = and i64 %m0, -2
  %m1 = select i1 %tie, i64 %even, i64 %m0
  %last = and i64 %m1, 1
  %m2 = add i64 %m1, %last
  %m3 = lshr i64 %m2, 1
  %overflow = icmp uge i64 %m3, 9007199254740992    ; 2^53
  %m4 = select i1 %overflow, i64 4503599627370496, i64 %m3
  %bump = zext i1 %overflow to i64
  %exponent1 = add i64 %exponent, %bump
  %huge = icmp sge i64 %exponent1, 2047
  %fraction = and i64 %m4, 4503599627370495         ; 2^52 - 1
  %placed = shl i64 %exponent1, 52
  %bits = or i64 %fraction, %placed
  %result = select i1 %huge, i64 -1, i64 %bits
  ret i64 %result
undecided:
  ret i64 -1
}
