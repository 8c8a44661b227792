package id

import (
	"fmt"
	"io"
)

//go:generate go run ./idgen

// Kind is the prefix of a public id.
type Kind string

// Kinds of public ids. The type of the ids of a kind has the name of the constant
// without "Kind"; idgen writes it to methods.gen.go.
const (
	KindUser      Kind = "usr"
	KindSession   Kind = "ses"
	KindGoods     Kind = "gds"
	KindSale      Kind = "sal"
	KindItem      Kind = "itm"
	KindTask      Kind = "tsk"
	KindOrder     Kind = "ord"
	KindChallenge Kind = "cap"
	KindTicket    Kind = "tkt"
	KindWaitlist  Kind = "wtl"
	KindPayment   Kind = "pay"
	KindRefund    Kind = "rfd"
	KindAct       Kind = "act" // an act of an operator that moves units
	KindHeld      Kind = "hld" // money that needs a decision of an operator
	KindEndpoint  Kind = "whe" // an address that receives events
	KindEvent     Kind = "evt" // a fact that is published to other systems
	KindAddress   Kind = "adr" // of a user's address book
	KindDelivery  Kind = "dlv" // an event on its way to an endpoint
	KindTemplate  Kind = "tpl" // a sale without its times
	KindDevice    Kind = "dev" // a browser that gets notices

	KindServiceToken Kind = "svt" // lets another system use the API
)

// parse parses the public form of an id of kind k. The error wraps ErrMalformed.
func parse[T ~[16]byte](k Kind, text string) (T, error) {
	u, err := Parse(k, text)
	return T(u), err
}

// marshalGQL writes a public id, which has no character to escape, as a string of JSON.
func marshalGQL(w io.Writer, public string) { _, _ = io.WriteString(w, `"`+public+`"`) }

func unmarshalGQL[T ~[16]byte](k Kind, into *T, value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%w: %T is no text", ErrMalformed, value)
	}
	parsed, err := parse[T](k, text)
	*into = parsed
	return err
}
