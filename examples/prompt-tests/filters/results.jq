($params.runs * $params.threshold / 100 | ceil) as $required
| { runs: $params.runs, threshold: $params.threshold, required: $required,
    assertions: [ $context.assertions[] as $assertion
      | ([$judgments[] | select(.assertion == $assertion.id)] | sort_by(.run)) as $of_it
      | ([$of_it[] | select(.passed)] | length) as $passes
      | $assertion + { passes: $passes, passed: ($passes >= $required),
          averageScore: ($of_it | map(.score) | if . == [] or any(.[]; . == null) then null else add / length end),
          judgments: $of_it } ] }
| {passed: all(.assertions[]; .passed)} + .
