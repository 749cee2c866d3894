; Rows of decimal numbers in text, parsed into columns of doubles.
;
; @parse_rows(text, end, delimiter, decimal, fields, target, out, stride, powers, fives, state) -> status
;   text       bytes; text[end - 1] is a line feed, and eight readable bytes follow it
;   delimiter  ' ' stands for any run of spaces and tabs
;   target     for each field: the row of `out` it goes to, or -1 to pass over it
;   out        out[target * stride + row]
;   powers     10^0 .. 10^22, which doubles hold exactly
;   fives      for e = -342 .. 308: the 128 leading bits of 5^e, as two words, high word first
;   state      [position, row, field, resume]: where to begin, and where it stopped
; status: 0 all done; 1 a number for the caller to convert (state points at it); 2 a field is no number; 3 a row is too short.
;
; Up to 19 digits are gathered in an integer w; the value is w * 10^e. If both fit, one multiplication or division of doubles rounds
; correctly (Clinger 1990). Otherwise the product of w and the leading bits of 5^e gives the rounded result (Lemire 2021), and the
; rare case that it leaves open goes to the caller (@scale in nearest_double.ll). Every result is the double nearest to the text.

define i64 @parse_rows(ptr noalias %text, i64 %end, i8 %delimiter, i8 %decimal, i64 %fields, ptr noalias %target,
                       ptr noalias %out, i64 %stride, ptr noalias %powers, ptr noalias %fives, ptr noalias %state) {
entry:
  %pos = alloca i64
  %row = alloca i64
  %field = alloca i64
  %w = alloca i64
  %negative = alloca i64
  %exponent = alloca i64
  %value = alloca double
  %token = alloca i64
  %e10 = alloca i64
  %down = alloca i1
  %row_at = getelementptr i64, ptr %state, i64 1
  %field_at = getelementptr i64, ptr %state, i64 2
  %resume_at = getelementptr i64, ptr %state, i64 3
  %pos_in = load i64, ptr %state
  %row_in = load i64, ptr %row_at
  %field_in = load i64, ptr %field_at
  %resume_in = load i64, ptr %resume_at
  store i64 %pos_in, ptr %pos
  store i64 %row_in, ptr %row
  store i64 %field_in, ptr %field
  store i64 %pos_in, ptr %token
  %blank_mode = icmp eq i8 %delimiter, 32
  %tab_is_blank = icmp ne i8 %delimiter, 9
  %last_field = sub i64 %fields, 1
  %resuming = icmp ne i64 %resume_in, 0
  br i1 %resuming, label %after, label %before

; --- blanks before a field, blank lines, the end ---------------------------------------------------------------------
before:
  %b.p = load i64, ptr %pos
  %b.at = getelementptr i8, ptr %text, i64 %b.p
  %b.c = load i8, ptr %b.at
  %b.space = icmp eq i8 %b.c, 32
  %b.tab0 = icmp eq i8 %b.c, 9
  %b.tab = and i1 %b.tab0, %tab_is_blank
  %b.blank = or i1 %b.space, %b.tab
  br i1 %b.blank, label %before.step, label %before.look
before.step:
  %b.next = add i64 %b.p, 1
  store i64 %b.next, ptr %pos
  br label %before
before.look:
  %b.field = load i64, ptr %field
  %b.first = icmp eq i64 %b.field, 0
  br i1 %b.first, label %line.start, label %which
line.start:
  %b.done = icmp uge i64 %b.p, %end
  br i1 %b.done, label %done, label %line.blank
line.blank:
  %b.lf = icmp eq i8 %b.c, 10
  %b.cr = icmp eq i8 %b.c, 13
  %b.eol = or i1 %b.lf, %b.cr
  br i1 %b.eol, label %before.step, label %which

; --- one field -------------------------------------------------------------------------------------------------------
which:
  store i64 %b.p, ptr %token
  %t.field = load i64, ptr %field
  %t.at = getelementptr i64, ptr %target, i64 %t.field
  %t.target = load i64, ptr %t.at
  %t.skip = icmp slt i64 %t.target, 0
  br i1 %t.skip, label %pass, label %missing
pass:                                               ; a field of words: up to the next delimiter or line end
  %w.p = load i64, ptr %pos
  %w.at = getelementptr i8, ptr %text, i64 %w.p
  %w.c = load i8, ptr %w.at
  %w.delim = icmp eq i8 %w.c, %delimiter
  %w.tab0 = icmp eq i8 %w.c, 9
  %w.tab = and i1 %w.tab0, %blank_mode
  %w.lf = icmp eq i8 %w.c, 10
  %w.e1 = or i1 %w.delim, %w.tab
  %w.e2 = or i1 %w.e1, %w.lf
  %w.next = add i64 %w.p, 1
  br i1 %w.e2, label %after, label %pass.step
pass.step:
  store i64 %w.next, ptr %pos
  br label %pass
missing:                                            ; an empty field is a missing number
  %m.delim = icmp eq i8 %b.c, %delimiter
  %m.lf = icmp eq i8 %b.c, 10
  %m.cr = icmp eq i8 %b.c, 13
  %m.e1 = or i1 %m.delim, %m.lf
  %m.e2 = or i1 %m.e1, %m.cr
  br i1 %m.e2, label %missing.kind, label %sign
missing.kind:
  br i1 %blank_mode, label %short, label %nan
nan:
  store double 0x7FF8000000000000, ptr %value
  br label %store

sign:
  store i64 0, ptr %w
  store i64 0, ptr %exponent
  %s.minus = icmp eq i8 %b.c, 45
  %s.plus = icmp eq i8 %b.c, 43
  %s.neg = zext i1 %s.minus to i64
  store i64 %s.neg, ptr %negative
  %s.any = or i1 %s.minus, %s.plus
  %s.len = zext i1 %s.any to i64
  %i.start = add i64 %b.p, %s.len
  br label %whole
whole:                                              ; digits before the decimal sign
  %i.p = phi i64 [ %i.start, %sign ], [ %i.next, %whole.step ]
  %i.w = phi i64 [ 0, %sign ], [ %i.w1, %whole.step ]
  %i.at = getelementptr i8, ptr %text, i64 %i.p
  %i.c = load i8, ptr %i.at
  %i.d8 = sub i8 %i.c, 48
  %i.digit = icmp ult i8 %i.d8, 10
  br i1 %i.digit, label %whole.step, label %whole.end
whole.step:
  %i.d = zext i8 %i.d8 to i64
  %i.w10 = mul i64 %i.w, 10
  %i.w1 = add i64 %i.w10, %i.d
  %i.next = add i64 %i.p, 1
  br label %whole
whole.end:
  %i.count = sub i64 %i.p, %i.start
  %i.zero = icmp eq i64 %i.w, 0
  %i.sig = select i1 %i.zero, i64 0, i64 %i.count
  %i.long = icmp ugt i64 %i.count, 19
  br i1 %i.long, label %hard, label %dot
dot:
  %d.dot = icmp eq i8 %i.c, %decimal
  %f.start = add i64 %i.p, 1
  br i1 %d.dot, label %zeros, label %digits.end
zeros:                                              ; zeros behind the decimal sign do not count as digits of 0.00123
  %z.p = phi i64 [ %f.start, %dot ], [ %z.next, %zeros.step ]
  %z.at = getelementptr i8, ptr %text, i64 %z.p
  %z.c = load i8, ptr %z.at
  %z.is = icmp eq i8 %z.c, 48
  %z.go = and i1 %z.is, %i.zero
  br i1 %z.go, label %zeros.step, label %eight
zeros.step:
  %z.next = add i64 %z.p, 1
  br label %zeros
eight:                                              ; eight digits at a time: the bytes of a word, checked and weighed together
  %e.p = phi i64 [ %z.p, %zeros ], [ %e.next, %eight.step ]
  %e.w = phi i64 [ %i.w, %zeros ], [ %e.w1, %eight.step ]
  %e.at = getelementptr i8, ptr %text, i64 %e.p
  %e.v = load i64, ptr %e.at, align 1
  %e.hi = and i64 %e.v, -1085102592571150096        ; 0xF0F0F0F0F0F0F0F0
  %e.plus6 = add i64 %e.v, 434041037028460038       ; 0x0606060606060606
  %e.lo = and i64 %e.plus6, -1085102592571150096
  %e.los = lshr i64 %e.lo, 4
  %e.or = or i64 %e.hi, %e.los
  %e.all = icmp eq i64 %e.or, 3689348814741910323   ; 0x3333333333333333
  br i1 %e.all, label %eight.step, label %fraction
eight.step:
  %e.d0 = sub i64 %e.v, 3472328296227680304         ; 0x3030303030303030
  %e.x10 = mul i64 %e.d0, 10
  %e.x10s = lshr i64 %e.d0, 8
  %e.pairs = add i64 %e.x10, %e.x10s
  %e.odd = and i64 %e.pairs, 1095216660735          ; 0x000000FF000000FF
  %e.mul1 = mul i64 %e.odd, 4294967296000100        ; 0x000F424000000064
  %e.pairs16 = lshr i64 %e.pairs, 16
  %e.even = and i64 %e.pairs16, 1095216660735
  %e.mul2 = mul i64 %e.even, 42949672960001         ; 0x0000271000000001
  %e.sum = add i64 %e.mul1, %e.mul2
  %e.number = lshr i64 %e.sum, 32
  %e.w8 = mul i64 %e.w, 100000000
  %e.w1 = add i64 %e.w8, %e.number
  %e.next = add i64 %e.p, 8
  br label %eight
fraction:
  %f.p = phi i64 [ %e.p, %eight ], [ %f.next, %fraction.step ]
  %f.w = phi i64 [ %e.w, %eight ], [ %f.w1, %fraction.step ]
  %f.at = getelementptr i8, ptr %text, i64 %f.p
  %f.c = load i8, ptr %f.at
  %f.d8 = sub i8 %f.c, 48
  %f.digit = icmp ult i8 %f.d8, 10
  br i1 %f.digit, label %fraction.step, label %fraction.end
fraction.step:
  %f.d = zext i8 %f.d8 to i64
  %f.w10 = mul i64 %f.w, 10
  %f.w1 = add i64 %f.w10, %f.d
  %f.next = add i64 %f.p, 1
  br label %fraction
fraction.end:
  %f.count = sub i64 %f.p, %f.start
  %f.after_zeros = sub i64 %f.p, %z.p
  %f.exponent = sub i64 0, %f.count
  %f.any = add i64 %i.count, %f.count
  br label %digits.end
digits.end:
  %g.p = phi i64 [ %i.p, %dot ], [ %f.p, %fraction.end ]
  %g.c = phi i8 [ %i.c, %dot ], [ %f.c, %fraction.end ]
  %g.w = phi i64 [ %i.w, %dot ], [ %f.w, %fraction.end ]
  %g.exponent = phi i64 [ 0, %dot ], [ %f.exponent, %fraction.end ]
  %g.any = phi i64 [ %i.count, %dot ], [ %f.any, %fraction.end ]
  %g.more = phi i64 [ 0, %dot ], [ %f.after_zeros, %fraction.end ]
  %g.sig = add i64 %i.sig, %g.more
  store i64 %g.p, ptr %pos
  store i64 %g.w, ptr %w
  store i64 %g.exponent, ptr %exponent
  %g.none = icmp eq i64 %g.any, 0
  br i1 %g.none, label %hard, label %digits.some
digits.some:
  %g.over = icmp ugt i64 %g.sig, 19
  br i1 %g.over, label %hard, label %power
power:
  %x.lower = or i8 %g.c, 32
  %x.is = icmp eq i8 %x.lower, 101
  br i1 %x.is, label %power.sign, label %convert
power.sign:
  %x.p1 = add i64 %g.p, 1
  %x.at = getelementptr i8, ptr %text, i64 %x.p1
  %x.c = load i8, ptr %x.at
  %x.minus = icmp eq i8 %x.c, 45
  %x.plus = icmp eq i8 %x.c, 43
  %x.any = or i1 %x.minus, %x.plus
  %x.len = zext i1 %x.any to i64
  %x.start = add i64 %x.p1, %x.len
  store i1 %x.minus, ptr %down
  store i64 %x.start, ptr %pos
  store i64 0, ptr %e10
  br label %power.digits
power.digits:
  %y.p = load i64, ptr %pos
  %y.at = getelementptr i8, ptr %text, i64 %y.p
  %y.c = load i8, ptr %y.at
  %y.d8 = sub i8 %y.c, 48
  %y.digit = icmp ult i8 %y.d8, 10
  br i1 %y.digit, label %power.step, label %power.end
power.step:
  %y.d = zext i8 %y.d8 to i64
  %y.e = load i64, ptr %e10
  %y.e10 = mul i64 %y.e, 10
  %y.e1 = add i64 %y.e10, %y.d
  %y.next = add i64 %y.p, 1
  store i64 %y.e1, ptr %e10
  store i64 %y.next, ptr %pos
  br label %power.digits
power.end:
  %v.count = sub i64 %y.p, %x.start
  %v.none = icmp eq i64 %v.count, 0
  %v.long = icmp ugt i64 %v.count, 4
  %v.bad = or i1 %v.none, %v.long
  br i1 %v.bad, label %hard, label %power.add
power.add:
  %v.e = load i64, ptr %e10
  %v.minus = load i1, ptr %down
  %v.neg = sub i64 0, %v.e
  %v.signed = select i1 %v.minus, i64 %v.neg, i64 %v.e
  %v.sum = add i64 %g.exponent, %v.signed
  store i64 %v.sum, ptr %exponent
  br label %convert

; --- w * 10^exponent -------------------------------------------------------------------------------------------------
convert:
  %c.w = load i64, ptr %w
  %c.e = load i64, ptr %exponent
  %c.zero = icmp eq i64 %c.w, 0
  %c.fits = icmp ule i64 %c.w, 9007199254740992     ; 2^53
  %c.e22 = add i64 %c.e, 22
  %c.near = icmp ule i64 %c.e22, 44
  %c.quick = and i1 %c.fits, %c.near
  %c.easy = or i1 %c.quick, %c.zero
  br i1 %c.easy, label %clinger, label %lemire
clinger:
  %c.double = uitofp i64 %c.w to double
  %c.negative = icmp slt i64 %c.e, 0
  %c.opposite = sub i64 0, %c.e
  %c.abs0 = select i1 %c.negative, i64 %c.opposite, i64 %c.e
  %c.abs = select i1 %c.zero, i64 0, i64 %c.abs0
  %c.at = getelementptr double, ptr %powers, i64 %c.abs
  %c.power = load double, ptr %c.at
  %c.divided = fdiv double %c.double, %c.power
  %c.times = fmul double %c.double, %c.power
  %c.value = select i1 %c.negative, double %c.divided, double %c.times
  br label %signed
lemire:
  %l.bits = call i64 @scale(i64 %c.w, i64 %c.e, ptr %fives)
  %l.open = icmp eq i64 %l.bits, -1
  br i1 %l.open, label %hard, label %lemire.done
lemire.done:
  %l.value = bitcast i64 %l.bits to double
  br label %signed
signed:
  %n.value = phi double [ %c.value, %clinger ], [ %l.value, %lemire.done ]
  %n.neg = load i64, ptr %negative
  %n.is = icmp ne i64 %n.neg, 0
  %n.minus = fneg double %n.value
  %n.signed = select i1 %n.is, double %n.minus, double %n.value
  store double %n.signed, ptr %value
  br label %store
store:
  %o.field = load i64, ptr %field
  %o.at = getelementptr i64, ptr %target, i64 %o.field
  %o.target = load i64, ptr %o.at
  %o.base = mul i64 %o.target, %stride
  %o.row = load i64, ptr %row
  %o.index = add i64 %o.base, %o.row
  %o.place = getelementptr double, ptr %out, i64 %o.index
  %o.value = load double, ptr %value
  store double %o.value, ptr %o.place
  br label %after

; --- what follows a field --------------------------------------------------------------------------------------------
after:
  %a.p = load i64, ptr %pos
  %a.at = getelementptr i8, ptr %text, i64 %a.p
  %a.c = load i8, ptr %a.at
  %a.delim = icmp eq i8 %a.c, %delimiter
  %a.field = load i64, ptr %field
  %a.last = icmp eq i64 %a.field, %last_field
  %a.inner = xor i1 %a.last, true
  %a.d1 = and i1 %a.delim, %a.inner
  br i1 %a.d1, label %after.delimiter, label %after.other
after.delimiter:
  %a.next = add i64 %a.p, 1
  %a.field1 = add i64 %a.field, 1
  store i64 %a.next, ptr %pos
  store i64 %a.field1, ptr %field
  br label %before
after.other:
  %a.lf = icmp eq i8 %a.c, 10
  br i1 %a.lf, label %after.line, label %after.blank
after.line:
  br i1 %a.last, label %next.row, label %short
next.row:
  %a.next2 = add i64 %a.p, 1
  %a.row = load i64, ptr %row
  %a.row1 = add i64 %a.row, 1
  store i64 %a.next2, ptr %pos
  store i64 %a.row1, ptr %row
  store i64 0, ptr %field
  br label %before
after.blank:
  %a.space = icmp eq i8 %a.c, 32
  %a.tab = icmp eq i8 %a.c, 9
  %a.cr = icmp eq i8 %a.c, 13
  %a.tab_blank = and i1 %a.tab, %tab_is_blank
  %a.k1 = or i1 %a.space, %a.tab_blank
  %a.k2 = or i1 %a.k1, %a.cr
  br i1 %a.k2, label %after.step, label %bad
after.step:                                         ; in blank mode a tab between fields is the delimiter
  %a.next3 = add i64 %a.p, 1
  store i64 %a.next3, ptr %pos
  %a.tabsep0 = and i1 %a.tab, %blank_mode
  %a.tabsep = and i1 %a.tabsep0, %a.inner
  br i1 %a.tabsep, label %after.tab, label %after
after.tab:
  %a.field2 = add i64 %a.field, 1
  store i64 %a.field2, ptr %field
  br label %before

done:
  br label %leave
hard:
  %h.token = load i64, ptr %token
  store i64 %h.token, ptr %pos
  br label %leave
bad:
  %k.token = load i64, ptr %token
  store i64 %k.token, ptr %pos
  br label %leave
short:
  br label %leave
leave:
  %status = phi i64 [ 0, %done ], [ 1, %hard ], [ 2, %bad ], [ 3, %short ]
  %r.pos = load i64, ptr %pos
  %r.row = load i64, ptr %row
  %r.field = load i64, ptr %field
  store i64 %r.pos, ptr %state
  store i64 %r.row, ptr %row_at
  store i64 %r.field, ptr %field_at
  store i64 0, ptr %resume_at
  ret i64 %status
}
