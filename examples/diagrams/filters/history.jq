# One critique for each iteration.
{ card_id: $card.card_id,
  critiques: ((.previous.history.critiques // [])
    + [{iteration: $iteration, score: .critique.score, feedback: .critique.feedback}]) }
