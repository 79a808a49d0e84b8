include "duties";
# The embedded result agent finds the actions in a note, and writes them as the prompt under test says. Of its
# instructions it understands: Begin each line with "X" · the owner first · Instead of "X" write "Y" · At most N
# lines · answer "X" if there is none. What the prompt does not say, it does not do: a prompt without its rules
# gives another result.
.context.promptUnderTest as $prompt
| ([$prompt | capture("[Bb]egin each line with \"(?<x>[^\"]+)\"").x] | first // "") as $start
| ($prompt | test("owner first")) as $owner_first
| [$prompt | capture("[Ii]nstead of \"(?<from>[^\"]+)\" write \"(?<to>[^\"]*)\""; "g")] as $words
| ([$prompt | capture("[Aa]t most (?<n>[0-9]+) lines").n | tonumber] | first // 1000) as $most
| ([$prompt | capture("answer \"(?<x>[^\"]+)\"").x] | first // "None.") as $none
| [ .context.userPrompt | all_duties
    | $start + (if $owner_first then "\(.who): \(.what)" else "\(.who) \(.duty) \(.what)" end) ]
| if . == [] then $none else .[:$most] | join("\n") end
| reduce $words[] as $word (.; split($word.from) | join($word.to))
