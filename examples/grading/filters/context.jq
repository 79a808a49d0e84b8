# The pages that speak of the criterion, as the evaluator gets them.
($criterion.keywords | map(ascii_downcase)) as $words
| [ $document.text_content | to_entries | sort_by(.key | tonumber)[]
    | (.value | ascii_downcase) as $page
    | select(any($words[]; . as $word | $page | contains($word)))
    | "=== Page \(.key) ===\n\(.value)" ]
| if length == 0 then "No relevant content found." else join("\n\n") end
