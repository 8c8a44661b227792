package acceptance

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"seckill/ent"
	"seckill/ent/acceptanceentry"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// LogsPath begins the addresses of the logs; the public id of the sale follows.
	LogsPath = "/acceptances/"
	// checkpointAge is how long a checkpoint is served again: one of a second ago is current.
	checkpointAge = time.Second
	// maxCheckpoints bounds the checkpoints in memory.
	maxCheckpoints = 1000
	// maxReads bounds the requests that read Postgres at a time, so that outsiders leave its
	// connections to buyers.
	maxReads = 2
	// immutableAge is how long tiles may be cached, in seconds.
	immutableAge = 365 * 24 * 60 * 60
	// proofHeader is the first line of a proof of C2SP tlog-proof.
	proofHeader = "c2sp.org/tlog-proof@v1"
)

// Logs serves the logs of the sales as C2SP tlog-tiles. It is safe for concurrent use.
type Logs struct {
	db     *postgres.DB
	signer *Signer
	clock  clock.Clock
	log    *slog.Logger
	reads  chan struct{}

	mu      sync.Mutex
	current map[id.Sale]checkpoint // guarded by mu
}

// checkpoint is a signed tree head.
type checkpoint struct {
	at   time.Time
	size uint64
	text []byte
}

// NewLogs returns the handler of LogsPath.
func NewLogs(db *postgres.DB, signer *Signer, c clock.Clock, log *slog.Logger) *Logs {
	return &Logs{
		db: db, signer: signer, clock: c, log: log, reads: make(chan struct{}, maxReads), current: map[id.Sale]checkpoint{},
	}
}

// errNoSuchFile means that a log does not have a file.
var errNoSuchFile = errors.New("no such file")

// ServeHTTP serves a file of a log.
func (l *Logs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "GET a file of the log.", http.StatusMethodNotAllowed)
		return
	}
	select {
	case l.reads <- struct{}{}:
		defer func() { <-l.reads }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Too many requests read the logs.", http.StatusServiceUnavailable)
		return
	}
	name, file, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, LogsPath), "/")
	sale, err := id.ParseSale(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	body, contentType, err := l.file(r.Context(), sale, file)
	switch {
	case errors.Is(err, errNoSuchFile):
		http.NotFound(w, r)
	case err != nil:
		l.log.ErrorContext(r.Context(), "file of the log of acceptances not served", slog.String("sale", name), slog.String("error", err.Error()))
		http.Error(w, "The log cannot be read now.", http.StatusServiceUnavailable)
	default:
		age := immutableAge
		if !strings.HasPrefix(file, "tile/") {
			age = 1
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", age))
		_, _ = w.Write(body) //nolint:gosec // neither of the types is HTML
	}
}

// file returns a file of the log of a sale and its type. The error is errNoSuchFile if the
// log does not have it.
func (l *Logs) file(ctx context.Context, sale id.Sale, file string) (body []byte, contentType string, err error) {
	const text, bytes = "text/plain; charset=utf-8", "application/octet-stream"
	switch kind, of, _ := strings.Cut(file, "/"); kind {
	case "checkpoint":
		if of != "" || strings.HasSuffix(file, "/") {
			return nil, "", errNoSuchFile
		}
		c, err := l.checkpoint(ctx, sale, 0)
		return c.text, text, err
	case "proof":
		body, err := l.proof(ctx, sale, of)
		return body, text, err
	case "tile":
		body, err := l.tile(ctx, sale, of)
		return body, bytes, err
	default:
		return nil, "", errNoSuchFile
	}
}

// checkpoint returns the current checkpoint of a sale, of more entries than given.
func (l *Logs) checkpoint(ctx context.Context, sale id.Sale, above uint64) (checkpoint, error) {
	now := l.clock.Now()
	l.mu.Lock()
	c, ok := l.current[sale]
	l.mu.Unlock()
	if ok && now.Sub(c.at) < checkpointAge && c.size > above {
		return c, nil
	}
	t := tiles{l.db.Ent.AcceptanceEntry, sale}
	size, err := t.size(ctx)
	if err != nil {
		return c, err
	}
	if size == 0 {
		return c, errNoSuchFile
	}
	if ok && c.size == size {
		c.at = now
	} else {
		root, err := t.root(ctx, size)
		if err != nil {
			return c, err
		}
		text, err := l.signer.checkpoint(sale, size, root)
		if err != nil {
			return c, err
		}
		c = checkpoint{now, size, text}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.current) >= maxCheckpoints {
		clear(l.current)
	}
	l.current[sale] = c
	return c, nil
}

// proof returns the proof that the acceptance of a task is in the log, with its entry as the
// extra data.
func (l *Logs) proof(ctx context.Context, sale id.Sale, name string) ([]byte, error) {
	task, err := id.ParseTask(name)
	if err != nil {
		return nil, errNoSuchFile
	}
	row, err := l.db.Ent.AcceptanceEntry.Query().
		Where(acceptanceentry.ID(task.UUID()), acceptanceentry.SaleID(sale)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, errNoSuchFile
	}
	if err != nil {
		return nil, fmt.Errorf("read the entry: %w", err)
	}
	position := uint64(row.Position)
	c, err := l.checkpoint(ctx, sale, position)
	if err != nil {
		return nil, err
	}
	path, err := tiles{l.db.Ent.AcceptanceEntry, sale}.inclusion(ctx, position, c.size)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\nextra %s\nindex %d\n", proofHeader, base64.StdEncoding.EncodeToString([]byte(row.Entry)), position)
	for _, hash := range path {
		fmt.Fprintln(&out, base64.StdEncoding.EncodeToString(hash))
	}
	fmt.Fprintf(&out, "\n%s", c.text)
	return []byte(out.String()), nil
}

// tile returns a tile, or a bundle of entries.
func (l *Logs) tile(ctx context.Context, sale id.Sale, path string) ([]byte, error) {
	name, number, _ := strings.Cut(path, "/")
	index, n, ok := parseTile(number)
	if !ok {
		return nil, errNoSuchFile
	}
	var level uint64
	if name != entriesTile {
		var err error
		if level, err = strconv.ParseUint(name, 10, 6); err != nil || strconv.FormatUint(level, 10) != name {
			return nil, errNoSuchFile
		}
	}
	t := tiles{l.db.Ent.AcceptanceEntry, sale}
	size, err := t.size(ctx)
	if err != nil {
		return nil, err
	}
	if n > width(uint(level), index, size) {
		return nil, errNoSuchFile
	}
	if name == entriesTile {
		texts, err := t.texts(ctx, index*tileWidth, n)
		return bundle(texts), err
	}
	hashes, err := t.hashes(ctx, uint(level), index*tileWidth, n)
	return concat(hashes), err
}

// entriesTile is the name of the bundles of entries among the levels.
const entriesTile = "entries"

// bundle returns entries with their lengths.
func bundle(texts []string) []byte {
	var out []byte
	for _, text := range texts {
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(text))), text...) // the column bounds it
	}
	return out
}

