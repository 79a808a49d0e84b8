{ success: true,
  card_id: $card.card_id,
  jsxgraph_json: .diagram,
  image_base64: .rendered.image,
  visual_critique_score: .critique.score,
  critique_iterations: $iteration,
  critique_feedback: .history.critiques }
