# One line for each round; feedback is what the critic said of it.
{ card_id: $card.card_id,
  critiques: ((.previous.history.critiques // []) + [{iteration: $iteration, score: .critique.score, feedback: .critique.feedback}]) }
