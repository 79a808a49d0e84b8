# What the document returns of a card, and who made it.
def who: split(" (")[0];
def total($a; $b): if $a == null or $b == null then null else $a + $b end;
{ success: true,
  card_id: $card.card_id,
  jsxgraph_json: .diagram,
  image_base64: .rendered.image,
  visual_critique_score: .critique.score,
  critique_iterations: $iteration,
  critique_feedback: .history.critiques,
  made_by: {
    author: ($agents.diagram_author | who),
    critic: ($agents.visual_critic | who),
    renderer: .rendered.metadata.renderer,
    fallback: .rendered.metadata.fallback,
    date: $run.date,
    cost_usd: total(
      if .previous.result then .previous.result.made_by.cost_usd else 0 end;
      total(.authored.cost_usd; .critique.cost_usd)) } }
