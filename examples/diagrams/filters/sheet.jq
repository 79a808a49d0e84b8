# What the contact sheet shows: each card with its picture, its critiques, and who made it.
{ lesson: .lesson.lessonTemplateId,
  title: (.lesson.title // .lesson.lessonTemplateId),
  cards: [ .cards.cards[] as $card
    | .results[] | select(.card_id == $card.card_id)
    | {card_id, title: $card.title, explainer: $card.explainer, image_base64, score: .visual_critique_score,
       iterations: .critique_iterations, critiques: .critique_feedback, made_by} ],
  cost_usd: ([.results[].made_by.cost_usd] | if any(.[]; . == null) then null else add // 0 end),
  fallbacks: ([.results[].made_by.fallback | values] | group_by(.) | map({reason: .[0], pictures: length})) }
