# The sentences of a note that say who has to do what, as {who, duty, what}. `$words` are the verbs: "will|must".
def duties($words):
  gsub("\\s+"; " ") | gsub("(?<end>[.!?]) "; "\(.end)\n") | split("\n")[]
  | capture("(?<who>\\b[A-Z]\\w+) (?<duty>\($words)) (?<what>[^?]+?)[.!]?\\s*$");
def all_duties: duties("will|must|should|has to|have to|needs to|need to");
