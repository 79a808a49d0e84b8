# Definitions that several filters share.
# Days since 1970-01-01, and back.
def day: "\(.)T00:00:00Z" | fromdateiso8601 / 86400 | floor;
def date: . * 86400 | todateiso8601 | .[:10];
def total(f): [.[] | f] | add // 0;
def median: sort | if . == [] then null else .[(length - 1) / 2 | floor] end;
