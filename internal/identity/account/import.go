package account

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"seckill/ent"
	"seckill/ent/user"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/id"
	"seckill/internal/platform/locale"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/spreadsheet"
	"seckill/internal/platform/typed"
)

// importBatch is how many rows are written in one transaction.
const importBatch = 500

// importColumns are the columns of a file of customers; account is required.
var importColumns = []string{"account", "displayName", "externalId", "passwordHash", "verified", "language",
	"createdAt"}

// Import describes an import of customers.
type Import struct {
	Rows   io.Reader // CSV as spreadsheets write it, with a header of column names
	DryRun bool      // check and count, write nothing
	// Problem is called for each row that is not imported; may be nil.
	Problem func(line int, why string)
	// Progress is called after each batch; may be nil.
	Progress func(Imported)
}

// Imported counts the rows of an import.
type Imported struct {
	Rows       int
	Created    int // or would be, in a dry run
	Duplicates int // the account or the external id exists, or is twice in the file
	Invalid    int
}

// newCustomer is a row of the file.
type newCustomer struct {
	line       int
	user       *User
	hash       string
	verifiedAt *time.Time
	language   string
}

// importer holds the state of one import: a batch, and the names of the file so far.
type importer struct {
	store *Store
	in    Import
	seen  map[nameSum]struct{}
	done  Imported
	batch []newCustomer
	now   time.Time
}

// nameSum stands for an account or an external id: a sum is shorter than a name.
type nameSum [16]byte

func sumOf(kind, name string) nameSum {
	sum := sha256.Sum256([]byte(kind + name))
	return nameSum(sum[:16])
}

// Import creates a customer for each row. Rows whose account or external id exists are
// left alone, so that an import can be repeated, and rows that cannot be read are reported
// and end nothing. The error is of the file as a whole, or of the database; what was
// written before stays.
func (s *Store) Import(ctx context.Context, in Import) (Imported, error) {
	i := importer{store: s, in: in, seen: map[nameSum]struct{}{}, now: s.clock.Now().UTC()}
	if i.in.Problem == nil {
		i.in.Problem = func(int, string) {}
	}
	rows, err := spreadsheet.NewReader(in.Rows, importColumns, "account")
	if err != nil {
		return i.done, err
	}
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return i.done, i.flush(ctx)
		}
		if err != nil {
			return i.done, errors.Join(err, i.flush(ctx))
		}
		i.done.Rows++
		i.add(row)
		if len(i.batch) == importBatch {
			if err := i.flush(ctx); err != nil {
				return i.done, err
			}
		}
	}
}

// add checks a row and appends it to the batch.
func (i *importer) add(row spreadsheet.Row) {
	c, err := i.parse(row)
	if err != nil {
		i.done.Invalid++
		i.in.Problem(row.Line, err.Error())
		return
	}
	names := []nameSum{sumOf("a", c.user.Account)}
	if c.user.ExternalID != "" {
		names = append(names, sumOf("e", c.user.ExternalID))
	}
	for _, name := range names {
		if _, twice := i.seen[name]; twice {
			i.duplicate(c, "is in the file twice")
			return
		}
	}
	for _, name := range names {
		i.seen[name] = struct{}{}
	}
	i.batch = append(i.batch, c)
}

func (i *importer) duplicate(c newCustomer, why string) {
	i.done.Duplicates++
	i.in.Problem(c.line, c.user.Account+" "+why)
}

