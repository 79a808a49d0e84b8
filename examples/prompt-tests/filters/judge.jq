# The embedded judge measures what can be measured in a result, and rejects any other requirement. It understands, after
# "should":
#   mention "X" and "Y" · not mention "X" · be exactly "X" · have exactly|at most|at least N lines|words
#   begin every line with "X" · begin every line with an owner and a colon
.answer as $answer
| ($answer | split("\n") | map(select(test("\\S")))) as $lines
| (.assertion.requirement | sub("^.*?\\bshould\\s+"; "")) as $asked
| [$asked | scan("\"([^\"]+)\"")[]] as $quoted
| def list: map("\"\(.)\"") | join(", ");
  def share($n; $of): if $of == 0 then 0 else $n * 100 / $of | round end;
  def each_line(holds; $what):
    [$lines[] | select(holds)] as $good
    | { passed: ($lines != [] and $good == $lines), score: share($good | length; $lines | length),
        expected: "every line begins with \($what)",
        actual: "\($good | length) of \($lines | length) lines do" };
  ( if ($asked | test("^not mention\\b")) and $quoted != [] then
      [$quoted[] | select(. as $word | $answer | contains($word))] as $found
      | { passed: ($found == []), score: share(($quoted | length) - ($found | length); $quoted | length),
          expected: "no \($quoted | list)",
          actual: (if $found == [] then "none of it" else "mentions \($found | list)" end) }
    elif ($asked | test("^mention\\b")) and $quoted != [] then
      [$quoted[] | select(. as $word | $answer | contains($word) | not)] as $missing
      | { passed: ($missing == []), score: share(($quoted | length) - ($missing | length); $quoted | length),
          expected: "mentions \($quoted | list)",
          actual: (if $missing == [] then "all of it" else "lacks \($missing | list)" end) }
    elif ($asked | test("^be exactly\\b")) and $quoted != [] then
      ($answer | gsub("^\\s+|\\s+$"; "")) as $text
      | ($text == $quoted[0]) as $passed
      | { $passed, score: (if $passed then 100 else 0 end), expected: $quoted[0], actual: $text }
    elif ($asked | test("^have (exactly|at most|at least) [0-9]+ (line|word)s?\\b")) then
      ($asked | capture("^have (?<how>exactly|at most|at least) (?<n>[0-9]+) (?<unit>line|word)")) as $limit
      | ($limit.n | tonumber) as $n
      | (if $limit.unit == "line" then $lines | length else [$answer | scan("\\S+")] | length end) as $count
      | { passed: ({exactly: ($count == $n), "at most": ($count <= $n), "at least": ($count >= $n)}[$limit.how]),
          expected: "\($limit.how) \($n) \($limit.unit)s", actual: "\($count) \($limit.unit)s" }
      | .score = (if .passed then 100 else [0, 100 - share([$count - $n, $n - $count] | max; $n)] | max end)
    elif ($asked | test("^begin every line with \"")) then
      each_line(startswith($quoted[0]); $quoted | list)
    elif ($asked | test("^begin every line with an owner and a colon")) then
      each_line(test("^\\W*[A-Z][\\w ]*: \\S"); "an owner and a colon")
    else
      { passed: false, score: null, expected: $asked,
        actual: "not measured: the embedded judge does not understand this requirement, a model does" }
    end )
