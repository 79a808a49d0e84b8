# What the reviewer wants changed, and whom the coordinator invokes again: the estimation only if its estimates are a
# reason.
(.previous.plan.revision_reasons // []) as $changes
| {$changes, estimate: (.iteration == 1 or any($changes[]; startswith("estimate:")))}