func (i *importer) parse(row spreadsheet.Row) (newCustomer, error) {
	if row.Err != nil {
		return newCustomer{}, row.Err
	}
	field := func(name string) string { return typed.Identifier(row.Field(name)) }
	account, ok := i.store.names.Normalise(field("account"))
	if !ok {
		return newCustomer{}, fmt.Errorf("account: must be an %s", i.store.names.rule())
	}
	c := newCustomer{line: row.Line, hash: trimHashPrefix(field("passwordHash")), language: field("language")}
	c.user = i.store.newUser(NewUser{Account: account, DisplayName: shownName(row.Field("displayName"), account)},
		auth.Customer)
	c.user.ExternalID = field("externalId")
	if c.user.ExternalID != "" && !externalIDFormat.MatchString(c.user.ExternalID) {
		return c, errors.New("externalId: 1 to 255 printable ASCII characters")
	}
	if c.hash != "" {
		if err := checkImportedHash(c.hash); err != nil {
			return c, fmt.Errorf("passwordHash: %w", err)
		}
	}
	if text := field("verified"); text != "" {
		verified, err := strconv.ParseBool(text)
		if err != nil {
			return c, errors.New("verified: true or false")
		}
		if verified {
			c.verifiedAt = &i.now
		}
	}
	if c.language != "" && c.language != string(locale.English) && c.language != string(locale.Chinese) {
		return c, errors.New("language: en or zh")
	}
	if text := field("createdAt"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || at.After(i.now) {
			return c, errors.New("createdAt: a time in the past, such as 2024-05-01T00:00:00Z")
		}
		c.user.CreatedAt = at.UTC()
	}
	return c, nil
}

// flush writes the batch.
func (i *importer) flush(ctx context.Context) error {
	fresh, err := i.unknown(ctx)
	if err != nil {
		return err
	}
	i.batch = i.batch[:0]
	if !i.in.DryRun && len(fresh) > 0 {
		if fresh, err = i.write(ctx, fresh); err != nil {
			return err
		}
	}
	i.done.Created += len(fresh)
	if i.in.Progress != nil {
		i.in.Progress(i.done)
	}
	return nil
}

// unknown returns the rows of the batch whose account and external id no user has. It asks
// once for each index: for a query about both, Postgres reads the whole table.
func (i *importer) unknown(ctx context.Context) ([]newCustomer, error) {
	var accounts, externals []string
	for _, c := range i.batch {
		accounts = append(accounts, c.user.Account)
		if c.user.ExternalID != "" {
			externals = append(externals, c.user.ExternalID)
		}
	}
	there := map[string]bool{}
	byAccount, err := i.store.db.Ent.User.Query().Where(user.AccountIn(accounts...)).Select(user.FieldAccount).Strings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read users by account: %w", err)
	}
	for _, account := range byAccount {
		there["a"+account] = true
	}
	if len(externals) > 0 {
		byExternal, err := i.store.db.Ent.User.Query().Where(user.ExternalIDIn(externals...)).Select(user.FieldExternalID).
			Strings(ctx)
		if err != nil {
			return nil, fmt.Errorf("read users by external id: %w", err)
		}
		for _, external := range byExternal {
			there["e"+external] = true
		}
	}
	var fresh []newCustomer
	for _, c := range i.batch {
		if there["a"+c.user.Account] || (c.user.ExternalID != "" && there["e"+c.user.ExternalID]) {
			i.duplicate(c, "has an account, or its external id has")
			continue
		}
		fresh = append(fresh, c)
	}
	return fresh, nil
}

// write inserts customers, one by one when one of them registered meanwhile, and returns
// those that were inserted.
func (i *importer) write(ctx context.Context, fresh []newCustomer) ([]newCustomer, error) {
	err := i.insert(ctx, fresh...)
	if err == nil || !postgres.IsUnique(err) {
		return fresh, err
	}
	var written []newCustomer
	for _, c := range fresh {
		switch err := i.insert(ctx, c); {
		case postgres.IsUnique(err):
			i.duplicate(c, "has registered meanwhile")
		case err != nil:
			return written, err
		default:
			written = append(written, c)
		}
	}
	return written, nil
}

func (i *importer) insert(ctx context.Context, all ...newCustomer) error {
	err := i.store.db.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		rows := make([]*ent.UserCreate, len(all))
		for n, c := range all {
			rows[n] = tx.User.Create().SetID(id.New[id.User]()).SetAccount(c.user.Account).SetDisplayName(c.user.DisplayName).
				SetPasswordHash(c.hash).
				SetCreatedAt(c.user.CreatedAt).SetNillableVerifiedAt(c.verifiedAt).SetLanguage(c.language)
			if c.user.ExternalID != "" {
				rows[n].SetExternalID(c.user.ExternalID)
			}
		}
		return tx.User.CreateBulk(rows...).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("write customers: %w", err)
	}
	return nil
}
