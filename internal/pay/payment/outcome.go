package payment

// outcome is the result of an event.
type outcome string

// Outcomes of events.
const (
	outcomePaid      outcome = "order paid"
	outcomePaidLate  outcome = "expired order paid, units taken again"
	outcomeRefund    outcome = "refund begun: the order had ended"
	outcomeUndrawn   outcome = "refund begun: the entry was not drawn"
	outcomeDouble    outcome = "refund begun: the order was paid"
	outcomeLimit     outcome = "refund begun: the means of payment used up the limit"
	outcomeRepeated  outcome = "known already"
	outcomeClosed    outcome = "payment closed"
	outcomeMismatch  outcome = "held: amount or currency differs"
	outcomeTwoTx     outcome = "held: second transaction of one payment"
	outcomeUnmatched outcome = "held: still nothing to match it with"
	outcomePutOff    outcome = "put off"

	outcomeAuthorized    outcome = "authorized for an entry"
	outcomeAttempt       outcome = "attempt declined: the payment stays open"
	outcomeDisputed      outcome = "dispute noted"
	outcomeRefundedWhole outcome = "refunded on the provider's pages"
	outcomeRefundedPart  outcome = "held: a part was refunded on the provider's pages"
	outcomeRefundFailed  outcome = "refund failed: an operator sends it again"
)
