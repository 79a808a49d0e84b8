# Sums. If a part is unknown (null), the sum is unknown.
def total(f): map(f) | if any(.[]; . == null) then null else add // 0 end;
# A sum of dollars, without what binary fractions add to it.
def dollars(f): total(f) | if . == null then null else . * 1e9 | round / 1e9 end;
