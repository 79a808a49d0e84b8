# The request as the stages behind use it. The multiplier: the better the author's own grade, the stricter we look.
.request as $request
| [.criteria.multiplier[] | select($request.self_grade >= .from)] as $bands
| { submission_id: ($request.submission_id // ($request.pdf_path | split("/")[-1] | rtrimstr(".pdf"))),
    pdf_path: $request.pdf_path,
    self_grade: $request.self_grade,
    criticism_multiplier: ($bands | max_by(.from) | .value) }
