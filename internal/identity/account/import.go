package account

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // older installations of Django hashed with it
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"

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

const (
	argonPrefix = "$argon2id$"
	// argonIndependent is the variant that PHP and older installations of Django use.
	argonIndependent = "$argon2i$"
	// bcryptOfSum is how Django writes bcrypt of the hexadecimal SHA-256 sum of a password.
	bcryptOfSum = "bcrypt_sha256$"
)

// hashPrefixes are what frameworks write before the common encoding of a hash: Django
// the name of its hasher, Spring Security the id of its encoder.
var hashPrefixes = []string{"argon2$", "bcrypt$", "{argon2}", "{argon2@SpringSecurity_v5_8}", "{bcrypt}"}

// trimHashPrefix returns a hash in the common encoding; "" = the user has no password, for
// which Django and Unix write a mark.
func trimHashPrefix(encoded string) string {
	if strings.HasPrefix(encoded, "!") || encoded == "*" {
		return ""
	}
	for _, prefix := range hashPrefixes {
		if rest, ok := strings.CutPrefix(encoded, prefix); ok {
			return "$" + strings.TrimPrefix(rest, "$")
		}
	}
	return encoded
}

// Bounds of imported hashes: one comparison takes at most about a second of a core and
// 128 MiB. A sign-in replaces the hash.
const (
	maxBcryptCost   = 14
	maxIterations   = 2_000_000 // of PBKDF2
	maxHashMemory   = 128 << 20 // of argon2id and scrypt, in bytes
	maxArgonPasses  = 10        // of argon2id
	maxHashLanes    = 16        // of argon2id and scrypt
	minHashedLength = 16        // of PBKDF2 and scrypt, in bytes
	maxHashText     = 512       // of an encoded hash, in bytes
)

var errHashFormat = errors.New("unknown format of a password hash")

// derived is a hash that is compared by deriving it again.
type derived struct {
	want   []byte
	derive func(password string, length int) ([]byte, error)
}

// checkImportedHash returns an error for a password hash that this server cannot compare,
// or whose comparison would cost too much: argon2, bcrypt, and what Django makes of bcrypt,
// PBKDF2 and scrypt.
func checkImportedHash(encoded string) error {
	if len(encoded) > maxHashText {
		return errHashFormat
	}
	switch {
	case strings.HasPrefix(encoded, argonPrefix), strings.HasPrefix(encoded, argonIndependent):
		params, _, _, err := argon2id.DecodeHash(strings.Replace(encoded, argonIndependent, argonPrefix, 1))
		if err != nil {
			return err
		}
		if int64(params.Memory)<<10 > maxHashMemory || params.Iterations > maxArgonPasses ||
			params.Parallelism > maxHashLanes {
			return errors.New("the parameters of argon2 are too high")
		}
		return nil
	case isBcrypt(strings.TrimPrefix(encoded, bcryptOfSum)):
		cost, err := bcrypt.Cost([]byte(strings.TrimPrefix(encoded, bcryptOfSum)))
		if err == nil && cost > maxBcryptCost {
			err = errors.New("the cost of bcrypt is too high")
		}
		return err
	}
	_, err := decodeDerived(encoded)
	return err
}

// isBcrypt reports whether a hash is of bcrypt. Variant $2x$ repeats a fault of an old
// version of PHP, which this server does not have.
func isBcrypt(encoded string) bool {
	return strings.HasPrefix(encoded, "$2a$") || strings.HasPrefix(encoded, "$2b$") || strings.HasPrefix(encoded, "$2y$")
}

// compareImported compares a password with a hash that another system made.
func compareImported(password, encoded string) (bool, error) {
	if rest, ok := strings.CutPrefix(encoded, bcryptOfSum); ok {
		sum := sha256.Sum256([]byte(password))
		password, encoded = hex.EncodeToString(sum[:]), rest
	}
	if strings.HasPrefix(encoded, argonIndependent) {
		params, salt, want, err := argon2id.DecodeHash(strings.Replace(encoded, argonIndependent, argonPrefix, 1))
		if err != nil {
			return false, err
		}
		got := argon2.Key([]byte(password), salt, params.Iterations, params.Memory, params.Parallelism, params.KeyLength)
		return subtle.ConstantTimeCompare(got, want) == 1, nil
	}
	if isBcrypt(encoded) {
		err := bcrypt.CompareHashAndPassword([]byte(encoded), []byte(password))
		if errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
			return false, nil
		}
		return err == nil, err
	}
	d, err := decodeDerived(encoded)
	if err != nil {
		return false, err
	}
	got, err := d.derive(password, len(d.want))
	return err == nil && subtle.ConstantTimeCompare(got, d.want) == 1, err
}

// decodeDerived decodes the formats of Django:
//
//	pbkdf2_sha256$iterations$salt$hash
//	pbkdf2_sha1$iterations$salt$hash
//	scrypt$N$salt$r$p$hash
func decodeDerived(encoded string) (derived, error) {
	parts := strings.Split(encoded, "$")
	switch {
	case parts[0] == "pbkdf2_sha256" && len(parts) == 4:
		return decodePBKDF2(sha256.New, parts)
	case parts[0] == "pbkdf2_sha1" && len(parts) == 4:
		return decodePBKDF2(sha1.New, parts)
	case parts[0] == "scrypt" && len(parts) == 6:
		return decodeScrypt(parts)
	}
	return derived{}, errHashFormat
}

func decodePBKDF2(algorithm func() hash.Hash, parts []string) (derived, error) {
	iterations, err := bounded(parts[1], maxIterations)
	if err != nil {
		return derived{}, err
	}
	want, err := decodeHash(parts[3])
	return derived{want, func(password string, length int) ([]byte, error) {
		return pbkdf2.Key(algorithm, password, []byte(parts[2]), iterations, length)
	}}, err
}

func decodeScrypt(parts []string) (derived, error) {
	n, errN := bounded(parts[1], maxHashMemory/128)
	r, errR := bounded(parts[3], maxHashMemory/128)
	p, errP := bounded(parts[4], maxHashLanes)
	want, err := decodeHash(parts[5])
	if err := errors.Join(errN, errR, errP, err); err != nil {
		return derived{}, err
	}
	if n&(n-1) != 0 || n < 2 || 128*n*r > maxHashMemory {
		return derived{}, errors.New("the parameters of scrypt are too high, or none")
	}
	return derived{want, func(password string, length int) ([]byte, error) {
		return scrypt.Key([]byte(password), []byte(parts[2]), n, r, p, length)
	}}, nil
}

func bounded(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("a parameter of a password hash is not within 1 and %d", most)
	}
	return n, nil
}

func decodeHash(text string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < minHashedLength {
		return nil, errHashFormat
	}
	return raw, nil
}
