// Package guard decides, before an operation is executed, whether it may run: by the size
// and shape of its document, its cost, whether it is a trusted document, and whether its
// values match their types.
//
// It is a gqlgen extension and the executor's document cache in one. It does not know
// principals or single operations: authorisation and rate limits belong to resolvers and
// directives.
package guard

import (
	"context"
	"fmt"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"seckill/internal/platform/fault"
)

// Codes of refusals, in extensions.code.
const (
	CodeTooComplex  = "COMPLEXITY_LIMIT_EXCEEDED"
	CodeNotTrusted  = "PERSISTED_QUERY_ONLY"
	CodeUnknownHash = "PERSISTED_QUERY_NOT_FOUND"
	// CodeNoRegistration answers automatic persisted queries: clients then send texts.
	CodeNoRegistration = "PERSISTED_QUERY_NOT_SUPPORTED"

	codeParseFailed      = "GRAPHQL_PARSE_FAILED"
	codeValidationFailed = "GRAPHQL_VALIDATION_FAILED"
	codeBadUserInput     = string(fault.BadInput)
)

// RetryAfterMs is the key in extensions with the time to wait before a retry, an int64.
const RetryAfterMs = "retryAfterMs"

// Limits bound one document. Zero fields have the default in brackets.
type Limits struct {
	Tokens     int   // lexical tokens [1,000]
	Nodes      int   // selections of one operation, fragments counted at each spread [300]
	Depth      int   // nesting of fields [8]
	Fragments  int   // fragment definitions [20]
	Operations int   // operation definitions [20]
	Aliases    int   // aliases of one field in one operation [10]
	NameLength int   // bytes of one name [64]
	Cost       int64 // cost of one operation by @cost and @listSize [5,000]
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{{&l.Tokens, 1000}, {&l.Nodes, 300}, {&l.Depth, 8}, {&l.Fragments, 20}, {&l.Operations, 20}, {&l.Aliases, 10},
		{&l.NameLength, 64}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if l.Cost == 0 {
		l.Cost = 5000
	}
	return l
}

// Budget is what a caller can still spend on operations.
type Budget struct {
	Burst       int64   // maximum points in the bucket
	Remaining   int64   // points left after this operation
	RestoreRate float64 // points restored per second
}

// Options configure a Guard.
type Options struct {
	// Schema is the schema of the documents.
	Schema *ast.Schema
	// Scalars report which strings are valid values of the API's own scalars. Scalars
	// without an entry accept any string.
	Scalars map[string]func(text string) bool
	// Limits bound documents that are not trusted.
	Limits Limits
	// Trusted holds the documents that clients may send by id. Guard.Trust adds more.
	Trusted Manifest
	// TrustedOnly refuses every other document before it is parsed.
	TrustedOnly bool
	// Introspection allows every caller to query the schema.
	Introspection bool
	// MayIntrospect reports whether a caller may query the schema when Introspection is
	// off. nil = no caller.
	MayIntrospect func(ctx context.Context) bool
	// Spend deducts the cost of an operation from its caller's budget. An error refuses
	// the operation. nil = no budget.
	Spend func(ctx context.Context, cost int64) (Budget, error)
}

// Guard checks operations. It is safe for concurrent use.
type Guard struct {
	opts   Options
	docs   *Documents
	names  vocabulary
	inputs inputs
}

// New checks every trusted document against its hash, schema and limits and returns the
// guard. An invalid trusted document is an error.
func New(opts Options) (*Guard, error) {
	opts.Limits = opts.Limits.withDefaults()
	g := &Guard{opts: opts, docs: newDocuments(opts.TrustedOnly), names: newVocabulary(opts.Schema),
		inputs: newInputs(opts.Schema, opts.Scalars)}
	for hash, text := range opts.Trusted {
		if Hash(text) != hash {
			return nil, fmt.Errorf("trusted document %s: that is not its hash", hash)
		}
	}
	if err := g.Trust(nil); err != nil {
		return nil, err
	}
	return g, nil
}

// admit parses and checks a trusted document.
func (g *Guard) admit(text string) (*ast.QueryDocument, error) {
	doc, refusal := g.examine(text)
	if refusal != nil {
		return nil, refusal
	}
	if errs := validator.ValidateWithRules(g.opts.Schema, doc, g.Rules()); len(errs) > 0 {
		return nil, errs
	}
	for _, op := range doc.Operations {
		if p := newPlan(g.opts.Schema, doc, op); p.constant && p.total > g.opts.Limits.Cost {
			return nil, tooComplex("costs " + strconv.FormatInt(p.total, 10))
		}
	}
	return doc, nil
}

// Documents returns the cache of valid documents, for the executor.
func (g *Guard) Documents() *Documents { return g.docs }

// MaxTokens returns the token limit, for the executor's parser.
func (g *Guard) MaxTokens() int { return g.opts.Limits.Tokens }

// ExtensionName implements graphql.HandlerExtension.
func (*Guard) ExtensionName() string { return "Guard" }

// Validate implements graphql.HandlerExtension; it accepts any schema.
func (*Guard) Validate(graphql.ExecutableSchema) error { return nil }

// Parsing and validating a document takes up to 0.3 ms, and 2.6 ms for a 32 kB document
// made to be slow. At these prices an address that sends uncached documents spends its
// budget of 20,000 points a second for 5 % of a CPU core.
const (
	parseCost     = 100 // points per uncached document
	bytesPerPoint = 32  // of its text, in addition
)

// MutateOperationParameters resolves trusted documents by id. It charges and bounds all
// others before the executor parses them.
func (g *Guard) MutateOperationParameters(ctx context.Context, p *graphql.RawParams) *gqlerror.Error {
	if refusal := g.resolve(p); refusal != nil {
		return refusal
	}
	if g.docs.has(p.Query) {
		return nil
	}
	if refusal := g.chargeOnly(ctx, parseCost+int64(len(p.Query)/bytesPerPoint)); refusal != nil {
		return refusal
	}
	_, refusal := g.examine(p.Query)
	return refusal
}

// MutateOperationContext checks variables against their types, and the cost against the
// limit and the caller's budget.
func (g *Guard) MutateOperationContext(ctx context.Context, op *graphql.OperationContext) *gqlerror.Error {
	if refusal := g.inputs.checkVariables(op.Operation, op.Variables); refusal != nil {
		return refusal
	}
	return g.Charge(ctx, op)
}

// chargeExtension names the charge of an operation in its Stats.
const chargeExtension = "charge"

// charge is what CostOf needs of an operation that passed.
type charge struct {
	guard  *Guard
	budget *Budget // nil without a budget
	spent  error   // refuses a mutation in its own answer; nil = it may run
}

// Spent returns the refusal of a mutation whose caller has no points left, which is for the
// userErrors of its payload; nil = it may run.
func Spent(op *graphql.OperationContext) error {
	if c, ok := op.Stats.GetExtension(chargeExtension).(*charge); ok {
		return c.spent
	}
	return nil
}

// Cost is the computed cost of an operation.
type Cost struct {
	Requested int64   // points
	Limit     int64   // maximum for one operation
	Budget    *Budget // the caller's, nil without a budget
}

// CostOf returns the cost of an operation that passed a Guard.
func CostOf(op *graphql.OperationContext) Cost {
	c, ok := op.Stats.GetExtension(chargeExtension).(*charge)
	if !ok {
		return Cost{}
	}
	g := c.guard
	return Cost{Requested: g.docs.plan(g.opts.Schema, op).cost(op.Variables), Limit: g.opts.Limits.Cost, Budget: c.budget}
}

// AppendJSON appends the value of extensions.cost.
func (c Cost) AppendJSON(b []byte) []byte {
	b = append(b, `{"requestedQueryCost":`...)
	b = strconv.AppendInt(b, c.Requested, 10)
	b = append(b, `,"maximumAvailable":`...)
	b = strconv.AppendInt(b, c.Limit, 10)
	if c.Budget != nil {
		b = append(b, `,"throttleStatus":{"burst":`...)
		b = strconv.AppendInt(b, c.Budget.Burst, 10)
		b = append(b, `,"remaining":`...)
		b = strconv.AppendInt(b, c.Budget.Remaining, 10)
		b = append(b, `,"restoreRate":`...)
		b = strconv.AppendFloat(b, c.Budget.RestoreRate, 'f', -1, 64)
		b = append(b, '}')
	}
	return append(b, '}')
}

func tooComplex(message string) *gqlerror.Error { return refuse(CodeTooComplex, message) }

func refuse(code, message string) *gqlerror.Error {
	return &gqlerror.Error{Message: message, Extensions: map[string]any{"code": code}}
}
