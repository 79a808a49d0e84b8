# Each assertion held against the threshold. `actual` and `expected` of an assertion are those of the first judgment
# that agrees with its verdict.
($params.runs * $params.threshold / 100 | ceil) as $required
| [$judgments[][]] as $judgments
| { runs: $params.runs, threshold: $params.threshold, required: $required,
    cost_usd: ([$usage[].cost_usd, $judgments[].cost_usd] | if any(.[]; . == null) then null else add end),
    unscored: ([$judgments[] | select(.score == null)] | length),
    assertions: [ $context.assertions[] as $assertion
      | ([$judgments[] | select(.assertion == $assertion.id)] | sort_by(.run)) as $of_it
      | ([$of_it[] | select(.passed)] | length) as $passes
      | ($passes >= $required) as $passed
      | ([$of_it[] | select(.passed == $passed)] + $of_it)[0] as $shown
      | $assertion + { $passes, $passed,
          averageScore: ($of_it | map(.score) | if . == [] or any(.[]; . == null) then null else add / length end),
          actual: $shown.actual, expected: $shown.expected,
          judgments: $of_it } ] }
| {passed: all(.assertions[]; .passed)} + .
