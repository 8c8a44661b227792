package account

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"seckill/ent"
	"seckill/ent/user"
	"seckill/internal/auth"
	"seckill/internal/id"
	"seckill/internal/locale"
	"seckill/internal/postgres"
)

const (
	// importBatch is how many rows are written in one transaction.
	importBatch = 500
	// maxImportField bounds a field, in bytes.
	maxImportField = 1024
)

// importColumns are the columns of a file of customers; account is required.
var importColumns = []string{"account", "displayName", "externalId", "passwordHash", "verified", "language", "createdAt"}

// Import describes an import of customers.
type Import struct {
	Rows   io.Reader // CSV with a header of column names
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
	store   *Store
	in      Import
	columns map[string]int
	seen    map[nameSum]struct{}
	done    Imported
	batch   []newCustomer
	now     time.Time
}

// nameSum stands for an account or an external id: a sum is shorter than a name.
type nameSum [16]byte

func sumOf(kind, name string) nameSum {
	sum := sha256.Sum256([]byte(kind + name))
	return nameSum(sum[:16])
}

// Import creates a customer for each row. Rows whose account or external id exists are
// left alone, so that an import can be repeated. The error is of the file as a whole, or
// of the database; what was written before stays.
func (s *Store) Import(ctx context.Context, in Import) (Imported, error) {
	i := importer{store: s, in: in, seen: map[nameSum]struct{}{}, now: s.clock.Now().UTC()}
	if i.in.Problem == nil {
		i.in.Problem = func(int, string) {}
	}
	rows := csv.NewReader(in.Rows)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return i.done, fmt.Errorf("read the header: %w", err)
	}
	if i.columns, err = columnsOf(header); err != nil {
		return i.done, err
	}
	for {
		record, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return i.done, i.flush(ctx)
		}
		if err != nil {
			return i.done, errors.Join(err, i.flush(ctx))
		}
		i.done.Rows++
		line, _ := rows.FieldPos(0)
		i.add(line, record)
		if len(i.batch) == importBatch {
			if err := i.flush(ctx); err != nil {
				return i.done, err
			}
		}
	}
}

func columnsOf(header []string) (map[string]int, error) {
	columns := map[string]int{}
	for n, name := range header {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if _, twice := columns[name]; twice || !slices.Contains(importColumns, name) {
			return nil, fmt.Errorf("column %q is not known, or twice there: choose among %s", name, strings.Join(importColumns, ", "))
		}
		columns[name] = n
	}
	if _, ok := columns["account"]; !ok {
		return nil, errors.New("the column account is missing")
	}
	return columns, nil
}

// add checks a row and appends it to the batch.
func (i *importer) add(line int, record []string) {
	c, err := i.parse(line, record)
	if err != nil {
		i.done.Invalid++
		i.in.Problem(line, err.Error())
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

func (i *importer) parse(line int, record []string) (newCustomer, error) {
	field := func(name string) string {
		if n, ok := i.columns[name]; ok {
			return strings.TrimSpace(record[n])
		}
		return ""
	}
	for _, text := range record {
		if len(text) > maxImportField {
			return newCustomer{}, errors.New("a field is too long")
		}
	}
	account, ok := i.store.names.Normalise(field("account"))
	if !ok {
		return newCustomer{}, fmt.Errorf("account: must be an %s", i.store.names.rule())
	}
	c := newCustomer{line: line, hash: field("passwordHash"), language: field("language")}
	c.user = i.store.newUser(NewUser{Account: account, DisplayName: shownName(field("displayName"), account)}, auth.Customer)
	c.user.ExternalID = field("externalId")
	if c.user.ExternalID != "" && !externalIDFormat.MatchString(c.user.ExternalID) {
		return c, errors.New("externalId: 1 to 255 printable ASCII characters")
	}
	if c.hash != "" {
		if err := CheckImportedHash(c.hash); err != nil {
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
		byExternal, err := i.store.db.Ent.User.Query().Where(user.ExternalIDIn(externals...)).Select(user.FieldExternalID).Strings(ctx)
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
			rows[n] = tx.User.Create().SetID(id.New[id.User]()).SetAccount(c.user.Account).SetDisplayName(c.user.DisplayName).SetPasswordHash(c.hash).
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
