# Each sentence of a note that gives somebody a duty, as {who, duty, what}. `$words` are the words of duty: "will|must".
def duties($words):
  gsub("\\s+"; " ") | gsub("(?<end>[.!?]) "; "\(.end)\n") | split("\n")[]
  | capture("(?<who>\\b[A-Z]\\w+) (?<duty>\($words)) (?<what>[^?]+?)[.!]?\\s*$");
def all_duties: duties("will|must|should|has to|have to|needs to|need to");
