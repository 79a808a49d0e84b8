# What each iteration came to, and what it cost: an agent that was not asked costs nothing.
(.previous.history // []) + [{iteration: $iteration, result_type: .plan.result_type, reasons: .plan.revision_reasons,
  validation_report: .plan.validation_report,
  minutes_planned: ([.plan.plan_rows[].estimated_minutes] | add // 0),
  minutes_estimated: ([.to_planner.topic_estimates[].estimated_minutes] | add // 0),
  cost_usd: {estimation: (if .requested.estimate then .estimated.cost_usd else 0 end), planner: .rows.cost_usd}}]