func concat(hashes [][]byte) []byte {
	out := make([]byte, 0, len(hashes)*hashSize)
	for _, h := range hashes {
		out = append(out, h...)
	}
	return out
}

// tilePath returns the number of a tile in a path, with its width if that is not full.
func tilePath(index uint64, n int) string {
	path := fmt.Sprintf("%03d", index%1000)
	for index /= 1000; index > 0; index /= 1000 {
		path = fmt.Sprintf("x%03d/%s", index%1000, path)
	}
	if n < tileWidth {
		path = fmt.Sprintf("%s.p/%d", path, n)
	}
	return path
}

// parseTile parses what tilePath returns; false = it would not return it.
func parseTile(path string) (index uint64, n int, ok bool) {
	number, partial, isPartial := strings.Cut(path, ".p/")
	n = tileWidth
	if isPartial {
		var err error
		if n, err = strconv.Atoi(partial); err != nil || n < 1 || n >= tileWidth {
			return 0, 0, false
		}
	}
	if len(number) > len("x000/x000/000") {
		return 0, 0, false
	}
	for part := range strings.SplitSeq(number, "/") {
		digits, err := strconv.ParseUint(strings.TrimPrefix(part, "x"), 10, 16)
		if err != nil {
			return 0, 0, false
		}
		index = index*1000 + digits
	}
	return index, n, tilePath(index, n) == path
}

// origin returns the name of the log of a sale: its address without the scheme, and
// without the host if the shop's is not known.
func (s *Signer) origin(sale id.Sale) string {
	_, host, _ := strings.Cut(s.issuer, "://")
	return strings.TrimPrefix(strings.TrimSuffix(host, "/")+LogsPath+sale.Public(), "/")
}

// checkpoint returns the checkpoint of a log as a signed note of C2SP.
func (s *Signer) checkpoint(sale id.Sale, size uint64, root []byte) ([]byte, error) {
	origin := s.origin(sale)
	text := fmt.Sprintf("%s\n%d\n%s\n", origin, size, base64.StdEncoding.EncodeToString(root))
	signer, err := s.noteSigner(origin)
	if err != nil {
		return nil, err
	}
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return nil, fmt.Errorf("sign checkpoint: %w", err)
	}
	return signed, nil
}
